"""The driver of a local disk, layout *objects*: a large blob is a file of its own, ROOT/data/<aa>/<id>, written once.

Small ones are records of packs, ROOT/data/<aa>/<id>.pack, which are only ever appended to. It asks of the mount:
create-exclusive, write, fsync of files and directories, read, unlink, and 256 directories made once. `id` is 16 hex
digits and `aa` its low byte, so that ids drawn in sequence spread over all directories.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from storage_drivers import files, identity, pack_format, packs
from storage_drivers.base import (
    Append,
    Buffer,
    Capabilities,
    Durability,
    FileSlice,
    PackBook,
    Source,
    Usage,
    no_claim,
)
from storage_drivers.blob_reader import BlobReader, Release, feed_some
from storage_drivers.errors import BlobMissing, StoreFailed, map_errors
from storage_drivers.journals import Journals
from storage_drivers.pack_reader import PREFIX as PACKED
from storage_drivers.pack_reader import place_of
from storage_drivers.pack_upkeep import SUFFIX, WHOLE_PACK, PackUpkeep, packs_in
from storage_drivers.probe import Probe, measure_store, unfit, with_patience
from storage_drivers.probe_scratch import Progress
from storage_drivers.probe_trials import Ability
from storage_drivers.upkeep import Upkeep
from storage_drivers.writing import BlobFile

P = ParamSpec("P")
T = TypeVar("T")

PREFIX = "f:"
LOCATOR = re.compile("[fk]:[0-9a-f]{16}")
JOURNAL_SUFFIX = ".journal"
NOW_BYTES = 256 * 1024
"""`read_now` leaves larger reads to a thread: copying them would hold up the event loop."""


def nowhere(_: str) -> None:
    """The crash hook of a driver that is not under test."""


class LocalDriver(Upkeep, PackUpkeep):
    """One store on a local disk.

    `threads` bounds the blocking calls under way. `create` False refuses a root without identity: give it when the
    index knows a store already, for then such a root is an unmounted path. `append` takes bodies of up to
    `pack_threshold` bytes, into packs of about `pack_size` bytes. `at` is called with the name of every step of put and
    discard once it is done (crash tests).
    """

    def __init__(
        self,
        root: Path,
        *,
        durability: Durability = Durability.FULL,
        threads: int = 32,
        create: bool = True,
        pack_threshold: int = 0,
        pack_size: int = packs.SIZE,
        at: Callable[[str], None] = nowhere,
    ) -> None:
        self.capabilities = Capabilities(
            durability=durability, descriptors=True, nowait=True, pack_overhead=pack_format.PACK_HEADER
        )
        self.identity: identity.Identity | None = None
        self.probe: Probe | None = None
        """What the mount did when the store started."""
        self._root = root
        self._data = f"{root}/data"
        self._create = create
        self._at = at
        self._nowait = True
        self._held: int | None = None
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="store")
        self._pack_threshold = pack_threshold
        sync_entry = self._sync_entry if durability is Durability.FULL else None
        self._files = BlobReader()
        self._journals = Journals(self._journal_path, sync_entry)
        self._packs = packs.Packs(self._pack_path, self._sync_entry, durability, pack_size, at)
        self._syncs = [files.SharedSync(f"{self._data}/{low:02x}") for low in range(256)]

    # life
    async def start(self) -> None:
        """Make or check the store. Raises StoreFailed when the root holds another store, or blobs of none."""
        progress = Progress()
        begin = functools.partial(self._begin, progress)
        self.identity, self._held, probe = await with_patience(progress, begin)
        refused = unfit(probe, self.capabilities.durability)
        if refused is not None:
            raise refused
        self.probe = probe
        self._nowait = probe.can(Ability.NOWAIT)
        self._packs.page = probe.hole_page
        self.capabilities = replace(self.capabilities, nowait=self._nowait, descriptors=probe.can(Ability.SENDFILE))

    def _begin(self, progress: Progress) -> tuple[identity.Identity, int | None, Probe]:
        found = self._open_store(progress)
        held = identity.hold(self._root, alone=False)
        try:
            return found, held, measure_store(self._root, progress)
        except BaseException:
            if held is not None:
                os.close(held)
            raise

    async def close(self) -> None:
        """Take no more calls. Threads end after those queued; not waited for, so that a stuck mount stops no stop."""
        await self.close_packs()
        self._threads.shutdown(wait=False)
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def _open_store(self, progress: Progress) -> identity.Identity:
        found = identity.read_identity(self._root)
        with map_errors():
            if found is not None:
                for low in range(256):
                    progress.step("stat")
                    if not os.path.isdir(f"{self._data}/{low:02x}"):
                        raise StoreFailed(f"directory data/{low:02x} of the store is missing")
                return found
            if not self._create:
                raise StoreFailed("there is no store here: is the mount missing?")
            self._make_directories(progress)
        return identity.make_identity(self._root)

    def _make_directories(self, progress: Progress) -> None:
        """A crash in here is repaired by the next start; blobs without an identity are somebody's data."""
        self._root.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        os.makedirs(self._data, files.DIRECTORY_MODE, exist_ok=True)
        for low in range(256):
            directory = f"{self._data}/{low:02x}"
            progress.step("mkdir")
            try:
                os.mkdir(directory, files.DIRECTORY_MODE)
            except FileExistsError:
                if os.listdir(directory):
                    raise StoreFailed(f"there are files in data/{low:02x} but no {identity.NAME}") from None
        if self.capabilities.durability is Durability.FULL:
            progress.step("fsync directory")
            files.sync_directory(self._data)
            files.sync_directory(self._root)
            try:
                files.sync_directory(self._root.resolve().parent)
            except PermissionError:  # then the root is not ours to make, and was there before
                pass

    # packs
    def open_packs(self, book: PackBook) -> None:
        """Write packs from now on, unless the threshold is 0."""
        self._packs.open(book, appends=self._pack_threshold > 0)
        self.capabilities = replace(self.capabilities, append_limit=self._pack_threshold)

    async def close_packs(self) -> None:
        """Write what is queued and seal the packs."""
        self.capabilities = replace(self.capabilities, append_limit=0)
        await self._packs.close()

    def append(self, entry: Append) -> None:
        """Queue a small body for the next group."""
        self._packs.append(entry)

    def _sync_entry(self, pack_id: int) -> None:
        self._syncs[pack_id & 0xFF].sync()

    # blobs
    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        """Write one blob; hashes and writes share a hop, and the next piece arrives while the last one is written."""
        if piece is None:
            piece = await source.read()
        whole = not piece or (len(piece) == source.size and not await source.read())
        spent = {} if timings is None else timings
        wrote = functools.partial(self._files.wrote, blob_id)
        blob = BlobFile(self._path(blob_id), blob_id, source, claim, spent, self._at, wrote)
        directory = self._syncs[blob_id & 0xFF] if self.capabilities.durability is Durability.FULL else None
        try:
            if whole:
                await self._hop(blob.write_whole, piece, directory)
            else:
                await self._write_pieces(blob, source, piece)
                await self._hop(blob.finish, directory)
        except BaseException:
            await self._abandon(blob)
            raise
        return self.locator(blob_id)

    async def _write_pieces(self, blob: BlobFile, source: Source, piece: Buffer) -> None:
        step = blob.begin
        while piece:
            writing = self._submit(step, piece)
            piece = await source.read()
            if not writing.done():
                await asyncio.wrap_future(writing)
            writing.result()
            step = blob.write

    async def _abandon(self, blob: BlobFile) -> None:
        try:
            cleaning = self._submit(blob.abandon)
        except StoreFailed:  # closed: left for the sweep
            return
        await asyncio.wait([asyncio.wrap_future(cleaning)])

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """Open `length` bytes at `offset` of a committed blob, or read them from its record."""
        if locator.startswith(PACKED):
            return await self._hop(self._packs.read, locator, offset, length)
        return await self._open(locator, offset, length)

    async def _open(self, locator: str, offset: int, length: int) -> FileSlice:
        opening = self._submit(self._open_slice, locator, offset, length)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_release)
            raise

    def _open_slice(self, locator: str, offset: int, length: int) -> FileSlice:
        return self._files.open(self._find(locator), self.blob_id(locator), locator, offset, length)

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """The bytes when the page cache has them all. None also for whatever is wrong: `read` says what it is."""
        if not self._nowait or length > NOW_BYTES:
            return None
        if locator.startswith(PACKED):
            return self._packs.read_now(place_of(locator), offset, length)
        try:
            return self._files.read_now(self._find(locator), self.blob_id(locator), offset, length)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._nowait = False
            return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the bytes once and give them to `take` in the thread that reads."""
        if locator.startswith(PACKED):
            await self._hop(self._feed_record, locator, offset, length, take)
            return
        while length:
            opened = await self._open(locator, offset, length)
            offset += opened.count
            length -= opened.count
            while opened.count:
                reading = self._submit(feed_some, opened, locator, take)
                try:
                    await asyncio.wrap_future(reading)
                except BaseException:
                    reading.add_done_callback(Release(opened))
                    raise
            opened.release()

    def _feed_record(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        take(self._packs.read(locator, offset, length))

    async def discard(self, locator: str) -> None:
        """Unlink a blob's file. A record stays until its pack is compacted."""
        if self.packed(locator) is None:
            await self._hop(self._unlink, self._find(locator))

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Unlink many blobs' files (and whole packs) and sync each directory once; punch records out of their packs."""
        paths = [self._find(locator) for locator in locators if self.packed(locator) is None]
        if paths:
            await self._hop(self._unlink_all, paths)
        if len(paths) < len(locators):
            records = [locator for locator in locators if locator.startswith(PACKED)]
            if await self._hop(self._packs.punch, records):
                self._at("discard.punched")

    async def discard_id(self, blob_id: int) -> bool:
        """Unlink the file that a dead writer may have left under this id."""
        return await self._hop(self._unlink_all, [self._path(blob_id)]) == 1

    def _unlink_all(self, paths: list[str]) -> int:
        gone = [path for path in paths if self._unlink(path)]
        if self.capabilities.durability is Durability.FULL and gone:
            with map_errors():
                for low in sorted({int(path.removeprefix(self._data)[1:3], 16) for path in gone}):
                    self._syncs[low].sync()
            self._at("discard.synced")
        return len(gone)

    def _unlink(self, path: str) -> bool:
        with map_errors():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        self._at("discard.unlinked")
        return True

    # the whole store
    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Every blob's locator and size in bytes; files that are none of ours are passed over."""
        for low in range(256):
            directory = f"{self._data}/{low:02x}"
            for blob in await self._hop(self._blobs_in, directory):
                yield blob
            for pack_id in await self._hop(packs_in, directory):
                for record in await self._hop(self._packs.records, pack_id):
                    yield record

    def _blobs_in(self, directory: str) -> list[tuple[str, int]]:
        with map_errors():
            names = [name for name in os.listdir(directory) if LOCATOR.fullmatch(PREFIX + name)]
            found = []
            for name in names:
                try:
                    found.append((PREFIX + name, self._files.size(f"{directory}/{name}", int(name, 16))))
                except FileNotFoundError:  # discarded meanwhile
                    continue
        return found

    async def usage(self) -> Usage:
        """Space left, as statvfs(3) gives it to an ordinary user."""
        return await self._hop(self._usage)

    def _usage(self) -> Usage:
        with map_errors():
            space = os.statvfs(self._root)
        return Usage(
            total=space.f_blocks * space.f_frsize,
            free=space.f_bavail * space.f_frsize,
            inodes=space.f_files,
            free_inodes=space.f_favail,
        )

    # names and threads
    def locator(self, blob_id: int) -> str:
        """The locator of a blob of this id."""
        return f"{PREFIX}{blob_id:016x}"

    def blob_id(self, locator: str) -> int:
        """The id of the blob at a locator."""
        if locator.startswith(PACKED):
            return place_of(locator).blob_id
        self._find(locator)
        return int(locator[len(PREFIX) :], 16)

    def packed(self, locator: str) -> tuple[int, int] | None:
        """The pack that holds a blob and the bytes of its record there."""
        if not locator.startswith(PACKED):
            return None
        place = place_of(locator)
        return place.pack, place.total

    def _path(self, blob_id: int) -> str:
        return f"{self._data}/{blob_id & 0xFF:02x}/{blob_id:016x}"

    def _pack_path(self, pack_id: int) -> str:
        return f"{self._path(pack_id)}{SUFFIX}"

    def _journal_path(self, journal_id: int) -> str:
        return f"{self._path(journal_id)}{JOURNAL_SUFFIX}"

    def _find(self, locator: str) -> str:
        """The file of a blob, or of a whole pack."""
        if not LOCATOR.fullmatch(locator):
            raise BlobMissing(f"{locator!r} is no locator of this driver")
        suffix = SUFFIX if locator.startswith(WHOLE_PACK) else ""
        return f"{self._data}/{locator[-2:]}/{locator[len(PREFIX) :]}{suffix}"

    def _submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return self._threads.submit(call, *args, **kwargs)
        except RuntimeError as error:
            raise StoreFailed("the store is closed") from error

    async def _hop(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._submit(call, *args, **kwargs))


def _release(opening: Future[FileSlice]) -> None:
    """Close what a cancelled reader will not fetch."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().release()
