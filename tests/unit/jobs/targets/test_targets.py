"""Each kind of target against a double of its broker: taken, refused, and taken again on another connection."""

from __future__ import annotations

import asyncio
import shutil
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import pytest

from sluice_s3.app.index.notifications.rows import Message
from sluice_s3.app.jobs.notifications.targets import MessageRefused, TargetError, open_target
from sluice_s3.app.settings import NotifyTarget
from tests.unit.jobs.targets import doubles
from tests.unit.jobs.targets.doubles import Double, Streams

Serve = Callable[[Double, Streams], Awaitable[None]]
KINDS: dict[str, tuple[Serve, str, str]] = {
    "nats": (doubles.nats, "nats://127.0.0.1:{port}", "events"),
    "kafka": (doubles.kafka, "127.0.0.1:{port}", "events"),
    "amqp": (doubles.amqp, "amqp://user:password@127.0.0.1:{port}/", "/events"),
}
"""How a double serves, its URL, and where what was sent to it went."""


def message(number: int, key: str = "k") -> Message:
    return Message(number, 7, key, 0, f'{{"n":{number}}}')


def settings(kind: str, url: str, **more: Any) -> NotifyTarget:
    return NotifyTarget.model_validate({"kind": kind, "url": url, "topic": "events", "timeout": 3, **more})


@pytest.mark.parametrize("kind", KINDS)
async def test_taken_refused_and_taken_again(kind: str) -> None:
    serve, url, place = KINDS[kind]
    async with doubles.running(serve) as double:
        target = open_target(settings(kind, url.format(port=double.port)))
        await asyncio.gather(*(target.send(message(number, f"k{number}")) for number in range(10)))
        assert sorted(body for _, _, body in double.taken) == [b'{"n":%d}' % number for number in range(10)]
        assert {where for where, _, _ in double.taken} == {place}
        double.refusing = True
        with pytest.raises(Exception):  # noqa: B017 - whatever its library raises
            await target.send(message(10))
        await target.close()
        double.refusing = False
        await target.send(message(11))
        assert double.taken[-1][2] == b'{"n":11}'
        await target.close()


@pytest.mark.parametrize("kind", [*KINDS, "webhook"])
async def test_nobody_is_there(kind: str) -> None:
    url = "http://127.0.0.1:1/" if kind == "webhook" else KINDS[kind][1].format(port=1)
    target = open_target(settings(kind, url))
    with pytest.raises(Exception):  # noqa: B017
        await target.send(message(1))
    await target.close()


async def test_kafka_is_given_the_object_as_key() -> None:
    async with doubles.running(doubles.kafka) as double:
        target = open_target(settings("kafka", f"127.0.0.1:{double.port}"))
        await target.send(message(1, "a/b"))
        await target.close()
        assert double.taken == [("events", b"7/a/b", b'{"n":1}')]


async def test_amqp_is_persistent() -> None:
    async with doubles.running(doubles.amqp) as double:
        target = open_target(settings("amqp", f"amqp://u:p@127.0.0.1:{double.port}/", exchange="ex"))
        await target.send(message(5))
        await target.close()
        ((place, properties, _),) = double.taken
        assert (place, properties.delivery_mode, properties.message_id) == ("ex/events", 2, "5")


async def test_a_webhook_keeps_its_connection_and_notices_when_it_is_gone() -> None:
    answers = [b"HTTP/1.1 204 No Content\r\n\r\n"] * 2 + [b""]

    async def serve(double: Double, streams: Streams) -> None:
        reader, writer = streams
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            double.taken.append((head.split()[1].decode(), head, await reader.readexactly(size)))
            answer = answers.pop(0) if answers else b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            if not answer:
                return
            writer.write(answer)

    async with doubles.running(serve) as double:
        target = open_target(settings("webhook", f"http://127.0.0.1:{double.port}/in?x=1", token="secret"))
        for number in (1, 2, 3):
            await target.send(message(number))
        await target.close()
    assert double.connections == 2
    assert [body for _, _, body in double.taken] == [b'{"n":1}', b'{"n":2}', b'{"n":3}', b'{"n":3}']
    assert double.taken[0][0] == "/in?x=1"
    assert b"authorization: Bearer secret" in double.taken[0][1]


CREDENTIALS = {
    "user:password@": b"user:password",
    "us%40er:p%3Ass%2F%C3%A9@": "us@er:p:ss/é".encode(),
    "user@": b"user:",
    ":key@": b":key",
}


@pytest.mark.parametrize("given", CREDENTIALS)
async def test_credentials_of_a_webhooks_url_are_sent(given: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async def serve(double: Double, streams: Streams) -> None:
        double.taken.append(("", await streams[0].readuntil(b"\r\n\r\n"), b""))
        streams[1].write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")

    async with doubles.running(serve) as double:
        target = open_target(settings("webhook", f"http://{given}127.0.0.1:{double.port}/in"))
        with pytest.raises(TargetError) as refused:
            await target.send(message(1))
        await target.close()
    ((_, head, _),) = double.taken
    assert b"authorization: Basic " + b64encode(CREDENTIALS[given]) + b"\r\n" in head
    assert b"host: 127.0.0.1:%d\r\n" % double.port in head
    assert str(refused.value) == "it answered 401"
    assert given not in caplog.text


@pytest.mark.parametrize(
    "url", ["https://user:pass/secret@host/", "https://", "https://user:secret@/in", "http://h:x/"]
)
def test_a_webhook_without_a_host_is_refused_and_its_password_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="url: a webhook has a host") as error:
        NotifyTarget.model_validate({"url": url})
    assert "secret" not in error.value.errors()[0]["msg"]  # type: ignore[attr-defined]


def test_a_webhook_has_one_kind_of_credentials() -> None:
    with pytest.raises(ValueError, match="token: the URL has credentials"):
        NotifyTarget.model_validate({"url": "https://user:password@host/", "token": "t"})


STATUSES = {200: None, 204: None, 302: False, 400: True, 401: False, 404: False, 413: True, 422: True, 429: False}
"""Whether an answer refuses the message for good."""


@pytest.mark.parametrize(("status", "refuses"), [*STATUSES.items(), (500, False), (503, False)])
async def test_what_a_webhook_answers(status: int, refuses: bool | None) -> None:
    async def serve(double: Double, streams: Streams) -> None:
        await streams[0].readuntil(b"\r\n\r\n")
        streams[1].write(b"HTTP/1.1 %d x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)

    async with doubles.running(serve) as double:
        target = open_target(settings("webhook", f"http://127.0.0.1:{double.port}/"))
        if refuses is None:
            await target.send(message(1))
        else:
            with pytest.raises(TargetError, match=f"it answered {status}") as error:
                await target.send(message(1))
            assert isinstance(error.value, MessageRefused) == refuses
        await target.close()


@pytest.mark.parametrize("kind", ["nats", "kafka"])
async def test_what_is_too_large_for_a_broker_is_refused_for_good(kind: str) -> None:
    serve, url, _ = KINDS[kind]
    async with doubles.running(serve) as double:
        target = open_target(settings(kind, url.format(port=double.port)))
        with pytest.raises(MessageRefused, match="too large"):
            await target.send(Message(1, 7, "k", 0, "x" * (1024**2 + 1)))
        await target.send(message(2))
        await target.close()
        assert double.connections == (2 if kind == "kafka" else 1), "it was not closed for that"
    assert [body for _, _, body in double.taken] == [b'{"n":2}']


WRONG = [("webhook", "ftp://x/"), ("nats", "nats://x"), ("smoke", "x")]


@pytest.mark.parametrize(("kind", "url"), WRONG)
def test_wrong_settings(kind: str, url: str) -> None:
    with pytest.raises(ValueError):
        NotifyTarget.model_validate({"kind": kind, "url": url})


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sluice_s3.app.jobs.notifications.targets.nats_subject", None)
    with pytest.raises(TargetError, match="extra 'nats'"):
        open_target(settings("nats", "nats://x"))


@pytest.mark.skipif(shutil.which("nats-server") is None, reason="no nats-server")
async def test_a_stream_of_nats(tmp_path: Path) -> None:
    command = ["nats-server", "-a", "127.0.0.1", "-p", "14223", "-js", "-sd", str(tmp_path)]
    server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        url = "nats://127.0.0.1:14223"
        client = await nats.connect(url, max_reconnect_attempts=50, reconnect_time_wait=0.1)
        await client.jetstream().add_stream(name="S", subjects=["events"])
        target = open_target(settings("nats", url, jetstream=True))
        for number in (1, 2, 2):
            await target.send(message(number))
        assert (await client.jetstream().stream_info("S")).state.messages == 2
        await target.close()
        await client.close()
    finally:
        server.terminate()
        await server.wait()
