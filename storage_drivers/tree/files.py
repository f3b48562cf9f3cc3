"""The files of one tree store: written aside and renamed into place, opened without following anything."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from storage_drivers.base import Buffer, Durability, FileSlice, Source
from storage_drivers.errors import BlobDamaged, StoreFailed, map_errors
from storage_drivers.files import DIRECTORY_MODE, read_exactly
from storage_drivers.probing.probe import DIRECTORY as PROBES
from storage_drivers.probing.probe import with_patience
from storage_drivers.probing.scratch import Progress
from storage_drivers.streaming import Streaming
from storage_drivers.threads import Threads
from storage_drivers.tree import base, buckets, paths, scanning, watching
from storage_drivers.tree.base import PRIVATE, FileChanged, Found, Seen, Stamp, stamp_of
from storage_drivers.tree.directories import Directories
from storage_drivers.tree.placing import Placing
from storage_drivers.tree.reading import Reading
from storage_drivers.tree.staging import StagedFile, Unverified
from storage_drivers.tree.trials import Traits, try_mount
from storage_drivers.tree.watching import Changes

P = ParamSpec("P")
T = TypeVar("T")

STAGED = f"{PRIVATE}/staged"
"""Below the root: where files are written aside, each under its blob's id."""
TRIED = f"{PRIVATE}/{PROBES}"
"""Where the mount is tried."""

LOOKS = (0.0, 0.5, 1.0, 2.0)
"""Seconds between looks for a file that is neither where it was nor where it should be."""


def nowhere(_: str) -> None:
    """The crash hook of files that are not under test."""


class TreeFiles(Streaming):
    """The plain files of one store. A *path* is relative to `root` and begins with the bucket; `threads` is lent.

    New files and directories get the permissions of the directory they are in. Every method raises
    `storage_drivers.errors.DriverError` and nothing of errno. `at` is called with the name of every step of stage,
    publish and remove once it is done (crash tests).
    """

    def __init__(
        self,
        root: Path,
        threads: Threads,
        *,
        durability: Durability = Durability.FULL,
        at: Callable[[str], None] = nowhere,
    ) -> None:
        self.root = root
        self._threads = threads
        self._full = durability is Durability.FULL
        self._at = at
        self._directories = Directories(root, self._full, at)
        self._placing = Placing(self._directories, at)
        self._reading = Reading(self._directories)

    @property
    def traits(self) -> Traits:
        """What the mount did when it was tried."""
        return self._directories.traits

    async def start(self) -> None:
        """Make what is needed in ROOT/.sluice and try the mount. Raises StoreUnfit where it cannot rename over.

        Also where neither inode numbers last nor times can be set to parts of a second: then no stamp can be trusted.
        """
        progress = Progress()
        self._directories.traits = await with_patience(progress, lambda: self._begin(progress))

    def _begin(self, progress: Progress) -> Traits:
        for directory in (PRIVATE, STAGED, TRIED):
            try:
                os.mkdir(self.root / directory, DIRECTORY_MODE)
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
        self._directories.remember()
        return try_mount(self.root, f"{self.root}/{TRIED}", progress)

    # writing aside
    async def stage(
        self, blob_id: int, source: Source, timings: dict[str, float] | None = None, piece: Buffer | None = None
    ) -> Stamp:
        """Write a body aside, verified and as durable as declared; nothing remains on any error. As `Driver.put`."""
        if piece is None:
            piece = await source.read()
        file = self._staged_file(blob_id, source, {} if timings is None else timings)
        await self._stream(file, source, piece)
        return _stamp(file)

    async def stage_pieces(self, blob_id: int, pieces: AsyncIterator[FileSlice | bytes]) -> Stamp:
        """The same of pieces that need no verifying, copied within the mount where that works.

        The iterator keeps its slices: it releases each when it is asked for the next, or closed.
        """
        file = self._staged_file(blob_id, Unverified(), {})
        try:
            await self._hop(file.begin, b"")
            async for piece in pieces:
                if isinstance(piece, FileSlice):
                    await self._hop(file.copy, piece)
                else:
                    await self._hop(file.write, piece)
            await self._hop(file.finish)
        except BaseException:
            await self._abandon(file)
            raise
        return _stamp(file)

    def _staged_file(self, blob_id: int, source: Source, timings: dict[str, float]) -> StagedFile:
        path = f"{self.root}/{_staged(blob_id).decode()}"
        return StagedFile(path, blob_id, source, timings, self._at, self._full, self.traits)

    async def unstage(self, blob_id: int) -> bool:
        """Take away what was written aside; True when there was something."""
        return await self._hop(self._placing.unstage, _staged(blob_id))

    # into place
    async def place(self, bucket: str, key: str) -> str:
        """The path for a key that has none yet: its own when nothing is in the way now, else the escaped one."""
        path = paths.plain(bucket, key, self.traits.careful)
        if path is None or await self._hop(self._placing.is_taken, path):
            return paths.escaped(bucket, key)
        return path

    def escaped(self, bucket: str, key: str) -> str:
        """The path of a key that cannot be at its own; always possible."""
        return paths.escaped(bucket, key)

    async def publish(self, blob_id: int, path: str) -> None:
        """Rename what was staged to `path`, over what is there; as durable as declared when it returns.

        Raises Collision when that has become impossible: what was staged is still there, take the escaped path. After
        any other error it is not known whether the file was renamed.
        """
        await self._hop(self._placing.publish, _staged(blob_id), path)

    async def is_published(self, blob_id: int, path: str, stamp: Stamp) -> bool:
        """Whether what was staged came to its path, before a crash or an error of `publish`; then it is durable there.

        `stamp` is the one that staging gave. Takes some seconds when the file is in neither place: a mount that
        answered a rename with an error may have done it, and remember the old names for a while.
        """
        for pause in LOOKS:
            await asyncio.sleep(pause)
            published = await self._hop(self._is_published, _staged(blob_id), path, stamp)
            if published is not None:
                return published
        return False

    def _is_published(self, staged: bytes, path: str, stamp: Stamp) -> bool | None:
        is_there = self._reading.find(path) == stamp
        if not (is_there and self.traits.inodes) and self._placing.is_staged(staged):
            return False
        if not is_there:
            return None
        self._placing.sync(path)
        return True

    async def remove(self, path: str, stamp: Stamp | None = None) -> bool:
        """Unlink the file; False when there was none. Either way it stays away after a power cut.

        Raises FileChanged for another file than the one of that stamp, which stays.
        """
        return await self._hop(self._placing.remove, path, stamp)

    # reading
    def locator(self, path: str, stamp: Stamp) -> str:
        """`t:<stamp>:<path>`."""
        return base.locator(path, stamp)

    def parse(self, locator: str) -> tuple[str, Stamp]:
        """The path and the stamp of a locator. Raises BlobMissing for what is none."""
        return base.parse(locator)

    async def open(self, locator: str, offset: int, length: int) -> FileSlice:
        """Open at most `length` bytes at `offset`. Raises FileChanged, FileGone; StoreFailed when not mounted."""
        opening = self._hop(self._reading.open, locator, offset, length)
        try:
            return await opening
        except asyncio.CancelledError:
            opening.add_done_callback(_release)
            raise

    async def read(self, locator: str, offset: int, length: int) -> bytes:
        """A few bytes, opened, read and compared with the stamp in one hop. Raises as `open`."""
        return await self._hop(self.read_here, locator, offset, length)

    def read_here(self, locator: str, offset: int, length: int) -> bytes:
        """The same in this thread. Blocks."""
        opened = self._reading.open(locator, offset, length)
        try:
            with map_errors():
                try:
                    piece = read_exactly(opened.fd, offset, length)
                except BlobDamaged:
                    piece = b""
                except OSError as error:
                    raise base.refused(error) from error
                now = stamp_of(os.fstat(opened.fd), self.traits.inodes)
        finally:
            opened.release()
        if len(piece) < length or now != base.parse(locator)[1]:
            raise FileChanged(now)
        return piece

    def still(self, opened: FileSlice, locator: str) -> bool:
        """Whether an open slice's file has the locator's stamp still. Blocks: call it in a thread."""
        with map_errors():
            return stamp_of(os.fstat(opened.fd), self.traits.inodes) == base.parse(locator)[1]

    async def find(self, path: str) -> Stamp | None:
        """The stamp of the regular file at exactly this path. Raises StoreFailed when the store is not mounted."""
        return await self._hop(self._reading.find, path)

    async def find_all(self, paths: Sequence[str]) -> list[Stamp | None]:
        """`find` of many paths in one hop; `base.UNKNOWN`, which no file has, for one that cannot be looked at."""
        return await self._hop(lambda: list(map(self._reading.find_any, paths)))

    async def find_key(self, bucket: str, key: str) -> Found | None:
        """The file of a key that the index does not know: at its own path, else at the escaped one."""
        return await self._hop(self._find_key, bucket, key)

    def _find_key(self, bucket: str, key: str) -> Found | None:
        for path in (paths.plain(bucket, key), paths.escaped(bucket, key)):
            stamp = self._reading.find(path) if path else None
            if path and stamp:
                return Found(key, path, stamp)
        return None

    def settled(self, stamp: Stamp) -> bool:
        """Whether a change from now on would give another stamp, by the grain of the mount's times."""
        return abs(time.time_ns() - stamp.mtime_ns) > self.traits.grain_ns

    # buckets
    def key_of(self, bucket: str, path: str) -> str | None:
        """The key whose file is at a path, None when there can be none."""
        return paths.key_of(bucket, path)

    def scan(self, bucket: str, seen: Seen | None = None, width: int = scanning.WIDTH) -> AsyncIterator[list[Found]]:
        """Every file of a bucket in batches, in no order; what vanishes meanwhile is left out. Counts into `seen`.

        A key may be found at two paths, its own and the escaped one: the one in the index counts.
        """
        pending = scanning.Pending(self._directories, bucket, seen or Seen())
        return scanning.walk(pending, self._hop, width)

    def watch(self, bucket: str) -> AsyncIterator[Changes]:
        """What anybody does to a bucket's files, bundled; the first, mostly empty, comes once all is watched.

        Raises StoreFailed where the mount does not tell what others do: it is not local.
        """
        return watching.watch(self._directories, bucket, self._hop)

    async def make_bucket(self, bucket: str) -> None:
        """Make the bucket's directory, durable; one that is there is no error. Raises Collision for what is none."""
        await self._hop(buckets.make, self._directories, bucket.encode())

    async def remove_bucket(self, bucket: str) -> bool:
        """Remove the directories of a bucket that are empty; True when its own is gone.

        False leaves what is left to its owner; so does a mount whose rmdir was not seen to refuse a full directory.
        """
        return await self._hop(buckets.remove, self._directories, bucket.encode())


def _staged(blob_id: int) -> bytes:
    return f"{STAGED}/{blob_id:016x}".encode()


def _stamp(file: StagedFile) -> Stamp:
    if file.stamp is None:
        raise StoreFailed("the file was given up")
    return file.stamp


def _release(opening: asyncio.Future[FileSlice]) -> None:
    """Close what a cancelled reader will not fetch."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().release()
