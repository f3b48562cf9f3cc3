"""Turns by leases: one at a time, taken over, left when the store is out of reach; an old one commits nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app import main, private_files
from sluice_s3.app.errors import LeaseLost
from sluice_s3.app.index.engine import fencing
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.jobs import leader_election, runner
from sluice_s3.app.jobs.leader_election import FlockElection, LeaseElection
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.runner import Jobs, StoreJobs
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.s3.test_fast_path import two
from tests.unit.store.site import opened, prepare

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.01)
    made = make_settings(tmp_path)
    prepare(made)
    return made


class Round(GarbageCollector):
    """Notes who ran, instead of collecting."""

    def __init__(self, name: str, store: Store, rounds: list[str]) -> None:
        super().__init__(store, lambda: 0, lambda: 0, 0)
        self._name = name
        self._rounds = rounds

    async def run_once(self) -> int:
        self._rounds.append(self._name)
        return 0


def gateway(name: str, store: Store, rounds: list[str], made: list[str]) -> Jobs:
    """The jobs of one gateway."""

    def make(one: Store) -> StoreJobs:
        made.append(name)
        return StoreJobs(one, Round(name, one, rounds))

    return Jobs(LeaseElection(store.index), store, lambda _: False, make)


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_at_a_time_and_the_next(settings: Settings) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await eventually_async(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())
        await asyncio.sleep(0.3)
        assert set(rounds) == {"first"}
        await end(first)
        await eventually_async(lambda: "second" in rounds)
        assert "first" not in rounds[rounds.index("second") :]
        await end(second)


async def test_taken_over_from_a_holder_that_was_declared_dead(settings: Settings) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await eventually_async(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())
        await second_store.index.declare_dead(first_store.index.incarnation)
        await eventually_async(lambda: "second" in rounds)
        last = rounds.index("second")
        await eventually_async(lambda: len(rounds) > last + 20)
        assert set(rounds[last + 5 :]) == {"second"}, "the other found out that it is not its turn any more"
        await end(first, second)


async def test_a_store_out_of_reach_is_left_to_others(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await eventually_async(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())

        class UnavailableDriver:
            up = False

        monkeypatch.setattr(first_store, "breaker", UnavailableDriver())
        await eventually_async(lambda: "second" in rounds)
        monkeypatch.setattr(first_store, "breaker", None)
        await asyncio.sleep(0.2)
        assert rounds[-1] == "second"
        assert made.count("first") == 2, "what it kept in memory is made anew"
        await end(first, second)


async def test_what_was_begun_in_an_old_turn_commits_nothing(settings: Settings) -> None:
    """As the engine for several gateways runs it: the check is in the transaction."""
    async with opened(settings) as store:
        index: Any = store.index
        leadership = LeaseElection(index).get_leadership("store:default")
        assert await leadership.try_acquire()
        plain = index._commit

        async def fenced(write: Any, arguments: Any) -> Any:
            return await plain(Write(fencing.fenced(write.function), locks=write.locks), arguments)

        index._commit = fenced
        with leadership.fence():
            await index.set_note("a", "1")
        await index.release_lease(leadership._lease)  # type: ignore[attr-defined]
        assert await LeaseElection(index).get_leadership("store:default").try_acquire()
        with leadership.fence(), pytest.raises(LeaseLost):
            await index.set_note("a", "2")
        assert await index.note("a") == "1"
        assert not await leadership.try_acquire(), "and it knows"


class Leaky:
    """Opens files, but raises the errors that a test gives it first."""

    def __init__(self, *errors: OSError) -> None:
        self._errors = list(errors)

    def __call__(self, path: Path) -> int:
        if self._errors:
            raise self._errors.pop(0)
        return private_files.open_file(path)


async def test_jobs_outlive_a_lock_file_that_cannot_be_opened(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [OSError(number, os.strerror(number)) for number in (errno.EMFILE, errno.ENFILE, errno.EROFS)]
    monkeypatch.setattr(leader_election, "open_file", Leaky(*errors))
    rounds: list[str] = []
    async with opened(settings) as store:
        lock = FlockElection(settings.run_dir / "jobs.lock")
        jobs = Jobs(lock, store, lambda _: False, lambda one: StoreJobs(one, Round("jobs", one, rounds)))
        task = asyncio.create_task(jobs.run())
        await eventually_async(lambda: rounds or task.done())
        assert not task.done()
        await end(task)
    (line,) = [record.getMessage() for record in caplog.records if "lock file" in record.getMessage()]
    assert line == "jobs: the lock file cannot be used, to be tried again: Too many open files"


async def test_a_lock_that_fails_leaks_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    tmp_path.chmod(0o700)
    monkeypatch.setattr(leader_election.fcntl, "flock", refuse)
    lock = FlockElection(tmp_path / "jobs.lock")
    before = len(os.listdir("/proc/self/fd"))
    assert not await lock.try_acquire()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_worker_whose_jobs_end_ends_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever ended them: another worker takes its place. A worker that is stopped sends itself no signal."""
    for name in ("stopped", "ended"):
        (tmp_path / name).mkdir(mode=0o700)
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(main.os, "kill", lambda *signalled: sent.append(signalled))
    ended = asyncio.Event()

    async def run(_: Jobs) -> None:
        await ended.wait()
        raise ValueError

    monkeypatch.setattr(Jobs, "run", run)
    async with two(tmp_path / "stopped"):
        pass
    assert sent == []
    async with two(tmp_path / "ended"):
        ended.set()
        await eventually_async(lambda: sent)
    assert sent == [(os.getpid(), signal.SIGTERM)]


async def test_a_lock_of_another_process_is_tried_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a dozen jobs asks for it each second; an attempt checks the whole path to the file."""
    tmp_path.chmod(0o700)
    holder, other = (FlockElection(tmp_path / "jobs.lock") for _ in range(2))
    assert await holder.try_acquire()
    assert not await other.try_acquire()
    await holder.close()
    assert not await other.try_acquire(), "it was tried a moment ago"
    monkeypatch.setattr(leader_election, "monotonic", lambda: float("inf"))
    assert await other.try_acquire()
    await other.close()
