"""A mount whose operations take times of your choice: what a disk far away, or a synchronous one, does to a gateway.

A passthrough over a directory by FUSE. Every operation is done at once on the backing directory and then waits, in a
thread of its own; a sync only waits. So nothing here survives a power cut, and the CPU that the mount costs does not
grow with its times.
"""

from __future__ import annotations

import ctypes.util
import errno
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

READY_SECONDS = 20.0
STATVFS = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize", "f_namemax")


class MountFailed(Exception):
    """There is no FUSE here, or it refused us; the message is what it printed."""


@dataclass(frozen=True)
class Times:
    """Milliseconds that operations of each kind take. A time of 0 for `xattr` means that there are no attributes."""

    create_ms: float = 0.0
    """Making a file, a directory or a link, and renaming."""
    sync_ms: float = 0.0
    """fsync(2) of a file or a directory."""
    remove_ms: float = 0.0
    lookup_ms: float = 0.0
    """Finding a name, stat(2)."""
    open_ms: float = 0.0
    read_ms: float = 0.0
    write_ms: float = 0.0
    """Each write that reaches the mount: of at most 4 KiB, unless it has `big_writes`."""
    close_ms: float = 0.0
    xattr_ms: float = 0.0
    """Linux asks for `security.capability` before each write(2)."""

    def arguments(self) -> list[str]:
        """As the command `mount` takes them."""
        return [
            word
            for field in fields(self)
            for word in (f"--{field.name.replace('_', '-')}", str(getattr(self, field.name)))
        ]


class Passthrough:
    """Operations as mfusepy calls them, in many threads. A path begins with a slash; `fh` is a descriptor of ours."""

    use_ns = True

    def __init__(self, backing: Path, times: Times) -> None:
        self._root = os.path.realpath(backing)
        self._times = times
        if not times.xattr_ms:
            self.getxattr.__func__.libfuse_ignore = True  # type: ignore[attr-defined]

    def _wait(self, milliseconds: float) -> None:
        if milliseconds:
            time.sleep(milliseconds / 1000)

    # names

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._root + path) if fh is None else os.fstat(fh)
        self._wait(self._times.lookup_ms)
        return {
            name.removesuffix("_ns"): getattr(found, name)
            for name in (
                *("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks"),
                *("st_atime_ns", "st_mtime_ns", "st_ctime_ns"),
            )
        }

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        self._wait(self._times.xattr_ms)
        raise OSError(errno.ENODATA, path)

    def readdir(self, path: str, fh: int) -> Iterable[str]:
        self._wait(self._times.lookup_ms)
        return [".", "..", *os.listdir(self._root + path)]

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._root + path)
        return {name: getattr(found, name) for name in STATVFS}

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._root + path, mode)
        self._wait(self._times.create_ms)

    def rename(self, old: str, new: str) -> None:
        os.rename(self._root + old, self._root + new)
        self._wait(self._times.create_ms)

    def unlink(self, path: str) -> None:
        os.unlink(self._root + path)
        self._wait(self._times.remove_ms)

    def rmdir(self, path: str) -> None:
        os.rmdir(self._root + path)
        self._wait(self._times.remove_ms)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._root + path, stat.S_IMODE(mode))

    def utimens(self, path: str, times: tuple[int, int]) -> None:
        os.utime(self._root + path, ns=times)

    # files

    def create(self, path: str, mode: int) -> int:
        made = os.open(self._root + path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        self._wait(self._times.create_ms)
        return made

    def open(self, path: str, flags: int) -> int:
        kept = flags & (os.O_ACCMODE | os.O_TRUNC)
        opened = os.open(self._root + path, kept | os.O_CLOEXEC)
        self._wait(self._times.open_ms)
        return opened

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        piece = os.pread(fh, size, offset)
        self._wait(self._times.read_ms)
        return piece

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        done = os.pwrite(fh, data, offset)
        self._wait(self._times.write_ms)
        return done

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        os.truncate(self._root + path if fh is None else fh, length)
        self._wait(self._times.write_ms)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        self._wait(self._times.sync_ms)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        self._wait(self._times.sync_ms)

    def release(self, path: str, fh: int) -> None:
        os.close(fh)

    def flush(self, path: str, fh: int) -> None:
        self._wait(self._times.close_ms)


def serve(backing: Path, mountpoint: Path, times: Times, big_writes: bool) -> None:
    """Mount, and serve until it is unmounted. Raises MountFailed."""
    # libfuse 2 keeps ten threads that wait for work and makes the others anew each time
    newer = ctypes.util.find_library("fuse3")
    if newer is not None:
        os.environ.setdefault("FUSE_LIBRARY_PATH", newer)
    try:
        import mfusepy
    except (ImportError, OSError) as error:
        raise MountFailed(f"mfusepy and libfuse are wanted: {error}") from error
    options: dict[str, object] = {"big_writes": True} if big_writes and mfusepy.fuse_version_major == 2 else {}
    if not big_writes:
        options["max_write"] = 4096
    if mfusepy.fuse_version_major == 3:
        options |= {"max_threads": 256, "max_idle_threads": 256}  # else ten, and what the eleventh asks for waits
    try:
        mfusepy.FUSE(Passthrough(backing, times), str(mountpoint), foreground=True, fsname="sluice-slow", **options)
    except RuntimeError as error:
        raise MountFailed(f"FUSE ended with {error}") from error


@contextmanager
def slow_mount(backing: Path, mountpoint: Path, times: Times, *, big_writes: bool = True) -> Iterator[Path]:
    """The mount in a process of its own, until the end of the block. Raises MountFailed."""
    command = [sys.executable, "-m", "benchmarks", "mount", str(backing), str(mountpoint), *times.arguments()]
    command.append("--big-writes" if big_writes else "--no-big-writes")
    process = subprocess.Popen(
        command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        _until(lambda: os.path.ismount(mountpoint), process)
        yield mountpoint
    finally:
        unmount(mountpoint)
        try:
            process.communicate(timeout=READY_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def unmount(mountpoint: Path) -> None:
    """Take the mount away, also from under those who still have files of it open."""
    if os.path.ismount(mountpoint):
        program = ["umount", "-l"] if os.geteuid() == 0 else [shutil.which("fusermount3") or "fusermount", "-uz"]
        subprocess.run([*program, str(mountpoint)], check=False, capture_output=True)


def _until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not true():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise MountFailed(process.communicate()[0].strip() or f"not mounted after {READY_SECONDS:.0f} s")
        time.sleep(0.02)
