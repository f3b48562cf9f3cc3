"""One trial: gateways under load, power cuts at random steps, restarts, and a look at every acknowledged operation."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice_s3.app.errors import CommitUnknown, DomainError, NoSuchKey, Overloaded, PreconditionFailed, StoreUnavailable
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import OrphanSweeper
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.named_driver import NamedDriver
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.objects import initialize
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import FUSE
from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Kind, ObjectChange, Operation
from tests.reliability.lab.checkers.registers import check
from tests.reliability.simulation.disk import Disk
from tests.reliability.simulation.replaced import Mount
from tests.reliability.simulation.scheduler import Loop, Scheduler, Simulation

KEYS = ("a", "b", "c", "d")
SMALL, LARGE = 2000, 9000
PACK_THRESHOLD, PACK_SIZE = 4096, 16_384
"""Bytes. A pack is full after a few small bodies, so that some are mostly dead soon."""
COMPACTION_RATE = 1 << 30
CUTS = 2
GRACE_SECONDS = 0.01
logging.disable(logging.CRITICAL)


class SimulatedDriver(ObjectsDriver):
    """A store whose small bodies go into packs and whose large ones have files."""

    mount_profile = FUSE


class Bytes:
    """A body."""

    def __init__(self, body: bytes) -> None:
        self.size: int | None = len(body)
        self._left = body
        self.etag = hashlib.md5(body).hexdigest()

    async def read(self) -> bytes:
        body, self._left = self._left, b""
        return body

    def digest(self, piece: Any) -> None:
        """The ETag is known."""

    def verify(self) -> None:
        """The body is right."""

    def describe(self, locator: str) -> NewVersion:
        return NewVersion(self.size or 0, self.etag, "{}", "STANDARD", "", "", "", locator, 0, "owner")


class Gateway:
    """A worker with an index, a store and jobs of its own, in a simulated thread."""

    def __init__(self, root: Path, count: Callable[[int, int], None]) -> None:
        self.root = root
        self.count = count
        """Takes the bytes that compaction moved and freed."""

    async def start(self) -> None:
        self.index = SqliteIndex(self.root / "index/sluice.db", self.root / "run", local_only=False)
        await self.index.start()
        driver = SimulatedDriver(
            self.root / "data", create=False, threads=4, pack_threshold=PACK_THRESHOLD, pack_size=PACK_SIZE
        )
        await driver.start()
        self.store = Store(self.index, NamedDriver(driver, "default"))
        self.store.open_packs()

    async def jobs(self, oldest: Callable[[], int], *, leads: bool) -> None:
        now = lambda: int(time.monotonic() * 1000)  # noqa: E731
        journals = JournalWriter(self.store)
        garbage = GarbageCollector(self.store, oldest, now, GRACE_SECONDS, journals.bound)
        compactor = Compactor(self.store, COMPACTION_RATE, GRACE_SECONDS, self.count)
        sweeper = OrphanSweeper(self.store, self.index.is_writer_dead)
        while True:
            try:
                await sweeper.run_once()
                if leads:
                    await journals.run_once()
                    await garbage.run_once()
                    await compactor.run_once()
            except (DomainError, DriverError):
                pass
            await asyncio.sleep(0.02)


class Trial:
    """What a seed decides."""

    bucket = 0

    def __init__(self, seed: int, root: Path, template: Path) -> None:
        self.scheduler = Simulation.scheduler = Scheduler(seed)
        self.random = random.Random(seed)
        self.template, self.root = template, root
        self.history: dict[str, list[Operation]] = {key: [] for key in KEYS}
        self.begun: dict[object, float] = {}
        self.findings: list[str] = []
        self.bodies = 0
        self.moved = 0
        """Bytes that compaction moved."""

    def run(self) -> list[str]:
        """Return what is wrong."""
        place = self.root / "0"
        shutil.copytree(self.template, place)
        for cut in range(CUTS):
            Mount.disk = Disk(place)
            self.begun.clear()
            self._begin(place, operations=12)
            self.scheduler.run_until_power_cut(self.random.randrange(300, 9000), lambda: self.left == 0)
            disk, Mount.disk = Mount.disk, None
            place = self.root / str(cut + 1)
            shutil.copytree(self.template, place, ignore=lambda _, names: [n for n in names if "." in n])
            disk.cut_power(self.random, place)
            shutil.rmtree(place / "run", ignore_errors=True)
            (place / "run").mkdir(mode=0o700)
        Mount.disk = Disk(place)
        self._begin(place, operations=0)
        self.scheduler.run_until_power_cut(10**9, lambda: self.left == 0)
        for key, history in self.history.items():
            verdict = check(history)
            if not verdict:
                self.findings.append(f"{key}: {verdict.wrong}; possible was {sorted(verdict.states)}")
        if not self.acknowledged:
            self.findings.append("no change was acknowledged: the trial shows nothing")
        return self.findings

    @property
    def acknowledged(self) -> int:
        """How many changes were answered as done."""
        changes = [one for history in self.history.values() for one in history if one.kind is not Kind.READ]
        return sum(one.told is ObjectChange.DONE for one in changes)

    def digest(self) -> str:
        """Return a digest of all that happened: equal for equal seeds."""
        return hashlib.md5(repr(self.history).encode()).hexdigest()

    def _begin(self, place: Path, operations: int) -> None:
        self.left = 2
        for number in range(2):
            self.scheduler.start(lambda number=number: self._serve(place, number, operations))

    def _serve(self, place: Path, number: int, operations: int) -> None:
        loop = Loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._work(place, number, operations))
        except Exception as error:
            self.findings.append(f"gateway {number}: {error!r}")
        self.left -= 1
        self.scheduler.wait(lambda: False)

    async def _work(self, place: Path, number: int, operations: int) -> None:
        gateway = Gateway(place, self._count_compaction)
        await gateway.start()
        jobs = asyncio.create_task(gateway.jobs(self._oldest, leads=number == 0))
        if not operations:
            await asyncio.sleep(1)  # the sweep and the garbage collector have run
            for key in KEYS:
                await self._read(gateway, key)
        else:
            await asyncio.gather(*(self._client(gateway, operations) for _ in range(3)))
            await asyncio.sleep(0.2)
        jobs.cancel()

    def _count_compaction(self, moved: int, _freed: int) -> None:
        self.moved += moved

    def _oldest(self) -> int:
        return int(min(self.begun.values(), default=time.monotonic()) * 1000)

    async def _client(self, gateway: Gateway, operations: int) -> None:
        for _ in range(operations):
            key, kind = self.random.choice(KEYS), self.random.random()
            token = object()
            self.begun[token] = time.monotonic()
            try:
                if kind < 0.5:
                    await self._put(gateway, key)
                elif kind < 0.7:
                    await self._change(key, Kind.DELETE, ABSENT, None, gateway)
                else:
                    await self._read(gateway, key)
            finally:
                self.begun.pop(token, None)

    async def _put(self, gateway: Gateway, key: str) -> None:
        self.bodies += 1
        seen = [one.value for one in self.history[key] if one.kind is Kind.WRITE]
        condition = self.random.choice([None, None, IF_NONE_MATCH, *seen[-1:], *seen[-1:]])
        body = f"{key} {self.bodies} ".encode() * self.random.choice((SMALL // 8, SMALL // 8, SMALL // 8, LARGE // 8))
        await self._change(key, Kind.WRITE, hashlib.md5(body).hexdigest(), condition, gateway, body)

    async def _change(
        self, key: str, kind: Kind, value: str, condition: str | None, gateway: Gateway, body: bytes = b""
    ) -> None:
        history, begun = self.history[key], time.monotonic()
        history.append(Operation(kind, begun, told=ObjectChange.NOTHING, value=value, condition=condition))
        at = len(history) - 1
        conditions = None
        if condition is not None:
            conditions = Conditions(if_none_match=True) if condition == IF_NONE_MATCH else Conditions(condition)
        try:
            if kind is Kind.WRITE:
                source = Bytes(body)
                await objects.put(gateway.store, self.bucket, key, source, source.describe, conditions, {})
            else:
                await objects.delete(gateway.store, self.bucket, key, None, None, {})
            told = ObjectChange.DONE
        except PreconditionFailed:
            told = ObjectChange.REFUSED
        except NoSuchKey:
            told = ObjectChange.MISSING
        except (CommitUnknown, Overloaded, StoreUnavailable):
            return
        history[at] = history[at]._replace(ended=time.monotonic(), told=told)

    async def _read(self, gateway: Gateway, key: str) -> None:
        begun, value = time.monotonic(), ABSENT
        try:
            version = await objects.find(gateway.store, self.bucket, key)
            body = await reading.read_body(gateway.store, version, 0, version.size, {})
            if not isinstance(body, bytes):
                pieces = [piece if isinstance(piece, bytes) else _bytes_of(piece) async for piece in body]
                body = b"".join(pieces)
            value = hashlib.md5(body).hexdigest()
        except NoSuchKey:
            pass
        except DomainError as error:
            self.findings.append(f"{key}: a read answered {error!r}")
            return
        self.history[key].append(Operation(Kind.READ, begun, time.monotonic(), value=value))


def _bytes_of(piece: Any) -> bytes:
    try:
        return os.pread(piece.fd, piece.count, piece.offset)
    finally:
        piece.release()


def make_template(root: Path) -> None:
    """Make an index with one bucket and an empty store."""

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
        Trial.bucket = (await index.create_bucket("bucket", "a" * 64, "us-east-1", 10)).id
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
