"""Sending what waits in the outbox: order, failures, retention."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from app.feature_settings import NotifyTarget
from app.index.deliveries import Message, NewMessage, note_of
from app.index.sqlite import SqliteIndex
from app.jobs import events
from app.jobs.events import Events
from app.jobs.targets import Target, TargetError

URL = "http://127.0.0.1:1/"


class Receiver:
    """Takes messages, but for those whose text is in `refused`."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.refused: set[str] = set()
        self.running: set[str] = set()
        self.most = self.closed = 0
        self.hold: asyncio.Event | None = None

    async def send(self, message: Message) -> None:
        assert message.key not in self.running
        self.running.add(message.key)
        self.most = max(self.most, len(self.running))
        try:
            await (asyncio.sleep(0) if self.hold is None else self.hold.wait())
            if message.message in self.refused:
                raise TargetError("no")
            self.taken.append(message.message)
        finally:
            self.running.discard(message.key)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[SqliteIndex]:
    made = SqliteIndex(tmp_path / "index.db", tmp_path / "run")
    (tmp_path / "run" / "writers").mkdir(parents=True)
    await made.start(migrate=True)
    await made.create_bucket("bucket", "owner", "us-east-1", 10)
    yield made
    await made.close()


async def add(index: SqliteIndex, target: str, *messages: tuple[str, str]) -> None:
    bucket = await index.bucket("bucket")
    assert bucket is not None
    made = [NewMessage(target, bucket.id, key, text) for key, text in messages]
    await index.configure_messages(bucket.id, "notification", None, made)


def serving(index: SqliteIndex, *receivers: tuple[str, Receiver], retention: float = 1000) -> Events:
    """Targets by name; the URL tells which."""
    by_url = {f"{URL}{name}": receiver for name, receiver in receivers}
    settings = {name: NotifyTarget.model_validate({"url": f"{URL}{name}"}) for name, _ in receivers}

    def make(target: NotifyTarget) -> Target:
        return by_url[target.url.get_secret_value()]

    return Events(index, settings, retention, make)


async def test_each_key_in_its_order(index: SqliteIndex) -> None:
    receiver = Receiver()
    sent = [(f"k{number % 7}", f"{number % 7}-{number:03}") for number in range(600)]  # more than one batch
    await add(index, "a", *sent)
    await serving(index, ("a", receiver)).run_once()
    assert sorted(receiver.taken) == sorted(text for _, text in sent)
    for key in range(7):
        of_key = [text for text in receiver.taken if text.startswith(f"{key}-")]
        assert of_key == sorted(of_key)
    assert receiver.most > 1
    assert await index.backlog() == []


async def test_what_is_refused_holds_up_its_key_alone(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE", 0.0)
    receiver = Receiver()
    receiver.refused = {"a2"}
    await add(index, "t", ("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3"), ("b", "b2"))
    job = serving(index, ("t", receiver))
    await job.run_once()
    assert sorted(receiver.taken) == ["a1", "b1", "b2"]
    noted = orjson.loads(await index.note(note_of("t")))
    assert noted["error"] == "TargetError: no"
    assert receiver.closed == 1
    assert [one.messages for one in await index.backlog()] == [2]
    receiver.refused.clear()
    await job.run_once()
    assert receiver.taken[-2:] == ["a2", "a3"]
    assert await index.note(note_of("t")) == ""


async def test_a_target_that_fails_is_left_alone(index: SqliteIndex) -> None:
    receiver, other = Receiver(), Receiver()
    receiver.refused = {"x"}
    await add(index, "t", ("k", "x"))
    await add(index, "u", ("k", "y"))
    job = serving(index, ("t", receiver), ("u", other))
    await job.run_once()
    assert other.taken == ["y"]
    receiver.refused.clear()
    await job.run_once()
    assert receiver.taken == []
    assert [one.target for one in await index.backlog()] == ["t"]


async def test_a_target_that_hangs_holds_up_no_other(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PATIENCE", 0.05)
    receiver, other = Receiver(), Receiver()
    receiver.hold = asyncio.Event()
    await add(index, "t", ("k", "x"))
    job = serving(index, ("t", receiver), ("u", other))
    await job.run_once()
    await add(index, "u", ("k", "y"))
    await job.run_once()
    assert (receiver.taken, other.taken) == ([], ["y"])
    await job.close()
    assert [one.target for one in await index.backlog()] == ["t"]


async def test_what_is_too_old_is_given_up(index: SqliteIndex, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver()
    await add(index, "t", ("k", "x"))
    await asyncio.sleep(0.01)
    await serving(index, ("t", receiver), retention=0.001).run_once()
    assert receiver.taken == []
    assert await index.backlog() == []
    assert "given up" in caplog.text


async def test_what_waits_for_a_target_that_is_gone_is_given_up_too(
    index: SqliteIndex, caplog: pytest.LogCaptureFixture
) -> None:
    await add(index, "gone", *((f"k{number}", "x") for number in range(300)))  # more than one batch
    await serving(index, retention=1000).run_once()
    assert [(one.target, one.messages) for one in await index.backlog()] == [("gone", 300)]
    await asyncio.sleep(0.01)
    job = serving(index, retention=0.001)
    for _ in range(10):  # a round may stop before it is through
        await job.run_once()
    assert await index.backlog() == []
    assert "messages to gone are given up" in caplog.text
