"""A filesystem in a file, and a power cut under it.

FS_IOC_SHUTDOWN with NOLOGFLUSH drops everything that was not made durable, data and directory entries alike, as the
kernel's own filesystem tests do it. What it cannot show: a disk that reorders or loses its own write cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.support.waiting import eventually

FS_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = 2
IMAGE_BYTES = 4 << 30
"""Sparse; XFS wants 300 MB at least."""

BALLAST = "ballast"
MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
FICLONE = 0x40049409


class Disk:
    """A loop-mounted filesystem of `kind` at `mount`, mounted while the block runs."""

    def __init__(self, directory: Path, kind: str, size: int = IMAGE_BYTES, name: str = "") -> None:
        self.image = directory / f"{name or kind}.img"
        self.mount = directory / f"{name or kind}.mnt"
        self.mount.mkdir()
        with self.image.open("wb") as image:
            image.truncate(size)
        subprocess.run([*MAKE[kind], str(self.image)], check=True, capture_output=True)

    def __enter__(self) -> Disk:
        self._mount()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._unmount()
        self.image.unlink()

    def cut(self) -> None:
        """Cut the power: from now on every call on the mount fails, and what was not durable is gone."""
        fd = os.open(self.mount, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        finally:
            os.close(fd)

    def fill(self) -> None:
        """Take the last free block for the file `ballast`."""
        ballast = os.open(self.mount / BALLAST, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            for size in (64 << 20, 1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(ballast, os.fstat(ballast).st_size, size)
        finally:
            os.close(ballast)

    def empty(self) -> None:
        """Give back what `fill` took."""
        (self.mount / BALLAST).unlink(missing_ok=True)

    def break_down(self) -> None:
        """Do what an error of the filesystem does: it is read-only until it is mounted again (ext4(5), `abort`)."""
        subprocess.run(["mount", "-o", "remount,abort", str(self.mount)], check=True, capture_output=True)

    def give_back(self) -> None:
        """Mount what `umount --lazy` took away."""
        self._mount()

    def restore(self) -> None:
        """Mount again what survived; nobody may hold a file of the mount open."""
        self._unmount()
        self._mount()

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.mount)], check=True, capture_output=True)

    def _unmount(self) -> None:
        def unmounted() -> bool:
            done = subprocess.run(["umount", str(self.mount)], capture_output=True, text=True, check=False)
            if "busy" in done.stderr:
                return False  # a killed process closes its files in its own time
            done.check_returncode()
            return True

        eventually(unmounted, f"nobody uses {self.mount}", 10)


class ClonedDisk(Disk):
    """A filesystem that knows no FS_IOC_SHUTDOWN: a cut is an instant's clone of the image that it writes to.

    The image lies on an XFS of its own, which makes clones that no write comes between. What the filesystem had not
    given to its disk by then is not in the clone; it does not see the cut itself, and goes on until it is restored.
    """

    def __init__(self, directory: Path, kind: str) -> None:
        self._under = Disk(directory, "xfs")
        with ExitStack() as stack:
            stack.enter_context(self._under)
            super().__init__(self._under.mount, kind)
            self._stack = stack.pop_all()
        self._clone = self.image.with_suffix(".cut")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stack:
            super().__exit__(kind, error, at)
            self._clone.unlink(missing_ok=True)

    def cut(self) -> None:
        """Remember what the disk holds now."""
        with self.image.open("rb") as image, self._clone.open("wb") as clone:
            fcntl.ioctl(clone, FICLONE, image.fileno())

    def restore(self) -> None:
        """Mount what the disk held at the cut."""
        self._unmount()
        self._clone.rename(self.image)
        self._mount()


def disk_of(directory: Path, kind: str) -> Disk:
    """A filesystem of this kind, with the power cut that it knows."""
    return ClonedDisk(directory, kind) if kind == "btrfs" else Disk(directory, kind)
