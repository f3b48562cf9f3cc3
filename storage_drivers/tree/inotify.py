"""External changes of a bucket's files, from inotify(7), on local filesystems only.

A mount of NFS or FUSE reports what this machine does and nothing of what others do. It is an aid: the next scan finds
what it misses (no watch left, a full queue, a directory moved away), and it reports that it missed something. The
gateway's own writes are reported as well.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sluice_s3.storage_drivers.errors import StoreFailed, map_errors
from sluice_s3.storage_drivers.tree.directories import BLOCKING_ERRNOS, Directories
from sluice_s3.storage_drivers.tree.openat2 import DIRECTORY, opened
from sluice_s3.storage_drivers.tree.types import UNREADABLE_ERRNOS

T = TypeVar("T")
RunInThread = Callable[[Callable[[], T]], asyncio.Future[T]]

ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_DIRECTORY, ONLY_DIRECTORIES = 0x4000, 0x8000, 0x40000000, 0x01000000
WATCHED = ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLY_DIRECTORIES
"""linux/inotify.h"""
EVENT = struct.Struct("iIII")
READ_BYTES = 64 * 1024
PAUSE_SECONDS = 0.2
"""Seconds for which changes are collected: programs often write several files."""
MAX_PENDING = 10_000
"""Changed paths beyond which a scan is faster."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Changes:
    """The changes in a bucket."""

    paths: set[str] = field(default_factory=set)
    """Files that were created, changed or removed, relative to the store's root; their present state counts."""
    missed: bool = False
    """There was more, which only a scan finds."""

    def __bool__(self) -> bool:
        return bool(self.paths) or self.missed


class Watcher:
    """Watcher of one bucket's directories. Every method blocks and raises DriverError."""

    def __init__(self, directories: Directories, bucket: str) -> None:
        self.fd = -1
        self._directories = directories
        self._bucket = bucket.encode()
        self._paths: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def start(self) -> Changes:
        """Watch every directory; return the files created meanwhile.

        Raises StoreFailed where that is impossible.
        """
        if not self._directories.is_local():
            raise StoreFailed("only a local mount tells what others do")
        with self._lock, map_errors():
            self.fd = _check_result(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            changes = Changes()
            self._add(self._bucket, changes)
        if not self._paths:
            raise StoreFailed("the bucket cannot be watched")
        return Changes(missed=changes.missed)

    def close(self) -> None:
        """Stop watching. Waits for a call under way in another thread."""
        with self._lock:
            fd, self.fd = self.fd, -1
            if fd >= 0:
                os.close(fd)

    def end(self) -> Changes:
        """Call `close` in a thread."""
        self.close()
        return Changes()

    def read(self) -> Changes:
        """Return the changes since the last call."""
        changes = Changes()
        with self._lock, map_errors():
            while self.fd >= 0:
                try:
                    events = os.read(self.fd, READ_BYTES)
                except BlockingIOError:
                    break
                position = 0
                while position < len(events):
                    watch, mask, _, length = EVENT.unpack_from(events, position)
                    position += EVENT.size + length
                    self._handle_event(watch, mask, events[position - length : position].rstrip(b"\0"), changes)
        return changes

    def _handle_event(self, watch: int, mask: int, name: bytes, changes: Changes) -> None:
        if mask & OVERFLOW:
            changes.missed = True
        if mask & IGNORED:
            self._paths.pop(watch, None)
        directory = self._paths.get(watch)
        if directory is None or not name:
            return
        path = directory + b"/" + name
        if not mask & IS_DIRECTORY:
            _add_changed(path, changes)
        elif mask & (CREATE | MOVED_TO):
            self._add(path, changes)
        elif mask & MOVED_FROM:
            self._forget(path)
            changes.missed = True

    def _add(self, start: bytes, changes: Changes) -> None:
        """Watch a directory and all below it.

        Files that are there may have been created before the watch.
        """
        pending = [start]
        with self._directories.root() as root:
            while pending:
                directory = pending.pop()
                try:
                    with opened(root, directory, DIRECTORY) as fd:
                        watch = _libc.inotify_add_watch(self.fd, f"/proc/self/fd/{fd}".encode(), WATCHED)
                        self._paths[_check_result(watch)] = directory
                        with os.scandir(fd) as entries:
                            for entry in entries:
                                path = directory + b"/" + os.fsencode(entry.name)
                                if entry.is_dir(follow_symlinks=False):
                                    pending.append(path)
                                else:
                                    _add_changed(path, changes)
                except OSError as error:
                    if error.errno == errno.ENOSPC:  # no watch left: fs.inotify.max_user_watches
                        changes.missed = True
                        return
                    if error.errno in UNREADABLE_ERRNOS and directory != self._bucket:  # the others can be watched
                        changes.missed = True
                        continue
                    if error.errno != errno.ENOENT and error.errno not in BLOCKING_ERRNOS:
                        raise

    def _forget(self, start: bytes) -> None:
        for watch, directory in list(self._paths.items()):
            if directory == start or directory.startswith(start + b"/"):
                _libc.inotify_rm_watch(self.fd, watch)
                del self._paths[watch]


async def watch(directories: Directories, bucket: str, run_in_thread: RunInThread[Changes]) -> AsyncIterator[Changes]:
    """Yield the changes of a bucket, in bundles, until closed.

    Raises StoreFailed where the mount does not report them.
    """
    watcher = Watcher(directories, bucket)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        yield await run_in_thread(watcher.start)
        loop.add_reader(watcher.fd, readable.set)
        while True:
            await readable.wait()
            loop.remove_reader(watcher.fd)
            await asyncio.sleep(PAUSE_SECONDS)
            readable.clear()
            changes = await run_in_thread(watcher.read)
            loop.add_reader(watcher.fd, readable.set)
            if changes:
                yield changes
    finally:
        if watcher.fd >= 0:
            loop.remove_reader(watcher.fd)
        try:
            run_in_thread(watcher.end)
        except StoreFailed:  # the threads have ended
            watcher.close()


def _add_changed(path: bytes, changes: Changes) -> None:
    if len(changes.paths) >= MAX_PENDING:
        changes.missed = True
        return
    try:
        changes.paths.add(path.decode())
    except UnicodeDecodeError:  # no key of ours
        pass


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
