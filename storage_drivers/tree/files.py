"""The files of one tree store: staged and renamed into place, opened without following links."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.base import BodySource, Buffer, Durability, FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, read_exactly
from sluice_s3.storage_drivers.probing.probe import DIRECTORY as PROBES
from sluice_s3.storage_drivers.probing.probe import run_with_timeout
from sluice_s3.storage_drivers.probing.scratch import Progress
from sluice_s3.storage_drivers.streaming import StreamingWriteMixin
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import buckets, inotify, paths, scanner, types
from sluice_s3.storage_drivers.tree.directories import Directories
from sluice_s3.storage_drivers.tree.inotify import Changes
from sluice_s3.storage_drivers.tree.lookup import PlainFileLookup
from sluice_s3.storage_drivers.tree.publish import Publisher
from sluice_s3.storage_drivers.tree.staged_file import StagedFile, Unverified
from sluice_s3.storage_drivers.tree.trials import Traits, try_mount
from sluice_s3.storage_drivers.tree.types import PRIVATE, FileChanged, ScannedFile, SkippedCounts, Stamp, stamp_of
from sluice_s3.storage_drivers.types import no_crash_hook

P = ParamSpec("P")
T = TypeVar("T")

STAGED_DIRECTORY = f"{PRIVATE}/staged"
"""Below the root: the directory of staged files, each under its blob's id."""
TRIAL_DIRECTORY = f"{PRIVATE}/{PROBES}"
"""The directory where the mount is tried."""

RETRY_DELAYS_SECONDS = (0.0, 0.5, 1.0, 2.0)
"""Seconds between checks for a file that is neither at its old nor at its new path."""


class TreeFiles(StreamingWriteMixin):
    """The plain files of one store.

    A *path* is relative to `root` and begins with the bucket; `threads` is shared. New files and directories get the
    permissions of their directory. Every method raises `storage_drivers.errors.DriverError`, never an OSError.
    `crash_hook` is called with the name of every completed step of stage, publish and remove (crash tests).
    """

    def __init__(
        self,
        root: Path,
        threads: StoreThreadPool,
        *,
        durability: Durability = Durability.FULL,
        crash_hook: Callable[[str], None] = no_crash_hook,
    ) -> None:
        self.root = root
        self._threads = threads
        self._full = durability is Durability.FULL
        self._crash_hook = crash_hook
        self._directories = Directories(root, self._full, crash_hook)
        self._publisher = Publisher(self._directories, crash_hook)
        self._lookup = PlainFileLookup(self._directories)

    @property
    def traits(self) -> Traits:
        """The traits that the mount's trials found."""
        return self._directories.traits

    async def start(self) -> None:
        """Create the directories in ROOT/.sluice and try the mount.

        Raises StoreUnfit if it cannot rename over, and if neither inode numbers last nor times can be set to fractions
        of a second: then no stamp can be trusted.
        """
        progress = Progress()
        self._directories.traits = await run_with_timeout(progress, lambda: self._prepare_mount(progress))

    def _prepare_mount(self, progress: Progress) -> Traits:
        for directory in (PRIVATE, STAGED_DIRECTORY, TRIAL_DIRECTORY):
            try:
                os.mkdir(self.root / directory, DIRECTORY_MODE)
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
        self._directories.record_identity()
        return try_mount(self.root, f"{self.root}/{TRIAL_DIRECTORY}", progress)

    # staging
    async def stage(
        self, blob_id: int, source: BodySource, timings: dict[str, float] | None = None, piece: Buffer | None = None
    ) -> Stamp:
        """Write a body to a staged file, verified and as durable as declared.

        After an error nothing remains. As `Driver.put`.
        """
        if piece is None:
            piece = await source.read()
        file = self._new_staged_file(blob_id, source, {} if timings is None else timings)
        await self._stream(file, source, piece)
        return _require_stamp(file)

    async def stage_pieces(self, blob_id: int, pieces: AsyncIterator[FileSlice | bytes]) -> Stamp:
        """Stage pieces that need no verification, copied within the mount if possible.

        The iterator owns its slices: it releases each at the next one, or when closed.
        """
        file = self._new_staged_file(blob_id, Unverified(), {})
        try:
            await self._run_in_thread(file.begin, b"")
            async for piece in pieces:
                if isinstance(piece, FileSlice):
                    await self._run_in_thread(file.copy, piece)
                else:
                    await self._run_in_thread(file.write, piece)
            await self._run_in_thread(file.finish)
        except BaseException:
            await self._abandon(file)
            raise
        return _require_stamp(file)

    def _new_staged_file(self, blob_id: int, source: BodySource, timings: dict[str, float]) -> StagedFile:
        path = f"{self.root}/{_staged_path(blob_id).decode()}"
        return StagedFile(path, blob_id, source, timings, self._crash_hook, self._full, self.traits)

    async def unstage(self, blob_id: int) -> bool:
        """Delete a staged file; return whether there was one."""
        return await self._run_in_thread(self._publisher.unstage, _staged_path(blob_id))

    # publishing
    async def path_for(self, bucket: str, key: str) -> str:
        """Return the path of a new key: its own if free, else the escaped one."""
        path = paths.direct_path(bucket, key, self.traits.careful)
        if path is None or await self._run_in_thread(self._publisher.is_taken, path):
            return paths.escaped_path(bucket, key)
        return path

    def escaped_path(self, bucket: str, key: str) -> str:
        """Return the path of a key that cannot be at its own; always possible."""
        return paths.escaped_path(bucket, key)

    async def publish(self, blob_id: int, path: str) -> None:
        """Rename a staged file to `path`, over what is there, as durable as declared.

        Raises Collision when that has become impossible: the staged file remains, use the escaped path. After any other
        error it is unknown whether the file was renamed.
        """
        await self._run_in_thread(self._publisher.publish, _staged_path(blob_id), path)

    async def is_published(self, blob_id: int, path: str, stamp: Stamp) -> bool:
        """Return whether a staged file came to its path before a failure of `publish`.

        The failure is a crash or an error. If the file came there, it is durable. `stamp` is the one from staging. It
        takes some seconds when the file is in neither place: a mount that answered a rename with an error may have done
        it, and cache the old names for a while.
        """
        for delay in RETRY_DELAYS_SECONDS:
            await asyncio.sleep(delay)
            outcome = await self._run_in_thread(self._is_published, _staged_path(blob_id), path, stamp)
            if outcome is not None:
                return outcome
        return False

    def _is_published(self, staged: bytes, path: str, stamp: Stamp) -> bool | None:
        is_at_path = self._lookup.find(path) == stamp
        if not (is_at_path and self.traits.inodes) and self._publisher.is_staged(staged):
            return False
        if not is_at_path:
            return None
        self._publisher.sync(path)
        return True

    async def remove(self, path: str, stamp: Stamp | None = None) -> bool:
        """Unlink the file; return False when there was none.

        Either way it stays deleted after a power cut. Raises FileChanged when the file has another stamp; that file
        stays.
        """
        return await self._run_in_thread(self._publisher.remove, path, stamp)

    # reading
    def locator(self, path: str, stamp: Stamp) -> str:
        """Return `t:<stamp>:<path>`."""
        return types.locator(path, stamp)

    def parse(self, locator: str) -> tuple[str, Stamp]:
        """Return path and stamp of a locator. Raises BlobMissing for any other text."""
        return types.parse(locator)

    async def open(self, locator: str, offset: int, length: int) -> FileSlice:
        """Open at most `length` bytes at `offset`.

        Raises FileChanged, FileGone; StoreFailed when not mounted.
        """
        opening = self._run_in_thread(self._lookup.open, locator, offset, length)
        try:
            return await opening
        except asyncio.CancelledError:
            opening.add_done_callback(_release_opened)
            raise

    async def read(self, locator: str, offset: int, length: int) -> bytes:
        """Read a few bytes and compare the stamp, in one call to a thread.

        Raises as `open`.
        """
        return await self._run_in_thread(self.read_blocking, locator, offset, length)

    def read_blocking(self, locator: str, offset: int, length: int) -> bytes:
        """Do the same in this thread. Blocks."""
        opened = self._lookup.open(locator, offset, length)
        try:
            with map_errors():
                try:
                    piece = read_exactly(opened.fd, offset, length)
                except BlobDamaged:
                    piece = b""
                except OSError as error:
                    raise types.refused(error) from error
                current = stamp_of(os.fstat(opened.fd), self.traits.inodes)
        finally:
            opened.release()
        if len(piece) < length or current != types.parse(locator)[1]:
            raise FileChanged(current)
        return piece

    def is_unchanged(self, opened: FileSlice, locator: str) -> bool:
        """Return whether an open slice's file still has the locator's stamp.

        Blocks: call it in a thread.
        """
        with map_errors():
            return stamp_of(os.fstat(opened.fd), self.traits.inodes) == types.parse(locator)[1]

    async def find(self, path: str) -> Stamp | None:
        """Return the stamp of the regular file at exactly this path.

        Raises StoreFailed when the store is not mounted.
        """
        return await self._run_in_thread(self._lookup.find, path)

    async def find_all(self, paths: Sequence[str]) -> list[Stamp | None]:
        """Find many paths in one call to a thread.

        A path that cannot be checked has `base.UNKNOWN`, which no file has.
        """
        return await self._run_in_thread(lambda: list(map(self._lookup.find_any, paths)))

    async def find_key(self, bucket: str, key: str) -> ScannedFile | None:
        """Return the file of an unindexed key: at its own path or the escaped one."""
        return await self._run_in_thread(self._find_key, bucket, key)

    def _find_key(self, bucket: str, key: str) -> ScannedFile | None:
        for path in (paths.direct_path(bucket, key), paths.escaped_path(bucket, key)):
            stamp = self._lookup.find(path) if path else None
            if path and stamp:
                return ScannedFile(key, path, stamp)
        return None

    def is_settled(self, stamp: Stamp) -> bool:
        """Return whether any later change would give another stamp, by the mount's time granularity."""
        return abs(time.time_ns() - stamp.mtime_ns) > self.traits.grain_ns

    # buckets
    def key_of(self, bucket: str, path: str) -> str | None:
        """Return the key of the file at a path; None when there can be none."""
        return paths.key_of(bucket, path)

    def scan(
        self, bucket: str, counts: SkippedCounts | None = None, width: int = scanner.WIDTH
    ) -> AsyncIterator[list[ScannedFile]]:
        """Yield every file of a bucket in batches, in no order; count into `counts`.

        Files that vanish meanwhile are left out. A key may be found at two paths, its own and the escaped one: the one
        in the index counts.
        """
        pending = scanner.Pending(self._directories, bucket, counts or SkippedCounts())
        return scanner.walk(pending, self._run_in_thread, width)

    def watch(self, bucket: str) -> AsyncIterator[Changes]:
        """Yield external changes of a bucket's files, in bundles.

        The first, mostly empty, comes once everything is watched. Raises StoreFailed where the mount does not report
        external changes: it is not local.
        """
        return inotify.watch(self._directories, bucket, self._run_in_thread)

    async def make_bucket(self, bucket: str) -> None:
        """Create the bucket's directory, durable; an existing one is no error.

        Raises Collision when something else is there.
        """
        await self._run_in_thread(buckets.make, self._directories, bucket.encode())

    async def remove_bucket(self, bucket: str) -> bool:
        """Remove the empty directories of a bucket; return whether its own is gone.

        Other files stay. Nothing is removed on a mount whose rmdir was not seen to refuse a full directory.
        """
        return await self._run_in_thread(buckets.remove, self._directories, bucket.encode())


def _staged_path(blob_id: int) -> bytes:
    return f"{STAGED_DIRECTORY}/{blob_id:016x}".encode()


def _require_stamp(file: StagedFile) -> Stamp:
    if file.stamp is None:
        raise StoreFailed("the file was given up")
    return file.stamp


def _release_opened(opening: asyncio.Future[FileSlice]) -> None:
    """Close what a cancelled reader will not receive."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().release()
