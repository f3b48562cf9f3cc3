"""Faults planted into the programs: the simulation must find them."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from sluice_s3.app.index.objects import transactions
from sluice_s3.app.jobs.reclaim import orphan_sweeper
from sluice_s3.storage_drivers import fsutil
from sluice_s3.storage_drivers.blobs import writer as blobs
from sluice_s3.storage_drivers.packs import writer as packs


class _System:
    """The module os without some of its functions."""

    def __init__(self, **replaced: Any) -> None:
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _plant(module: ModuleType, name: str, replacement: object) -> None:
    setattr(module, name, replacement)


def _nothing(*_: object) -> None:
    """Sync nothing."""


def _no_directory_sync() -> None:
    _plant(fsutil, "sync_directory", _nothing)


def _no_blob_sync() -> None:
    _plant(blobs, "os", _System(fsync=_nothing))


def _no_pack_sync() -> None:
    _plant(packs, "os", _System(fdatasync=_nothing))


def _lost_update() -> None:
    _plant(transactions, "check_conditions", _nothing)


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
    "sweep-of-living": _sweep_of_living,
}
