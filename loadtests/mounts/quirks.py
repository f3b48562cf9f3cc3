"""Mounts that differ from a local disk: each has operations that it changes or lacks."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable
from typing import Any

from sluice_s3.loadtests.mounts.latency_model import Costs
from sluice_s3.loadtests.mounts.passthrough import Passthrough
from sluice_s3.loadtests.mounts.power_loss import Undo

XATTRS = ("getxattr", "setxattr", "listxattr", "removexattr")
SECOND = 1_000_000_000


class Plain(Passthrough):
    """All that the directory's own file system does except O_TMPFILE, which libfuse lacks."""

    lacks: tuple[str, ...] = ()
    options: dict[str, Any] = {"use_ino": True, "auto_cache": True}
    """Options of libfuse.

    `auto_cache`: Linux drops a file's cached bytes at open when the file has changed.
    """


class Nfs(Plain):
    """NFS 4.1 as of EFS: no extended attributes, no fallocate.

    A file that is removed while it is open on this machine gets another name until it is closed (libfuse does that as
    NFS does).
    """

    lacks = (*XATTRS, "fallocate")


class Zdbfs(Plain):
    """zdbfs 0.1.10 as it was found to behave.

    Sync does nothing. rmdir and rename destroy a directory that is not empty. A file that is unlinked or renamed over
    can no longer be read through open descriptors. There are no extended attributes, fallocate or O_TMPFILE. A file
    that is cut and grows again shows its old bytes. A listing goes by index, so it skips entries when others are
    removed meanwhile. Times are in seconds; directories have no links. Calls run side by side here, on zdbfs one after
    the other.
    """

    lacks = (*XATTRS, "fallocate")
    options = {"hard_remove": True, "direct_io": True, "entry_timeout": 5, "attr_timeout": 5}

    def __init__(self, root: str, costs: Costs, undo: Undo | None = None) -> None:
        super().__init__(root, costs, undo)
        self._cut_off: dict[int, tuple[int, bytes]] = {}

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """See `Passthrough`."""
        if fh is not None:
            self._file(fh)
        found = super().getattr(path, fh)
        if found["st_mode"] & 0o170000 == 0o040000:
            found["st_nlink"] = 0
        for name in ("st_atime", "st_mtime", "st_ctime"):
            found[name] -= found[name] % SECOND
        return found

    def _set_times(self, path: str, times: tuple[int, int] | None) -> None:
        super()._set_times(path, times)
        found = os.lstat(self._root + path)
        whole = [moment - moment % SECOND for moment in (found.st_atime_ns, found.st_mtime_ns)]
        os.utime(self._root + path, ns=(whole[0], whole[1]), follow_symlinks=False)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        """See `Passthrough`."""
        self._file(fh)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        """See `Passthrough`."""
        return

    # removing

    def unlink(self, path: str) -> None:
        """See `Passthrough`."""
        self._kill(path)
        super().unlink(path)

    def rmdir(self, path: str) -> None:
        """See `Passthrough`."""
        self._kill(path)
        if self._undo is None:
            started = time.perf_counter()
            shutil.rmtree(self._root + path)
            self._attribute_cache.remove(path)
            self._costs.call("remove", started)
        else:
            super().rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """See `Passthrough`."""
        if os.path.lexists(self._root + new):
            self._kill(new)
            if self._undo is None and os.path.isdir(self._root + new):
                shutil.rmtree(self._root + new)
        super().rename(old, new)

    def _require_empty(self, path: str) -> None:
        return

    def _kill(self, path: str) -> None:
        """End all use of a name, and of all below it."""
        full = self._root + path
        below = [full]
        for directory, _, names in os.walk(full):
            below += [os.path.join(directory, name) for name in names]
        inodes = {os.lstat(one).st_ino for one in below if os.path.lexists(one)}
        with self._lock:
            for inode in inodes:
                self._cut_off.pop(inode, None)
                if inode in self._files:
                    self._files.pop(inode).dead = True

    # listing

    def readdir(self, path: str, fh: int) -> Iterable[Any]:
        """See `Passthrough`."""
        raise NotImplementedError

    def readdir_with_offset(self, path: str, offset: int, fh: int) -> Iterable[Any]:
        """List from an index by what stands there now, whatever was there before."""
        names = [".", "..", *sorted(os.listdir(self._root + path))]
        for index in range(offset, len(names)):
            yield names[index], None, index + 1

    # old bytes

    def _cut(self, fd: int, length: int) -> None:
        found = os.fstat(fd)
        if length < found.st_size:
            tail = b""
            readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                tail = os.pread(readable, found.st_size - length, length)
            finally:
                os.close(readable)
            before = self._cut_off.get(found.st_ino)
            if before is not None:
                tail += before[1]
            self._cut_off[found.st_ino] = (length, tail)
        super()._cut(fd, length)
        if length > found.st_size:
            self._revive(fd, found.st_ino, found.st_size, length)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """See `Passthrough`."""
        if self._cut_off:
            found = os.fstat(fh)
            if found.st_ino in self._cut_off and offset + len(data) > found.st_size:
                self._revive(fh, found.st_ino, found.st_size, max(offset, found.st_size))
                start, tail = self._cut_off.pop(found.st_ino)
                passed = offset + len(data) - start
                if passed < len(tail):
                    self._cut_off[found.st_ino] = (offset + len(data), tail[passed:])
        return super().write(path, data, offset, fh)

    def _revive(self, fd: int, inode: int, size: int, upto: int) -> None:
        """Fill the added range of a file with its bytes before the cut."""
        start, tail = self._cut_off.get(inode, (0, b""))
        again = tail[size - start : upto - start] if start <= size else b""
        if again:
            os.pwrite(fd, again, size)


class NoRename(Plain):
    """mountpoint-s3: new files only, written once from beginning to end.

    No rename, no links.
    """

    lacks = (*XATTRS, "fallocate", "symlink", "link", "readlink")

    def rename(self, old: str, new: str) -> None:
        """See `Passthrough`."""
        raise OSError(errno.EPERM, "rename", old)

    def open(self, path: str, flags: int) -> int:
        """See `Passthrough`."""
        if flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC:
            raise OSError(errno.EPERM, "open", path)
        return super().open(path, flags)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """See `Passthrough`."""
        if offset != os.fstat(fh).st_size:
            raise OSError(errno.EINVAL, "write", path)
        return super().write(path, data, offset, fh)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        """See `Passthrough`."""
        raise OSError(errno.EPERM, "truncate", path)


PERSONALITIES: dict[str, type[Plain]] = {"plain": Plain, "nfs": Nfs, "zdbfs": Zdbfs, "no-rename": NoRename}
