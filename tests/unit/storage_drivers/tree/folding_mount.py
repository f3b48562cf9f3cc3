"""A FUSE mount that takes names for one which differ in case or Unicode form only, as vfat, CIFS and APFS do.

python -m tests.unit.storage_drivers.tree.folding_mount BACKING MOUNT {claims|no-claims} [normalises]

`claims`: a rename may be told to replace nothing. `normalises`: names come back decomposed, as from HFS+.
"""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

import mfusepy

NUMBERS = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks")


def fold(name: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


class Folding(mfusepy.Operations):
    """Over a directory that keeps all names apart."""

    use_ns = True

    def __init__(self, root: str, normalises: bool) -> None:
        self._root = root
        self._normalises = normalises

    def _real(self, path: str) -> str:
        """The path under the names that are there, or under the given ones where nothing is."""
        real = self._root
        for name in path.strip("/").split("/") if path != "/" else ():
            try:
                names = os.listdir(real)
            except (FileNotFoundError, NotADirectoryError):
                names = []
            given = unicodedata.normalize("NFD", name) if self._normalises else name
            real = f"{real}/{next((one for one in names if fold(one) == fold(name)), given)}"
        return real

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._real(path))
        times = {f"st_{one}time": getattr(found, f"st_{one}time_ns") for one in "amc"}
        return {name: getattr(found, name) for name in NUMBERS} | times

    def readdir(self, path: str, fh: int) -> Iterable[Any]:
        with os.scandir(self._real(path)) as found:
            inside = [
                (one.name, {name: getattr(one.stat(follow_symlinks=False), name) for name in NUMBERS}, 0)
                for one in found
            ]
        return [".", "..", *inside]

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self._real(path), mode)
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._real(path))
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self._real(path))
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._real(path), mode)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self._real(path), ns=times)
        return 0

    def rename(self, old: str, new: str, claims: bool = False) -> int:
        target = self._real(new)
        if claims and os.path.lexists(target):
            raise mfusepy.FuseOSError(errno.EEXIST)
        os.rename(self._real(old), target)
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self._real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path: str, flags: int) -> int:
        return os.open(self._real(path), flags & os.O_ACCMODE)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self._real(path), length)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        os.fsync(fh)
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._root)
        return {name: getattr(found, name) for name in ("f_bsize", "f_frsize", "f_blocks", "f_bavail", "f_namemax")}


class Mount(mfusepy.FUSE):  # type: ignore[misc]
    """What mfusepy drops: the flags of a rename. libfuse 2 has none."""

    claims = False

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        if flags and not self.claims:
            raise mfusepy.FuseOSError(errno.EINVAL)
        return int(self.operations.rename(old.decode(), new.decode(), claims=bool(flags)))


if __name__ == "__main__":
    Mount.claims = sys.argv[3] == "claims"
    more = {"use_ino": True} if mfusepy.fuse_version_major == 2 else {}
    Mount(Folding(sys.argv[1], "normalises" in sys.argv[4:]), sys.argv[2], foreground=True, nothreads=True, **more)
