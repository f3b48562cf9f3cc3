"""The operations of a FUSE mount over a directory, as mfusepy's threads call them."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sluice_s3.loadtests.mounts.latency_model import Costs, Stream
from sluice_s3.loadtests.mounts.power_loss import HIDDEN, Undo

STATVFS = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize", "f_namemax")
ATTRIBUTES = tuple(
    (name.removesuffix("_ns"), name)
    for name in (
        *("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks"),
        *("st_atime_ns", "st_mtime_ns", "st_ctime_ns"),
    )
)
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
"""libfuse's values for a time that is now, and for one that stays."""

MOST_KNOWN = 200_000


@dataclass
class File:
    """The state of an open file, shared by all its descriptors."""

    inode: int
    stream: Stream = field(default_factory=Stream)
    users: int = 0
    dead: bool = False
    """Whether it is unlinked, on mounts where that ends reading."""


class Known:
    """Names whose attributes a client has cached.

    It asked for them lately, or they came with another answer, as those of a directory do when a name in it changes.
    Linux's FUSE asks again where a client of NFS does not.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def has(self, path: str, now: float) -> bool:
        """Return whether the attributes of this name are cached."""
        return self._until.get(path, 0.0) > now

    def add(self, path: str) -> None:
        """Cache the attributes of a name and its directory."""
        if len(self._until) > MOST_KNOWN:
            self._until = {}
        self._until[path] = self._until[os.path.dirname(path)] = time.perf_counter() + self._seconds

    def remove(self, path: str) -> None:
        """Forget a name; cache the attributes of its directory."""
        self._until.pop(path, None)
        self._until[os.path.dirname(path)] = time.perf_counter() + self._seconds


class Passthrough:
    """Operations on the backing directory.

    A path begins with a slash. `fh` is a descriptor of ours. Raises OSError as the directory's own calls do.
    """

    use_ns = True

    def __init__(self, root: str, costs: Costs, undo: Undo | None = None) -> None:
        self._root = os.path.realpath(root)
        self._costs = costs
        self._undo = undo
        self._lock = threading.Lock()
        self._files: dict[int, File] = {}
        self._open: dict[int, File] = {}
        self._attribute_cache = Known(costs.profile.cache_seconds)

    # names

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """Serve FUSE's `getattr`."""
        started = time.perf_counter()
        found = os.lstat(self._root + path) if fh is None else os.fstat(fh)
        if fh is None and not self._attribute_cache.has(path, started):
            self._costs.call("lookup", started)
            self._attribute_cache.add(path)
        return {name: getattr(found, attribute) for name, attribute in ATTRIBUTES}

    def readlink(self, path: str) -> str:
        """Serve FUSE's `readlink`."""
        return os.readlink(self._root + path)

    def readdir(self, path: str, fh: int) -> Iterable[Any]:
        """Serve FUSE's `readdir`."""
        self._costs.call("readdir", time.perf_counter())
        with os.scandir(self._root + path) as found:
            inside = [(one.name, {"st_mode": _kind(one), "st_ino": one.inode()}, 0) for one in found]
        return [".", "..", *inside]

    def statfs(self, path: str) -> dict[str, int]:
        """Serve FUSE's `statfs`."""
        self._costs.call("statfs", time.perf_counter())
        found = os.statvfs(self._root + path)
        return {name: getattr(found, name) for name in STATVFS}

    def mkdir(self, path: str, mode: int) -> None:
        """Serve FUSE's `mkdir`."""
        started = time.perf_counter()
        self._make(path, lambda: os.mkdir(self._root + path, mode))
        self._costs.call("create", started)

    def symlink(self, target: str, source: str) -> None:
        """Serve FUSE's `symlink`."""
        started = time.perf_counter()
        self._make(target, lambda: os.symlink(source, self._root + target))
        self._costs.call("create", started)

    def link(self, target: str, source: str) -> None:
        """Serve FUSE's `link`."""
        started = time.perf_counter()
        self._make(target, lambda: os.link(self._root + source, self._root + target, follow_symlinks=False))
        self._costs.call("create", started)

    def rename(self, old: str, new: str) -> None:
        """Serve FUSE's `rename`."""
        started = time.perf_counter()
        if self._undo is None:
            os.rename(self._root + old, self._root + new)
        else:
            with self._undo.changing():
                self._require_empty(new)
                self._undo.rename(old, new)
        self._attribute_cache.remove(old)
        self._attribute_cache.add(new)
        self._costs.call("remove" if is_hidden(new) else "rename", started)

    def unlink(self, path: str) -> None:
        """Serve FUSE's `unlink`."""
        started = time.perf_counter()
        if self._undo is None:
            os.unlink(self._root + path)
        else:
            with self._undo.changing():
                self._undo.remove(path)
        self._attribute_cache.remove(path)
        if not is_hidden(path):
            self._costs.call("remove", started)

    def rmdir(self, path: str) -> None:
        """Serve FUSE's `rmdir`."""
        started = time.perf_counter()
        if self._undo is None:
            os.rmdir(self._root + path)
        else:
            with self._undo.changing():
                self._require_empty(path)
                self._undo.remove(path)
        self._attribute_cache.remove(path)
        self._costs.call("remove", started)

    def chmod(self, path: str, mode: int) -> None:
        """Serve FUSE's `chmod`."""
        started = time.perf_counter()
        os.chmod(self._root + path, stat.S_IMODE(mode))
        self._costs.call("setattr", started)

    def chown(self, path: str, uid: int, gid: int) -> None:
        """Serve FUSE's `chown`."""
        started = time.perf_counter()
        os.chown(self._root + path, uid, gid, follow_symlinks=False)
        self._costs.call("setattr", started)

    def utimens(self, path: str, times: tuple[int, int] | None) -> None:
        """Serve FUSE's `utimens`."""
        started = time.perf_counter()
        self._set_times(path, times)
        self._costs.call("setattr", started)

    # files

    def create(self, path: str, mode: int) -> int:
        """Serve FUSE's `create`."""
        started = time.perf_counter()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd: int = self._make(path, lambda: os.open(self._root + path, flags, mode))
        self._opened(fd)
        self._costs.call("create", started)
        return fd

    def open(self, path: str, flags: int) -> int:
        """Serve FUSE's `open`."""
        started = time.perf_counter()
        fd = os.open(self._root + path, (flags & os.O_ACCMODE) | os.O_CLOEXEC)
        self._opened(fd)
        if flags & os.O_TRUNC:
            self._cut(fd, 0)
        self._costs.call("open", started)
        return fd

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Serve FUSE's `read`."""
        started = time.perf_counter()
        piece = os.pread(fh, size, offset)
        self._costs.was_read(self._file(fh).stream, offset, len(piece), started)
        return piece

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Serve FUSE's `write`."""
        started = time.perf_counter()
        file = self._file(fh)
        with self._changing(fh, offset, len(data)):
            done = os.pwrite(fh, data, offset)
        self._costs.wrote(file.stream, done, started)
        return done

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        """Serve FUSE's `truncate`."""
        started = time.perf_counter()
        fd = os.open(self._root + path, os.O_RDWR | os.O_CLOEXEC) if fh is None else fh
        try:
            self._cut(fd, length)
        finally:
            if fh is None:
                os.close(fd)
        self._costs.call("setattr", started)

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> None:
        """Serve FUSE's `fallocate`."""
        arguments = (fh, mode, ctypes.c_int64(offset), ctypes.c_int64(size))
        with self._changing(fh, offset, size):
            if ctypes.CDLL(None, use_errno=True).fallocate(*arguments):
                raise OSError(ctypes.get_errno(), "fallocate", path)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        """Serve FUSE's `fsync`."""
        started = time.perf_counter()
        file = self._file(fh)
        if self._undo is not None:
            # before the wait: what is written during it is not in it
            self._undo.synced(fh)
        self._costs.synced(file.stream, started)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        """Serve FUSE's `fsyncdir`."""
        started = time.perf_counter()
        if self._undo is not None:
            self._undo.synced_directory(path)
        self._costs.call("syncdir", started)

    def flush(self, path: str, fh: int) -> None:
        """Serve FUSE's `flush`."""
        started = time.perf_counter()
        if self._undo is not None and self._costs.profile.close_sends:
            self._undo.synced(fh)
        self._costs.closed(self._open[fh].stream, started)

    def release(self, path: str, fh: int) -> None:
        """Serve FUSE's `release`."""
        with self._lock:
            file = self._open.pop(fh)
            file.users -= 1
            if not file.users and not file.stream.written:
                self._files.pop(file.inode, None)
        os.close(fh)

    # attributes of other names

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        """Serve FUSE's `getxattr`."""
        self._costs.call("xattr", time.perf_counter())
        return os.getxattr(self._root + path, name, follow_symlinks=False)

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> None:
        """Serve FUSE's `setxattr`."""
        self._costs.call("xattr", time.perf_counter())
        os.setxattr(self._root + path, name, value, options, follow_symlinks=False)

    def listxattr(self, path: str) -> list[str]:
        """Serve FUSE's `listxattr`."""
        self._costs.call("xattr", time.perf_counter())
        return os.listxattr(self._root + path, follow_symlinks=False)

    def removexattr(self, path: str, name: str) -> None:
        """Serve FUSE's `removexattr`."""
        self._costs.call("xattr", time.perf_counter())
        os.removexattr(self._root + path, name, follow_symlinks=False)

    # what personalities change

    def _set_times(self, path: str, times: tuple[int, int] | None) -> None:
        found = os.lstat(self._root + path)
        wanted = zip(times or (UTIME_NOW, UTIME_NOW), (found.st_atime_ns, found.st_mtime_ns), strict=True)
        atime, mtime = ({UTIME_NOW: time.time_ns(), UTIME_OMIT: old}.get(new, new) for new, old in wanted)
        os.utime(self._root + path, ns=(atime, mtime), follow_symlinks=False)

    def _cut(self, fd: int, length: int) -> None:
        with self._changing(fd, length, max(0, os.fstat(fd).st_size - length)):
            os.ftruncate(fd, length)

    def _require_empty(self, path: str) -> None:
        full = self._root + path
        if os.path.isdir(full) and not os.path.islink(full) and os.listdir(full):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)

    # helpers

    @contextmanager
    def _changing(self, fd: int, offset: int, count: int) -> Iterator[None]:
        if self._undo is None:
            yield
            return
        with self._undo.changing():
            self._undo.will_change(fd, offset, count)
            yield

    def _make(self, path: str, make: Any) -> Any:
        if self._undo is None:
            made = make()
        else:
            with self._undo.changing():
                made = make()
                self._undo.created(path)
        self._attribute_cache.add(path)
        return made

    def _opened(self, fd: int) -> File:
        inode = os.fstat(fd).st_ino
        with self._lock:
            file = self._files.get(inode)
            if file is None:
                file = self._files[inode] = File(inode)
            file.users += 1
            self._open[fd] = file
        return file

    def _file(self, fh: int) -> File:
        file = self._open[fh]
        if file.dead:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return file


def is_hidden(path: str) -> bool:
    """Return whether it is libfuse's own name for a file that is unlinked and open."""
    return os.path.basename(path).startswith(HIDDEN)


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    return stat.S_IFDIR if entry.is_dir(follow_symlinks=False) else stat.S_IFREG
