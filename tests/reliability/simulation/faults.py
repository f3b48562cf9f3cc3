"""Faults planted into the programs: the simulation must find them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from sluice_s3.app.index.objects import transactions
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite import commit_thread
from sluice_s3.app.index.versioning import transactions as versioning_transactions
from sluice_s3.app.jobs.reclaim import orphan_sweeper
from sluice_s3.storage_drivers import fsutil
from sluice_s3.storage_drivers.blobs import writer as blobs
from sluice_s3.storage_drivers.packs import writer as packs
from tests.reliability.simulation.scheduler import running


class _System:
    """A module with some of its functions replaced."""

    def __init__(self, module: ModuleType, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _plant(module: ModuleType, name: str, replacement: object) -> None:
    setattr(module, name, replacement)


def _nothing(*_: object) -> None:
    """Sync nothing."""


def _no_directory_sync() -> None:
    _plant(fsutil, "sync_directory", _nothing)


def _no_blob_sync() -> None:
    _plant(blobs, "os", _System(os, fsync=_nothing))


def _no_pack_sync() -> None:
    _plant(packs, "os", _System(os, fdatasync=_nothing))


def _lost_update() -> None:
    _plant(transactions, "check_conditions", _nothing)


def _lock_that_outlives() -> None:
    """The lock of the index is a word in memory, which no kernel frees when its worker dies."""
    held = False

    def lock(_: int, operation: int) -> None:
        nonlocal held
        if operation & fcntl.LOCK_UN:
            if not running().current.process.killed:
                held = False
            return
        while held:
            if operation & fcntl.LOCK_NB:
                raise BlockingIOError
            running().sleep(0.001)
        held = True

    _plant(commit_thread, "fcntl", _System(fcntl, flock=lock))


def _times_by_clock() -> None:
    """The clock alone gives a version its time, also where the one before it has the same."""

    def following(versioning: int, _after: int, _dated: int | None) -> Transaction[tuple[int, str, int]]:
        seq = yield versioning_transactions.DRAW
        modified = versioning_transactions.now_ms()
        return seq, versioning_transactions.version_ids.new_version_id(modified, seq), modified

    _plant(versioning_transactions, "_next", following)


def _sweep_of_living() -> None:
    declare_dead = orphan_sweeper.OrphanSweeper.declare_dead

    async def careless(self: Any) -> None:
        self._is_dead = lambda _: True
        await declare_dead(self)

    async def sweep_all(store: Any, ids: Any, _: int) -> int:
        return sum([await store.driver.discard_id(number) for number in range(ids.first, ids.first + 64)])

    orphan_sweeper.OrphanSweeper.declare_dead = careless  # type: ignore[method-assign]
    _plant(orphan_sweeper, "_sweep_range", sweep_all)


FAULTS: dict[str, Callable[[], None]] = {
    "no-directory-sync": _no_directory_sync,
    "no-blob-sync": _no_blob_sync,
    "no-pack-sync": _no_pack_sync,
    "lost-update": _lost_update,
    "lock-outlives-worker": _lock_that_outlives,
    "times-by-clock": _times_by_clock,
    "sweep-of-living": _sweep_of_living,
}
