"""One trial: workers under load, one killed alone, power cuts, restarts, and a look at what was acknowledged."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import shutil
import time
from pathlib import Path

from sluice_s3.app.errors import CommitUnknown, DomainError, NoSuchKey, Overloaded, PreconditionFailed, StoreUnavailable
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.store import objects
from sluice_s3.storage_drivers.objects import initialize
from tests.reliability.lab.checkers import versions
from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Kind, Operation, Outcome, Removal
from tests.reliability.lab.checkers.registers import check
from tests.reliability.lab.checkers.versions import Version
from tests.reliability.simulation import lost_index, replaced
from tests.reliability.simulation.disk import Disk
from tests.reliability.simulation.replaced import Mount
from tests.reliability.simulation.scheduler import Loop, Process, Scheduler, Simulation
from tests.reliability.simulation.worker import Bytes, SimulatedDriver, Worker

PLAIN, VERSIONED = ("a", "b", "c", "d"), ("v", "w")
"""Keys, each of the bucket of its kind."""
SMALL, LARGE = 2000, 9000
CUTS = 2
WORKERS = 2
CLOCK_STEP = 0.03
"""Probability that the wall clock jumps before an operation."""
PAGE = 3
"""Versions of a page."""
logging.disable(logging.CRITICAL)


class Trial:
    """What a seed decides."""

    buckets: dict[str, int] = {}
    """By key."""

    def __init__(self, seed: int, root: Path, template: Path) -> None:
        self.scheduler = Simulation.scheduler = Scheduler(seed)
        self.random = random.Random(seed)
        self.template, self.root = template, root
        self.history: dict[str, list[Operation]] = {key: [] for key in PLAIN + VERSIONED}
        self.removals: list[Removal] = []
        self.processes: dict[int, Process] = {}
        self.busy: set[int] = set()
        """Workers whose clients have not ended."""
        self.begun: dict[tuple[int, object], float] = {}
        self.findings: list[str] = []
        self.bodies = 0
        self.kills = 0
        self.moved = 0
        """Bytes that compaction moved."""

    def run(self) -> list[str]:
        """Return what is wrong."""
        place = self.root / "0"
        shutil.copytree(self.template, place)
        for cut in range(CUTS):
            self._begin(place, operations=12)
            steps = self.random.randrange(300, 9000)
            if self.random.random() < 0.6:
                before = self.random.randrange(steps)
                self.scheduler.run_for(before, self._have_ended)
                steps -= before
                self._kill_one(place)
            self.scheduler.run_for(steps, self._have_ended)
            self.scheduler.cut_power()
            disk, Mount.disk = Mount.disk, None
            assert disk is not None
            place = self.root / str(cut + 1)
            shutil.copytree(self.template, place, ignore=lambda _, names: [n for n in names if "." in n])
            disk.cut_power(self.random, place)
            shutil.rmtree(place / "run", ignore_errors=True)
            (place / "run").mkdir(mode=0o700)
        self._look_at_all(place)
        self._lose_index(place)
        self._begin(place, operations=6)
        if self.random.random() < 0.6:
            self.scheduler.run_for(self.random.randrange(4000), self._have_ended)
            self._kill_one(place)
        self.scheduler.run_for(10**9, self._have_ended)
        self._kill_all()
        self._look_at_all(place)
        self._lose_index(place)
        for key, history in self.history.items():
            verdict = check(history)
            if not verdict:
                self.findings.append(f"{key}: {verdict.wrong}; possible was {sorted(verdict.states)}")
        if not self.acknowledged:
            self.findings.append("no change was acknowledged: the trial shows nothing")
        return self.findings

    def _look_at_all(self, place: Path) -> None:
        self._begin(place, operations=0)
        self.scheduler.run_for(10**9, self._have_ended)

    def _lose_index(self, place: Path) -> None:
        """Rebuild the index from the store, with all in its journals: nothing may be another."""
        self._kill_all()
        Mount.disk = Simulation.scheduler = None
        before = lost_index.rows(place)
        lost_index.rebuild(place)
        after = lost_index.rows(place)
        Simulation.scheduler = self.scheduler
        if before != after:
            self.findings.append(f"a rebuild lost {before - after}, and made {after - before}")

    def _kill_all(self) -> None:
        for process in self.processes.values():
            replaced.kill(process)

    @property
    def acknowledged(self) -> int:
        """How many changes were answered as done."""
        changes = [one for history in self.history.values() for one in history if one.kind is not Kind.READ]
        return sum(one.outcome is Outcome.DONE for one in [*changes, *self.removals])

    def digest(self) -> str:
        """Return a digest of all that happened: equal for equal seeds."""
        return hashlib.md5(repr((self.history, self.removals)).encode()).hexdigest()

    def _begin(self, place: Path, operations: int) -> None:
        Mount.disk = Disk(place)
        self._step_clock()
        self.begun.clear()
        for number in range(WORKERS):
            self._start(place, number, operations)

    def _step_clock(self) -> None:
        self.scheduler.clock_error = self.random.choice((0.0, 0.0, -800.0, 800.0))

    def _start(self, place: Path, number: int, operations: int) -> None:
        self.busy.add(number)
        process = self.processes[number] = Process()
        self.scheduler.start(lambda: self._serve(place, number, operations), process)

    def _kill_one(self, place: Path) -> None:
        """Kill a worker while the other goes on, and start one in its place, as the launcher does."""
        number = self.random.randrange(WORKERS)
        replaced.kill(self.processes[number])
        self.kills += 1
        self.begun = {which: begun for which, begun in self.begun.items() if which[0] != number}
        before = self.acknowledged
        self._start(place, number, 12)
        self.scheduler.run_for(self.random.randrange(9000), self._have_ended)
        if not self.busy and self.acknowledged == before:
            self.findings.append("after a worker was killed, no change was acknowledged")

    def _have_ended(self) -> bool:
        return not self.busy

    def _serve(self, place: Path, number: int, operations: int) -> None:
        loop = Loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._work(place, number, operations))
        except Exception as error:
            self.findings.append(f"worker {number}: {error!r}")
        self.busy.discard(number)
        self.scheduler.wait(lambda: False)

    async def _work(self, place: Path, number: int, operations: int) -> None:
        worker = Worker(place, self._count_compaction)
        await worker.start()
        jobs = asyncio.create_task(worker.jobs(self._oldest, leads=number == 0))
        if not operations:
            await asyncio.sleep(0.3)  # the sweep and the garbage collector have run
            for key in PLAIN + VERSIONED:
                await self._read(worker, key)
            await self._list_versions(worker)
        else:
            await asyncio.gather(*(self._client(worker, number, operations) for _ in range(3)))
            await asyncio.sleep(0.2)
        jobs.cancel()

    def _count_compaction(self, moved: int, _freed: int) -> None:
        self.moved += moved

    def _oldest(self) -> int:
        return int(min(self.begun.values(), default=time.monotonic()) * 1000)

    async def _client(self, worker: Worker, number: int, operations: int) -> None:
        for _ in range(operations):
            if self.random.random() < CLOCK_STEP:
                self._step_clock()
            key, kind = self.random.choice(PLAIN + VERSIONED), self.random.random()
            token = (number, object())
            self.begun[token] = time.monotonic()
            try:
                if kind < 0.5:
                    await self._put(worker, key)
                elif kind < 0.6 and key in VERSIONED:
                    await self._remove(worker, key)
                elif kind < 0.7:
                    await self._change(key, Kind.DELETE, ABSENT, None, worker)
                else:
                    await self._read(worker, key)
            finally:
                self.begun.pop(token, None)

    async def _put(self, worker: Worker, key: str) -> None:
        self.bodies += 1
        seen = [one.value for one in self.history[key] if one.kind is Kind.WRITE]
        condition = self.random.choice([None, None, IF_NONE_MATCH, *seen[-1:], *seen[-1:]])
        body = f"{key} {self.bodies} ".encode() * self.random.choice((SMALL // 8, SMALL // 8, SMALL // 8, LARGE // 8))
        await self._change(key, Kind.WRITE, hashlib.md5(body).hexdigest(), condition, worker, body)

    async def _change(
        self, key: str, kind: Kind, value: str, condition: str | None, worker: Worker, body: bytes = b""
    ) -> None:
        history, begun = self.history[key], time.monotonic()
        history.append(Operation(kind, begun, outcome=Outcome.UNKNOWN, value=value, condition=condition))
        at = len(history) - 1
        conditions = None
        if condition is not None:
            conditions = Conditions(if_none_match=True) if condition == IF_NONE_MATCH else Conditions(condition)
        done = None
        try:
            if kind is Kind.WRITE:
                source = Bytes(body)
                done = await objects.put(worker.store, self.buckets[key], key, source, source.describe, conditions, {})
            else:
                done = await objects.delete(worker.store, self.buckets[key], key, None, None, {})
            outcome = Outcome.DONE
        except PreconditionFailed:
            outcome = Outcome.REFUSED
        except NoSuchKey:
            outcome = Outcome.MISSING
        except (CommitUnknown, Overloaded, StoreUnavailable):
            return
        version = done.version_id if done is not None and key in VERSIONED else ""
        history[at] = history[at]._replace(ended=time.monotonic(), outcome=outcome, version=version)

    async def _remove(self, worker: Worker, key: str) -> None:
        """Remove a version that another one certainly came after, so that the state of the key stays."""
        done = [one for one in self.history[key] if one.version and one.outcome is Outcome.DONE]
        done = [one for one in done if any(other.begun > one.ended for other in done)]
        if not done:
            return
        version, begun = self.random.choice(done).version, time.monotonic()
        self.removals.append(Removal(key, version, begun, begun, Outcome.UNKNOWN))
        at = len(self.removals) - 1
        try:
            await objects.delete(worker.store, self.buckets[key], key, version, None, {})
        except (CommitUnknown, Overloaded, StoreUnavailable):
            return
        self.removals[at] = Removal(key, version, begun, time.monotonic(), Outcome.DONE)

    async def _read(self, worker: Worker, key: str) -> None:
        begun, value = time.monotonic(), ABSENT
        try:
            value = await worker.read(self.buckets[key], key)
        except NoSuchKey:
            pass
        except DomainError as error:
            self.findings.append(f"{key}: a read answered {error!r}")
            return
        self.history[key].append(Operation(Kind.READ, begun, time.monotonic(), value=value))

    async def _list_versions(self, worker: Worker) -> None:
        """Compare what is listed in the end with what was done, and read each version."""
        listed = await worker.versions(self.buckets[VERSIONED[0]], PAGE)
        for key in VERSIONED:
            seen = [
                Version(one.version_id, one.etag, one.state in (CURRENT, MARKER), f"{one.modified:020}")
                for one in listed
                if one.key == key
            ]
            removals = [one for one in self.removals if one.key == key]
            for kind, text in versions.faults(seen, self.history[key], removals):
                self.findings.append(f"{key}: {kind}: {text}")
            for one in seen:
                if one.etag and await worker.read(self.buckets[key], key, one.id) != one.etag:
                    self.findings.append(f"{key}: version {one.id} has other bytes")


def make_template(root: Path) -> None:
    """Make an index with two buckets, one with versions, and an empty store."""

    async def make() -> None:
        (root / "index").mkdir(parents=True)
        (root / "run").mkdir(mode=0o700)
        migrate.upgrade(root / "index/sluice.db", root / "run/index.lock")
        driver = SimulatedDriver(root / "data", create=True)
        (root / "data").mkdir()
        await driver.start()
        found = driver.probe
        assert found is not None
        vars(initialize)["measure_store"] = lambda *_: found
        index = SqliteIndex(root / "index/sluice.db", root / "run", local_only=False)
        await index.start()
        for name, keys in (("plain", PLAIN), ("versioned", VERSIONED)):
            bucket = (await index.create_bucket(name, "a" * 64, "us-east-1", 10)).id
            Trial.buckets |= dict.fromkeys(keys, bucket)
        await index.set_versioning(Trial.buckets[VERSIONED[0]], ENABLED)
        await index.close()
        await driver.close()

    Simulation.scheduler = scheduler = Scheduler(0)
    done: list[BaseException | None] = []

    def run() -> None:
        try:
            Loop().run_until_complete(make())
            done.append(None)
        except BaseException as error:
            done.append(error)

    scheduler.start(run)
    scheduler.wait(lambda: bool(done))
    Simulation.scheduler = None
    if done[0] is not None:
        raise done[0]
    shutil.rmtree(root / "run")
    (root / "run").mkdir(mode=0o700)
