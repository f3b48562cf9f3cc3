"""Sending what waits in the outbox: order, failures, retention."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from sluice_s3.app.admin.notifications import target_samples
from sluice_s3.app.index.notifications import transactions as outbox
from sluice_s3.app.index.notifications.rows import Message, NewMessage, delivered_note, note_of
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.jobs.notifications import held_keys, sender
from sluice_s3.app.jobs.notifications.sender import NotificationSender
from sluice_s3.app.jobs.notifications.targets import MessageRefused, Target, TargetError
from sluice_s3.app.settings import NotifyTarget

URL = "http://127.0.0.1:1/"


class Receiver:
    """Takes messages, but for those whose text is in `refused`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or TargetError("no")
        self.sent: list[str] = []
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
            self.sent.append(message.message)
            if message.message in self.refused:
                raise self.error
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


def serving(
    index: SqliteIndex, *receivers: tuple[str, Receiver], retention: float = 1000, refusals: int = 10
) -> NotificationSender:
    """Targets by name; the URL tells which."""
    by_url = {f"{URL}{name}": receiver for name, receiver in receivers}
    settings = {name: NotifyTarget.model_validate({"url": f"{URL}{name}"}) for name, _ in receivers}

    def make(target: NotifyTarget) -> Target:
        return by_url[target.url.get_secret_value()]

    return NotificationSender(index, settings, retention, make, refusals=refusals)


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
    at_once(monkeypatch)
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
    delivered = orjson.loads(await index.note(delivered_note("t")))
    assert (delivered["messages"], delivered["at"] >= noted["at"] - 10_000) == (3, True)
    receiver.refused.clear()
    await job.run_once()
    assert receiver.taken[-2:] == ["a2", "a3"]
    assert orjson.loads(await index.note(delivered_note("t")))["messages"] == 2
    assert await index.note(note_of("t")) == ""


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not taken is due again at once."""
    monkeypatch.setattr(sender, "PAUSE", 0.0)
    monkeypatch.setattr(held_keys, "PAUSE_SECONDS", 0.0)


ERRORS = [MessageRefused("it answered 422"), TargetError("it answered 500"), TimeoutError()]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
async def test_one_message_that_is_never_taken_holds_up_no_other_key(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    receiver = Receiver(error)
    receiver.refused = {"bad"}
    monkeypatch.setattr(outbox, "PAGE", 300)
    good = [(f"k{number % 700}", f"{number:04}") for number in range(2000)]
    await add(index, "t", ("poison", "bad"), *good[:1000], ("poison", "behind"), *good[1000:])
    job = serving(index, ("t", receiver))
    await job.run_once()
    await wait(job)
    assert sorted(receiver.taken) == [text for _, text in good]
    assert receiver.sent.count("bad") == 1
    await add(index, "t", ("new", "new"), ("poison", "behind too"))
    await job.run_once()
    assert receiver.taken[-1] == "new", "it goes out at once"
    assert [one.messages for one in await index.backlog()] == [3]
    receiver.refused.clear()
    for held in job._serving[0].keys.held.values():
        held.due = 0.0
    await job.run_once()
    assert receiver.taken[-3:] == ["bad", "behind", "behind too"]


async def test_what_waits_is_read_from_the_oldest_each_time(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number may be committed after greater ones: no place that was come to before is a place to go on from."""
    monkeypatch.setattr(outbox, "PAGE", 4)
    await add(index, "t", *(("poison", f"bad{number}") for number in range(10)), ("late", "late"))
    held = {((await index.messages("t", 1))[0].bucket_id, "poison")}
    assert [message.message for message in await index.messages_without("t", 100, held)] == ["late"]
    index._cursor.execute("UPDATE outbox SET id = id + 1000")
    await add(index, "t", ("early", "1"), ("early", "2"))
    assert [message.message for message in await index.messages_without("t", 100, held)] == ["1", "2", "late"]
    assert [message.message for message in await index.messages_without("t", 2, held)] == ["1", "2"]
    assert await index.messages_without("other", 2, held) == []


async def wait(job: NotificationSender) -> None:
    """Until the targets are served, which may take longer than a round waits."""
    await asyncio.gather(*(one.task for one in job._serving if one.task is not None))
    await job.run_once()


@pytest.mark.parametrize("error", ERRORS[:2], ids=repr)
async def test_many_keys_that_are_never_taken_hold_up_no_other(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(sender, "PAUSE", 0.0)
    receiver = Receiver(error)
    poison = [(f"p{number}", f"bad{number}") for number in range(sender.EVENTS_PER_BATCH + 50)]
    receiver.refused = {text for _, text in poison}
    await add(index, "t", *poison, ("good", "good"))
    job = serving(index, ("t", receiver))
    for _ in range(3):
        await job.run_once()
        await wait(job)
    assert receiver.taken == ["good"]
    assert max(receiver.sent.count(text) for text in receiver.refused) == 1


async def test_what_is_refused_for_good_is_given_up_and_counted(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at_once(monkeypatch)
    receiver = Receiver(MessageRefused("it answered 413"))
    receiver.refused = {"bad"}
    await add(index, "t", ("k\n", "bad"), ("k\n", "next"), ("other", "good"))
    job = serving(index, ("t", receiver), refusals=3)
    for _ in range(5):
        await job.run_once()
    assert receiver.sent.count("bad") == 3
    assert receiver.taken == ["good", "next"]
    assert await index.backlog() == []
    (line,) = [one.getMessage() for one in caplog.records if "given up" in one.getMessage()]
    shown = re.sub(r"\d+", "N", line)
    assert shown == "notifications: message N (bucket N, key 'k\\n') to t is given up: MessageRefused: it answered N"
    settings: Any = SimpleNamespace(notify_targets={"t": NotifyTarget.model_validate({"url": URL})})
    shown = (await target_samples(index, settings)).decode()
    assert 'sluice_notification_given_up_total{target="t",reason="refused"} 1\n' in shown
    assert 'sluice_notification_given_up_total{target="t",reason="expired"} 0\n' in shown
    assert 'sluice_notification_failing{target="t"} 0\n' in shown


async def test_a_target_that_refuses_everything_loses_nothing(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose new release is broken: what it refuses is kept until it takes something, or is too old."""
    at_once(monkeypatch)
    receiver = Receiver(MessageRefused("it answered 400"))
    texts = [f"m{number}" for number in range(20)]
    receiver.refused = set(texts)
    await add(index, "t", *((text, text) for text in texts))
    job = serving(index, ("t", receiver), refusals=2)
    for _ in range(5):
        await job.run_once()
    assert [one.messages for one in await index.backlog()] == [20]
    receiver.refused.clear()
    await job.run_once()
    assert sorted(receiver.taken) == sorted(texts)


async def test_nobody_answers_and_the_target_is_left_alone(index: SqliteIndex) -> None:
    receiver = Receiver(ConnectionRefusedError("nobody"))
    receiver.refused = {"a", "b"}
    await add(index, "t", ("a", "a"), ("b", "b"))
    job = serving(index, ("t", receiver))
    await job.run_once()
    await add(index, "t", ("c", "c"))
    await job.run_once()
    assert sorted(receiver.sent) == ["a", "b"]
    receiver.refused.clear()
    job._serving[0].next = 0.0
    await job.run_once()
    assert sorted(receiver.taken) == ["a", "b", "c"], "and no key is held"


async def test_after_a_long_outage_what_was_held_is_due(index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    receiver = Receiver()
    receiver.refused = {"a", "b"}
    await add(index, "t", ("a", "a"), ("b", "b"))
    job = serving(index, ("t", receiver))
    for _ in range(5):
        await job.run_once()
    monkeypatch.setattr(held_keys, "PAUSE_SECONDS", 1000.0)
    await job.run_once()
    receiver.refused.clear()
    await add(index, "t", ("c", "c"))
    await job.run_once()
    await job.run_once()
    assert sorted(receiver.taken) == ["a", "b", "c"]


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
    monkeypatch.setattr(sender, "ROUND_SECONDS", 0.05)
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
