"""A worker of the simulation: index, store and jobs, and what its clients call."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.versioning.rows import ListedVersionEntry
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import OrphanSweeper
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.named_driver import NamedDriver
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import FUSE

PACK_THRESHOLD, PACK_SIZE = 4096, 16_384
"""Bytes. A pack is full after a few small bodies, so that some are mostly dead soon."""
COMPACTION_RATE = 1 << 30
GRACE_SECONDS = 0.01


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


class Worker:
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

    async def read(self, bucket: int, key: str, version_id: str | None = None) -> str:
        """Return the MD5 of a body. Raises DomainError."""
        version = await objects.find(self.store, bucket, key, version_id)
        body = await reading.read_body(self.store, version, 0, version.size, {})
        if not isinstance(body, bytes):
            pieces = [piece if isinstance(piece, bytes) else _bytes_of(piece) async for piece in body]
            body = b"".join(pieces)
        return hashlib.md5(body).hexdigest()

    async def versions(self, bucket: int, page: int) -> list[ListedVersionEntry]:
        """Return all versions of a bucket, listed in pages of that many."""
        found: list[ListedVersionEntry] = []
        key = version_id = ""
        more = True
        while more:
            listed = await self.index.list_versions(bucket, "", "", key, version_id, page)
            found += listed.entries
            key, version_id, more = listed.last_key, listed.last_version_id, listed.truncated
        return found


def _bytes_of(piece: Any) -> bytes:
    try:
        return os.pread(piece.fd, piece.count, piece.offset)
    finally:
        piece.release()
