"""What is counted of a request: once, with the answer that its client gets and the bytes that moved."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http import zerocopy
from sluice_s3.storage_drivers.threads import StoreThreadPool
from tests.support.waiting import eventually_async
from tests.unit.server.files import Files
from tests.unit.server.test_zerocopy import MIB, get, slow_client
from tests.unit.server.tools import Site, serving

PUT = b"PUT /b/k HTTP/1.1\r\nHost: h\r\n"
TOO_LONG = PUT + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"


@dataclass
class Uploads:
    """Answers a PUT once its body is here: 400, as the gateway does, when the client stopped."""

    is_known = True
    fails = False
    records: list[tuple[str, int, int, int, str]] = field(default_factory=list)
    """Request id, status, bytes received and sent, and code of each."""
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, request: S3Request) -> Response:
        request.request_id = f"ID{len(self.records)}"
        if self.is_known:
            request.account_id = "somebody"
        await self.go.wait()
        while True:
            message = await request.receive()
            if message["type"] != "http.request":
                request.error_code = "IncompleteBody"
                return Response(400)
            if not message["more_body"]:
                break
        if self.fails:
            raise OSError("planted")
        return Response(head=b"content-length: 2\r\n", body=b"ok")

    def record(self, request: S3Request, response: Response | None, sent: int) -> None:
        status = 0 if response is None else response.status
        self.records.append((request.request_id, status, request.received, sent, request.error_code))


@pytest.fixture
def uploads() -> Uploads:
    made = Uploads()
    made.go.set()
    return made


async def test_received_bytes_are_those_that_came(uploads: Uploads) -> None:
    async with serving(uploads) as site:
        client = await site.connect()
        assert (await client.ask(PUT + b"Content-Length: 5\r\n\r\nabcde")).body == b"ok"
        assert (await client.ask(PUT + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")).body == b"ok"
        cut = await site.connect()
        await cut.send(PUT + b"Content-Length: 1000000\r\n\r\nabc")
        await eventually_async(lambda: any(cycle.waiter for cycle in site.state.running))
        cut.writer.transport.abort()
        await eventually_async(lambda: len(uploads.records) == 3)
    assert [received for _, _, received, _, _ in uploads.records] == [5, 3, 3]


async def test_a_body_that_stops_is_counted_once(uploads: Uploads) -> None:
    async with serving(uploads, sweeps=False) as site:
        client = await site.connect()
        await client.send(PUT + b"Content-Length: 1000000\r\n\r\nabc")
        await eventually_async(lambda: any(cycle.waiter for cycle in site.state.running))
        site.later(1000)
        got = await client.answer()
        assert (got.status, got.code, got.headers["x-amz-request-id"]) == (400, "RequestTimeout", "ID0")
        await eventually_async(lambda: not site.state.running)
        assert not site.refusals
    assert uploads.records == [("ID0", 400, 3, len(got.body), "RequestTimeout")]


async def test_a_failure_of_the_application_is_counted_once(uploads: Uploads) -> None:
    uploads.fails = True
    async with serving(uploads) as site:
        got = await site.ask(PUT + b"Content-Length: 1\r\n\r\na")
        assert (got.status, got.code, got.headers["x-amz-request-id"]) == (500, "InternalError", "ID0")
        await eventually_async(lambda: not site.state.running)
        assert not site.refusals
    assert [(status, code) for _, status, _, _, code in uploads.records] == [(500, "InternalError")]


async def test_bytes_that_are_no_request_are_a_refusal(uploads: Uploads) -> None:
    async with serving(uploads) as site:
        got = await site.ask(b"nonsense\r\n\r\n")
        assert got.status == 400
        ((request_id, code, status, sent, _),) = site.refusals
        assert (request_id, code, status, sent) == (got.headers["x-amz-request-id"], got.code, 400, len(got.body))
    assert not uploads.records


async def test_a_refused_request_takes_no_slot(uploads: Uploads, caplog: pytest.LogCaptureFixture) -> None:
    uploads.is_known = False
    uploads.go.clear()
    async with serving(uploads, max_unauthenticated_bodies=1) as site:
        client = await site.connect()
        await client.send(TOO_LONG)
        await eventually_async(lambda: site.state.running)
        await client.send(b"no length\r\n")
        assert (await client.answer()).status == 400
        (cycle,) = site.state.running
        uploads.go.set()
        await eventually_async(lambda: not site.state.running)
        assert not cycle.has_slot
    assert len(uploads.records) == 1
    assert not caplog.records


async def test_a_failing_record_ends_its_request_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a file that callbacks send, too: there is no task whose exception could be seen."""
    path = tmp_path / "blob"
    path.write_bytes(os.urandom(8 * MIB))
    files = Files(path)

    def fails(*_: Any) -> None:
        monkeypatch.undo()
        raise OSError("planted")

    monkeypatch.setattr(files, "record", fails)
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        await client.send(get(f"/0/{8 * MIB}"))
        assert len((await client.answer()).body) == 8 * MIB
        await client.send(get("/quick"))
        assert (await client.answer()).body == b"ok"
    assert [record.message for record in caplog.records] == ["a request could not be recorded"]


async def cut_download(site: Site, files: Files) -> None:
    client = await slow_client(site)
    await client.send(get(f"/0/{24 * MIB}"))
    await client.reader.read(1000)
    client.writer.transport.abort()
    await eventually_async(lambda: files.sent and not site.state.running)


@pytest.mark.parametrize(("nowait", "waits"), [(True, False), (True, True), (False, False)])
async def test_a_client_that_leaves_is_no_trouble_of_the_store(
    tmp_path: Path, nowait: bool, waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "blob"
    with path.open("wb") as file:
        file.truncate(24 * MIB)
    files, pool = Files(path), StoreThreadPool(2)
    files.nowait, files.waits, files.threads = nowait, waits, pool
    async with serving(files) as site:
        await cut_download(site, files)
    assert 1000 <= files.sent[0] < 24 * MIB
    assert pool.troubles == 0
    assert not caplog.records
    pool.shutdown()


@pytest.mark.parametrize("nowait", [True, False])
async def test_a_file_that_is_too_short_is_an_alarm(
    tmp_path: Path, nowait: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: True)
    path = tmp_path / "blob"
    path.write_bytes(os.urandom(24 * MIB))
    files = Files(path)
    files.nowait = nowait
    async with serving(files) as site:
        client = await slow_client(site)
        await client.send(get(f"/0/{24 * MIB}"))
        await eventually_async(lambda: any(connection.out for connection in site.state.connections))
        os.truncate(path, 0)
        while await client.reader.read(MIB):
            pass
        await eventually_async(lambda: files.sent and not site.state.running)
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.ERROR, logging.WARNING]
    assert caplog.records[0].msg.startswith("integrity alarm")
    assert "cut off" in caplog.records[1].message
