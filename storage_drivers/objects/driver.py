"""A driver of the layout *objects*: write-once files for large blobs, packs for small ones.

A large blob is a file of its own, ROOT/data/<aa>/<id>, or several. Small ones are records of packs,
ROOT/data/<aa>/<id>.pack, which are only ever appended to. The mount must support: create-exclusive, write, fsync of
files and directories, read, unlink, and 256 directories created once. Further features are used if the mount profile
has them and the probe saw them work.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sluice_s3.storage_drivers import fsutil, health, identity
from sluice_s3.storage_drivers.base import AppendRequest, Capabilities, Durability, PackRegistry, Usage
from sluice_s3.storage_drivers.blobs.reader import BlobReader
from sluice_s3.storage_drivers.errors import DriverError, map_errors
from sluice_s3.storage_drivers.layout import DIRECTORIES, FILE, LOCATOR, ObjectsLayout, number_of
from sluice_s3.storage_drivers.objects.delete import DeleteMixin
from sluice_s3.storage_drivers.objects.initialize import StoreInitializer
from sluice_s3.storage_drivers.objects.journals import Journals
from sluice_s3.storage_drivers.objects.maintenance import MaintenanceMixin
from sluice_s3.storage_drivers.objects.mount_profile import MountProfile
from sluice_s3.storage_drivers.objects.pack_maintenance import PackMaintenanceMixin, packs_in
from sluice_s3.storage_drivers.objects.read import ReadMixin
from sluice_s3.storage_drivers.objects.read_ahead import ReadAhead
from sluice_s3.storage_drivers.objects.write import WriteMixin
from sluice_s3.storage_drivers.packs import format, manager
from sluice_s3.storage_drivers.packs.reader import PREFIX as PACKED
from sluice_s3.storage_drivers.packs.reader import parse_locator
from sluice_s3.storage_drivers.packs.record_cache import LEAST_BYTES, RecordCache
from sluice_s3.storage_drivers.packs.writer import WriteChecks
from sluice_s3.storage_drivers.probing.known_mounts import misfit
from sluice_s3.storage_drivers.probing.probe import Probe, refusal_reason, run_with_timeout
from sluice_s3.storage_drivers.probing.trials import Capability
from sluice_s3.storage_drivers.threads import BackgroundThread, StoreThreadPool
from sluice_s3.storage_drivers.types import no_crash_hook


class ObjectsDriver(WriteMixin, ReadMixin, DeleteMixin, MaintenanceMixin, PackMaintenanceMixin):
    """One store on one mount. A driver is a subclass with a mount profile.

    `threads` bounds the blocking calls under way. `create` False refuses a root without identity: pass it when the
    index already knows a store, since such a root is then an unmounted path. `append` accepts bodies of up to
    `pack_threshold` bytes, into packs of about `pack_size` bytes, and caches up to `read_cache` bytes of reads in
    memory if its profile says so: in that of the file `read_cache_fd`, which processes share, if there is one. `at` is
    called with the name of every completed step of put and discard (crash tests).
    """

    mount_profile: MountProfile

    def __init__(
        self,
        root: Path,
        *,
        durability: Durability = Durability.FULL,
        threads: int = 32,
        create: bool = True,
        pack_threshold: int = 0,
        pack_size: int = manager.SIZE,
        at: Callable[[str], None] = no_crash_hook,
        read_back: bool = False,
        read_cache: int = 0,
        read_cache_fd: int | None = None,
    ) -> None:
        profile = self._profile = self.mount_profile
        self.capabilities = Capabilities(
            durability=durability,
            descriptors=profile.descriptors,
            nowait=profile.now,
            pack_overhead=format.PACK_HEADER,
            discards_at_once=profile.parts,
        )
        self.identity: identity.Identity | None = None
        self.probe: Probe | None = None
        """The result of the mount's probe when the store started."""
        self._root = root
        self._names = ObjectsLayout(root)
        self._create = create
        self._at = at
        self._nowait = profile.now
        self._descriptors = profile.descriptors
        self._read_back = read_back
        self._lock_fd: int | None = None
        self._threads = StoreThreadPool(threads)
        self._pack_threshold = pack_threshold
        self._files = BlobReader()
        self._ahead = ReadAhead(self._begin_read)
        self._journals = Journals(self._names, durable=durability is Durability.FULL)
        checks = WriteChecks(profile.pack_ahead, profile.check_size, read_back)
        self._packs = manager.PackManager(
            self._names.pack, self._sync_entry, durability, pack_size, at, checks, profile.streams, inline=profile.now
        )
        self._memory = None
        if read_cache and profile.window:
            shared = -1 if read_cache_fd is None else read_cache_fd
            self._memory = RecordCache(mmap.mmap(shared, max(read_cache, LEAST_BYTES)), profile.window)
        self._syncs = [fsutil.CoalescedFsync(self._names.directory(low)) for low in range(DIRECTORIES)]

    # life
    async def start(self) -> None:
        """Create or check the store, and probe its mount.

        Raises StoreFailed when the root holds another store, or blobs without an identity; StoreUnfit.
        """
        durability = self.capabilities.durability
        opening = StoreInitializer(self._root, create=self._create, durable=durability is Durability.FULL)
        self.identity, self._lock_fd, probe = await run_with_timeout(opening.progress, opening.run)
        refused = refusal_reason(probe, durability)
        if refused is not None:
            raise refused
        self.probe = replace(probe, misfit=misfit(probe.mount, patient=self._profile.retry_seconds > 0))
        self._nowait = self._profile.now and probe.may(Capability.NOWAIT)
        self._descriptors = self._profile.descriptors and probe.may(Capability.SENDFILE)
        self._packs.page = probe.hole_page
        self._packs.inline = self._packs.inline and self._nowait
        self.capabilities = replace(self.capabilities, nowait=self._nowait, descriptors=self._descriptors)

    async def close(self) -> None:
        """Refuse further calls.

        Threads end after queued calls; `close` does not wait for them, so that a stuck mount blocks no stop.
        """
        await self.close_packs()
        self._threads.shutdown()
        lock_fd, self._lock_fd = self._lock_fd, None
        if lock_fd is not None:
            os.close(lock_fd)

    # when the mount does not answer
    def look(self, known: identity.Identity, *, write: bool) -> None:
        """Check whether the store of this identity is there; see `Driver.look`."""
        health.check_store(self._root, known, write=write)

    def running(self) -> list[object]:
        """Return the blocking calls that run now."""
        return [*self._threads.running(), *self._packs.running()]

    @property
    def troubles(self) -> int:
        """The number of calls that failed by the mount."""
        return self._threads.troubles + self._packs.troubles

    @property
    def cached_bytes(self) -> int:
        """Bytes of packs in the cache."""
        return 0 if self._memory is None else self._memory.cached_bytes

    def give_up(self, error: DriverError) -> None:
        """Fail the calls under way."""
        self._threads.give_up(error)
        self._packs.give_up(error)
        with suppress(RuntimeError, MemoryError):  # no thread: they stay open until the process ends
            BackgroundThread(self._release_lock)

    def _release_lock(self) -> None:
        """Close idle descriptors, so that the mount can be unmounted. May hang."""
        lock_fd, self._lock_fd = self._lock_fd, None
        if lock_fd is not None:
            os.close(lock_fd)
        self._packs.forget_all()

    # packs
    def open_packs(self, book: PackRegistry) -> None:
        """Begin to write packs, unless the threshold is 0."""
        self._packs.open(book, appends=self._pack_threshold > 0)
        self.capabilities = replace(self.capabilities, append_limit=self._pack_threshold)

    async def close_packs(self) -> None:
        """Write what is queued and seal the packs."""
        self.capabilities = replace(self.capabilities, append_limit=0)
        await self._packs.close()

    def append(self, entry: AppendRequest) -> None:
        """Queue a small body for the next group."""
        self._packs.append(entry)

    def _sync_entry(self, pack_id: int) -> None:
        self._syncs[pack_id & 0xFF].sync()

    # the whole store
    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Yield every blob's locator and size in bytes, without foreign files."""
        for low in range(DIRECTORIES):
            directory = self._names.directory(low)
            for blob in await self._run_in_thread(self._blobs_in, directory):
                yield blob
            for pack_id in await self._run_in_thread(packs_in, directory):
                for record in await self._run_in_thread(self._packs.records, pack_id):
                    yield record

    def _blobs_in(self, directory: str) -> list[tuple[str, int]]:
        with map_errors():
            names = [name for name in os.listdir(directory) if LOCATOR.fullmatch(FILE + name)]
            found = []
            for name in names:
                blob_id = int(name, 16)
                try:
                    found.append((FILE + name, self._files.size(partial(self._names.blob, blob_id), blob_id)))
                except FileNotFoundError:  # discarded meanwhile
                    continue
        return found

    async def usage(self) -> Usage:
        """Return the space left, as statvfs(3) reports it for an ordinary user."""
        return await self._run_in_thread(self._usage)

    def _usage(self) -> Usage:
        with map_errors():
            space = os.statvfs(self._root)
        return Usage(
            total=space.f_blocks * space.f_frsize,
            free=space.f_bavail * space.f_frsize,
            inodes=space.f_files,
            free_inodes=space.f_favail,
        )

    # names
    def locator(self, blob_id: int) -> str:
        """Return the locator of a blob of this id."""
        return f"{FILE}{blob_id:016x}"

    def blob_id(self, locator: str) -> int:
        """Return the id of the blob at a locator."""
        return parse_locator(locator).blob_id if locator.startswith(PACKED) else number_of(locator)

    def packed(self, locator: str) -> tuple[int, int] | None:
        """Return the pack that holds a blob and the bytes of its record there."""
        if not locator.startswith(PACKED):
            return None
        location = parse_locator(locator)
        return location.pack, location.total
