"""Makes a backup of a gateway that may serve meanwhile.

First removals are held; then the index is copied in one state; then every file that this copy references. So each file
is there until it is copied: what is discarded from then on is not removed before the hold ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.tools.backup import ExportedIndex, export
from sluice_s3.app.index.tools.hold import hold_removals
from sluice_s3.app.index.tools.manifest import Manifest
from sluice_s3.app.jobs.backup.copier import Copier, Copies, Progress
from sluice_s3.app.jobs.backup.copying import hash_file
from sluice_s3.app.jobs.backup.keys import save_keys
from sluice_s3.app.jobs.backup.place import INDEX, KEYS, MANIFEST, BackupPlace
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.backup_files import needed_file
from sluice_s3.storage_drivers import identity

CHECK_SECONDS = 20.0
"""Seconds between two looks at the hold."""


class Summary(NamedTuple):
    """What a backup has."""

    name: str
    buckets: int
    versions: int
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    """Bytes of stores that were copied; the index is copied each time, and not among them."""
    index_bytes: int
    changed: int
    """Plain files that changed since the index was copied: they are there as they were then."""
    quarantined: int
    faults: list[tuple[str, str, str]]
    """Store, path and reason of what is missing or unreadable in the stores."""
    keys: list[str]
    has_ring: bool
    """Whether there is a key ring, which wants its master key."""


async def create(settings: Settings, place: BackupPlace, *, keys: bool, progress: Progress) -> Summary:
    """Make a backup in this place. Raises DomainError, DriverError, OSError."""
    for name, store in settings.named_stores.items():
        if store.url is not None:
            raise StoreUnavailable(reason=f"store {name} is no directory: backups are of stores with a path")
    place.make(store.path for store in settings.named_stores.values() if store.path is not None)
    with place.locked(alone=True):
        partial = place.begin()
        async with hold_removals(settings.run_dir, settings.index_url) as still_held:
            await export(settings.index_path, settings.index_url, partial / INDEX)
            with ExportedIndex(partial / INDEX) as index:
                place.require_apart(index)
                counts, has_ring = index.counts(), bool(index.keyring)
                saved = save_keys(settings, index.keyring, partial / KEYS) if keys else []
            with closing(Manifest(partial / MANIFEST, create=True)) as manifest:
                work = _Creation(settings, place, partial, manifest)
                copies = await work.copy(still_held, progress)
                await still_held()
                totals = manifest.totals()
        index_bytes = (partial / INDEX).stat().st_size
        name = place.commit(partial)
        buckets, versions, quarantined = counts
        copied = copies.copied_files, copies.copied_bytes, index_bytes, copies.changed
        return Summary(name, buckets, versions, *totals, *copied, quarantined, copies.faults, saved, has_ring)


class _Creation:
    def __init__(self, settings: Settings, place: BackupPlace, partial: Path, manifest: Manifest) -> None:
        self._settings = settings
        self._place = place
        self._manifest = manifest
        self._partial = partial

    async def copy(self, still_held: Callable[[], Awaitable[None]], progress: Progress) -> Copies:
        """Copy all files; raises StoreUnavailable as soon as the hold is lost."""
        stopped = threading.Event()
        copying = asyncio.create_task(asyncio.to_thread(self._copy, progress, stopped))
        try:
            while not (await asyncio.wait((copying,), timeout=CHECK_SECONDS))[0]:
                await still_held()
        finally:
            stopped.set()
            await asyncio.wait((copying,))
        return copying.result()

    def _copy(self, progress: Progress, stopped: threading.Event) -> Copies:
        index_path = self._partial / INDEX
        progress("reading the index", 0, 0)
        with ExportedIndex(index_path) as index:
            lines = self._lines(index)
            self._manifest.set("gateway", index.gateway)
        for name in lines:
            self._manifest.set(f"layout:{name}", self._settings.named_stores[name].layout)
        self._manifest.set("index", hash_file(index_path).hash)
        self._manifest.plan(index_path, needed_file)
        with self._place.newest() as older:
            if older is not None and older.get("gateway") != self._manifest.get("gateway"):
                raise StoreUnavailable(reason=f"{self._place.name} has backups of another gateway")
            stores = self._settings.named_stores
            return Copier(self._place, stores, lines, self._manifest, older).run(progress, stopped)

    def _lines(self, index: ExportedIndex) -> dict[str, str]:
        """Return the directory of shared files of each store, by its identity.

        Raises StoreUnavailable unless the stores of the index are there.
        """
        lines = {}
        for name, (uuid, generation) in index.identities.items():
            store = self._settings.named_stores.get(name)
            if store is None:
                continue  # nothing of it is left, or the gateway would not start: a needed file of it is a fault
            directory = store.directory
            found = None if directory is None else identity.read_identity(directory)
            if found != (uuid, generation):
                raise StoreUnavailable(reason=f"store {name} is not there, or not the one of the index: is it mounted?")
            lines[name] = f"{uuid}.{generation}"
        return lines
