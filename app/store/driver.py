"""The driver that settings ask for."""

from __future__ import annotations

from app.crash import crash_point
from app.settings import Settings
from storage_drivers.base import Durability
from storage_drivers.local import LocalDriver


def make_driver(settings: Settings, *, create: bool = False) -> LocalDriver:
    """The driver of the one store at `settings.data`. Only `create` may make a store where there is none."""
    durability = Durability(settings.durability)
    return LocalDriver(
        settings.data,
        durability=durability,
        threads=settings.io_threads,
        create=create,
        pack_threshold=settings.pack_threshold,
        pack_size=settings.pack_size,
        at=crash_point,
    )
