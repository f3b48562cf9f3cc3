"""What others do to the files of a bucket, told by inotify(7) as it happens. Local filesystems only: a mount of NFS or
FUSE tells what this machine does and nothing of what others do.

It is an aid: what it misses (no watch left, a full queue, a directory moved away) is found by the next scan, and it
says so. Our own writes are told as well.
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

from storage_drivers.errors import StoreFailed, map_errors
from storage_drivers.tree.base import REFUSED
from storage_drivers.tree.directories import IN_THE_WAY, Directories
from storage_drivers.tree.opening import DIRECTORY, opened

T = TypeVar("T")
Hop = Callable[[Callable[[], T]], asyncio.Future[T]]

ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_DIRECTORY, ONLY_DIRECTORIES = 0x4000, 0x8000, 0x40000000, 0x01000000
WATCHED = ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLY_DIRECTORIES
"""linux/inotify.h"""
EVENT = struct.Struct("iIII")
READ = 64 * 1024
PAUSE = 0.2
"""Seconds for which changes are gathered: whoever writes one file often writes more."""
MANY = 10_000
"""Changed paths after which a scan is quicker."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Changes:
    """What happened to a bucket."""

    paths: set[str] = field(default_factory=set)
    """Of files that were made, changed or taken away, relative to the store's root. Look what is there now."""
    missed: bool = False
    """There was more: only a scan tells."""

    def __bool__(self) -> bool:
        return bool(self.paths) or self.missed


class Watcher:
    """Watches over the directories of one bucket. Every method blocks and raises DriverError."""

    def __init__(self, directories: Directories, bucket: str) -> None:
        self.fd = -1
        self._directories = directories
        self._bucket = bucket.encode()
        self._ways: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def start(self) -> Changes:
        """Watch every directory; what was made meanwhile. Raises StoreFailed where that cannot be done."""
        if not self._directories.is_local():
            raise StoreFailed("only a local mount tells what others do")
        with self._lock, map_errors():
            self.fd = _called(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            changes = Changes()
            self._add(self._bucket, changes)
        if not self._ways:
            raise StoreFailed("the bucket cannot be watched")
        return Changes(missed=changes.missed)

    def close(self) -> None:
        """Watch no more. Waits for a call under way in another thread."""
        with self._lock:
            fd, self.fd = self.fd, -1
            if fd >= 0:
                os.close(fd)

    def end(self) -> Changes:
        """`close`, in a thread."""
        self.close()
        return Changes()

    def read(self) -> Changes:
        """What happened since the last call."""
        changes = Changes()
        with self._lock, map_errors():
            while self.fd >= 0:
                try:
                    events = os.read(self.fd, READ)
                except BlockingIOError:
                    break
                at = 0
                while at < len(events):
                    watch, mask, _, length = EVENT.unpack_from(events, at)
                    at += EVENT.size + length
                    self._take(watch, mask, events[at - length : at].rstrip(b"\0"), changes)
        return changes

    def _take(self, watch: int, mask: int, name: bytes, changes: Changes) -> None:
        if mask & OVERFLOW:
            changes.missed = True
        if mask & IGNORED:
            self._ways.pop(watch, None)
        way = self._ways.get(watch)
        if way is None or not name:
            return
        path = way + b"/" + name
        if not mask & IS_DIRECTORY:
            _note(path, changes)
        elif mask & (CREATE | MOVED_TO):
            self._add(path, changes)
        elif mask & MOVED_FROM:
            self._forget(path)
            changes.missed = True

    def _add(self, top: bytes, changes: Changes) -> None:
        """Watch a directory and all in it; files that are there were perhaps made before we watched."""
        pending = [top]
        with self._directories.root() as root:
            while pending:
                way = pending.pop()
                try:
                    with opened(root, way, DIRECTORY) as fd:
                        watch = _libc.inotify_add_watch(self.fd, f"/proc/self/fd/{fd}".encode(), WATCHED)
                        self._ways[_called(watch)] = way
                        with os.scandir(fd) as entries:
                            for entry in entries:
                                path = way + b"/" + os.fsencode(entry.name)
                                if entry.is_dir(follow_symlinks=False):
                                    pending.append(path)
                                else:
                                    _note(path, changes)
                except OSError as error:
                    if error.errno == errno.ENOSPC:  # no watch left: fs.inotify.max_user_watches
                        changes.missed = True
                        return
                    if error.errno in REFUSED and way != self._bucket:  # the others can be watched
                        changes.missed = True
                        continue
                    if error.errno != errno.ENOENT and error.errno not in IN_THE_WAY:
                        raise

    def _forget(self, top: bytes) -> None:
        for watch, way in list(self._ways.items()):
            if way == top or way.startswith(top + b"/"):
                _libc.inotify_rm_watch(self.fd, watch)
                del self._ways[watch]


async def watch(directories: Directories, bucket: str, hop: Hop[Changes]) -> AsyncIterator[Changes]:
    """What happens to a bucket, in bundles, for as long as somebody asks. Raises StoreFailed where that is not told."""
    watcher = Watcher(directories, bucket)
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    try:
        yield await hop(watcher.start)
        loop.add_reader(watcher.fd, told.set)
        while True:
            await told.wait()
            loop.remove_reader(watcher.fd)
            await asyncio.sleep(PAUSE)
            told.clear()
            changes = await hop(watcher.read)
            loop.add_reader(watcher.fd, told.set)
            if changes:
                yield changes
    finally:
        if watcher.fd >= 0:
            loop.remove_reader(watcher.fd)
        try:
            hop(watcher.end)
        except StoreFailed:  # the threads have ended
            watcher.close()


def _note(path: bytes, changes: Changes) -> None:
    if len(changes.paths) >= MANY:
        changes.missed = True
        return
    try:
        changes.paths.add(path.decode())
    except UnicodeDecodeError:  # no key of ours
        pass


def _called(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
