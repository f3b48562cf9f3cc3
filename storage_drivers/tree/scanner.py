"""A walk over the files of one bucket, following no link."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator

from sluice_s3.storage_drivers.errors import map_errors
from sluice_s3.storage_drivers.tree import paths
from sluice_s3.storage_drivers.tree.directories import BLOCKING_ERRNOS, Directories
from sluice_s3.storage_drivers.tree.openat2 import DIRECTORY, opened
from sluice_s3.storage_drivers.tree.types import UNREADABLE_ERRNOS, ScannedFile, SkippedCounts, stamp_of

FILES_PER_BATCH = 500
"""Files read in one call to a thread."""
WIDTH = 2
"""Directories read concurrently: enough to hide some latency of a slow mount, few enough to leave its threads free."""

RunInThread = Callable[[Callable[[], list[ScannedFile]]], asyncio.Future[list[ScannedFile]]]


class Pending:
    """Directories of a bucket that are not read yet, relative to the store's root."""

    def __init__(self, directories: Directories, bucket: str, counts: SkippedCounts) -> None:
        self.directories = directories
        self.bucket = bucket
        self.counts = counts
        self.paths = [bucket.encode()]


class Walker:
    """Walker that reads one directory after the other, one batch at a time."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._files: Generator[ScannedFile, None, None] | None = None

    @property
    def has_work(self) -> bool:
        """Whether a batch may return something."""
        return self._files is not None or bool(self._pending.paths)

    def batch(self) -> list[ScannedFile]:
        """Return the next files; few or none does not mean the end.

        Blocks; raises DriverError.
        """
        files: list[ScannedFile] = []
        with map_errors():
            while len(files) < FILES_PER_BATCH:
                if self._files is None:
                    try:
                        path = self._pending.paths.pop()
                    except IndexError:
                        break
                    self._files = self._read(path)
                try:
                    files.append(next(self._files))
                except StopIteration:
                    self._files = None
        return files

    def close(self) -> None:
        """Close the open directory."""
        if self._files is not None:
            self._files.close()

    def _read(self, path: bytes) -> Generator[ScannedFile, None, None]:
        pending, counts = self._pending, self._pending.counts
        directories = pending.directories
        with directories.root() as root:
            try:
                with opened(root, path, DIRECTORY) as fd, os.scandir(fd) as entries:
                    counts.directories += 1
                    for entry in entries:
                        file = self._examine(path, entry)
                        if file is not None:
                            counts.files += 1
                            yield file
            except OSError as error:
                if error.errno in UNREADABLE_ERRNOS and b"/" in path:
                    counts.unreadable += 1
                    return
                if not isinstance(error, FileNotFoundError) and error.errno not in BLOCKING_ERRNOS:
                    raise
                if b"/" not in path:  # the bucket itself; else it went away meanwhile
                    directories.check_mounted(root, path)
                    raise

    def _examine(self, path: bytes, entry: os.DirEntry[str]) -> ScannedFile | None:
        pending, counts = self._pending, self._pending.counts
        name = os.fsencode(entry.name)
        child = path + b"/" + name
        if entry.is_dir(follow_symlinks=False):
            pending.paths.append(child)
            return None
        if not entry.is_file(follow_symlinks=False):
            counts.not_files += 1
            return None
        try:
            key_path = child.decode()
        except UnicodeDecodeError:
            key_path = ""
        key = None if paths.is_silly_rename(entry.name) else paths.key_of(pending.bucket, key_path)
        if key is None:
            counts.not_keys += 1
            return None
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in UNREADABLE_ERRNOS:
                raise
            counts.unreadable += 1
            return None
        return ScannedFile(key, key_path, stamp_of(status, pending.directories.traits.inodes))


async def walk(pending: Pending, run_in_thread: RunInThread, width: int) -> AsyncIterator[list[ScannedFile]]:
    """Yield batches of a bucket's files, read by `width` threads."""
    idle = [Walker(pending) for _ in range(width)]
    running: dict[asyncio.Future[list[ScannedFile]], Walker] = {}
    try:
        while True:
            for walker in [walker for walker in idle if walker.has_work]:
                idle.remove(walker)
                running[run_in_thread(walker.batch)] = walker
            if not running:
                return
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for finished in [future for future in running if future.done()]:
                idle.append(running.pop(finished))
                files = finished.result()
                if files:
                    yield files
    finally:
        if running:  # a thread still reads a directory
            await asyncio.wait(running)
        for walker in [*idle, *running.values()]:
            walker.close()


def directories_of(directories: Directories, root: int, bucket: bytes) -> list[bytes]:
    """Return every directory of a bucket, each after its parent. Blocks; raises OSError."""
    directory_paths = [bucket]
    for path in directory_paths:  # grows meanwhile
        try:
            with opened(root, path, DIRECTORY) as fd, os.scandir(fd) as entries:
                names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                directory_paths.extend(path + b"/" + os.fsencode(name) for name in names)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return directory_paths
