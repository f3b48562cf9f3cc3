"""The board of jobs: wishes reach the leader, a paused job stops where it waits, and idleness writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index import Index
from sluice_s3.app.index.meta.rows import JOB_CONTROL, JOB_STATUS
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.jobs import board as module
from sluice_s3.app.jobs.audit_retention import AuditRetention
from sluice_s3.app.jobs.board import REQUEST_MS, UNFORESEEN, JobBoard
from sluice_s3.app.jobs.pacing import Pacer
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.store.site import opened, prepare

Look = Callable[[dict[str, Any]], object]


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with opened(settings) as store:
        yield store.index


@pytest.fixture
async def board(index: Index, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JobBoard]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.02)
    made = JobBoard(index)
    publishing = asyncio.create_task(made.publish())
    yield made
    publishing.cancel()
    with suppress(asyncio.CancelledError):
        await publishing


async def wish(index: Index, **wishes: object) -> None:
    await index.change_note(JOB_CONTROL, lambda _: orjson.dumps(wishes).decode())


async def status(index: Index) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(await index.note(f"{JOB_STATUS}job") or "{}")
    return found


async def shown(index: Index, look: Look) -> None:
    """Wait for a status."""

    async def is_shown() -> bool:
        return bool(look(await status(index)))

    await eventually_async(is_shown)


class Job:
    """A job that says whether it did something."""

    def __init__(self, result: object = None) -> None:
        self.result = result
        self.runs = self.asked = 0

    async def __call__(self) -> object:
        self.runs += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def again(self) -> None:
        self.asked += 1


async def test_a_paused_job_does_not_begin(index: Index, board: JobBoard) -> None:
    job = Job()
    await wish(index, paused=["job"])
    await board.run("job", "", job)
    assert job.runs == 0
    await shown(index, lambda found: found.get("state") == "paused")
    await wish(index, paused=["another"])
    await board.run("job", "", job)
    assert job.runs == 1
    await shown(index, lambda found: found["state"] == "idle")


async def test_a_wish_to_run_is_heard_once(index: Index, board: JobBoard) -> None:
    job = Job()
    board.add("job", job.again)
    await wish(index, run={"job": now_ms() - REQUEST_MS - 1})
    await board.run("job", "", job)
    assert job.asked == 0, "it was for the leader before"
    await wish(index, run={"job": now_ms()})
    for _ in range(3):
        await board.run("job", "", job)
    assert (job.asked, job.runs) == (1, 4)
    await shown(index, lambda found: found.get("ended", 0) != 0)


async def test_rounds_without_work_write_nothing_and_errors_are_told_once(index: Index, board: JobBoard) -> None:
    for _ in range(3):
        await board.run("job", "", Job())
    await asyncio.sleep(0.1)
    assert await status(index) == {}
    for failure, text in ((StoreUnavailable(reason="away"), "StoreUnavailable"), (ValueError("/secret"), UNFORESEEN)):
        await board.run("job", "", Job(failure))
        await shown(index, lambda found, text=text: found.get("error") == text)
    await board.run("job", "", Job())
    await shown(index, lambda found: found.get("error") == "")


async def test_a_job_that_is_paused_waits_where_it_waits_for_other_work(index: Index, board: JobBoard) -> None:
    steps = 0
    pacer = Pacer()

    async def work() -> bool:
        nonlocal steps
        while steps < 5:
            steps += 1
            if steps == 2:
                await wish(index, paused=["job"])
            await asyncio.gather(pacer.wait(0.0))
        return True

    running = asyncio.create_task(board.run("job", "", work))
    await shown(index, lambda found: found.get("state") == "paused")
    assert steps == 2
    await wish(index, paused=[])
    await asyncio.wait_for(running, 5)
    assert steps == 5
    await shown(index, lambda found: found["state"] == "idle" and found["ended"] != 0)


async def test_old_events_of_the_audit_log_go_every_five_minutes(index: Index) -> None:
    now = 0.0
    job = AuditRetention(index, 1, lambda: now)
    assert await job.run_once()
    assert not await job.run_once()
    job.run_again()
    assert await job.run_once()
    now += 301
    assert await job.run_once()
