"""The disks below paths: whether two paths share one, and what was read of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sluice_s3.storage_drivers.mountinfo import mount_of

BLOCK = Path("/sys/dev/block")
SECTOR = 512
"""The sector size of /proc/diskstats, whatever the device's own is."""


def device_of(path: Path) -> int:
    """Return the number of the block device that holds a path, or 0 (a network or FUSE mount, or memory).

    File systems such as btrfs give files numbers that are no device's: then the mount's source counts. Raises OSError.
    """
    number = os.stat(path).st_dev
    if os.major(number):
        return number
    with suppress(OSError):
        source = mount_of(path).source
        if source.startswith("/dev/"):
            return os.stat(source).st_rdev
    return 0


def disks_of(number: int) -> frozenset[str]:
    """Return the names of the whole disks below a block device: of a partition, a volume, a file as a loop device."""
    entry = BLOCK / f"{os.major(number)}:{os.minor(number)}"
    if not number or not entry.exists():
        return frozenset()
    return frozenset(_disks(entry.resolve(), 0))


def _disks(entry: Path, depth: int) -> set[str]:
    if (entry / "partition").exists():
        entry = entry.parent
    below: set[str] = set()
    if depth < 8:
        with suppress(OSError):
            backing = Path((entry / "loop/backing_file").read_text().strip())
            below |= disks_of(device_of(backing))
        with suppress(OSError):
            for slave in sorted((entry / "slaves").iterdir()):
                below |= _disks(slave.resolve(), depth + 1)
    return below or {entry.name}


def sectors_of(number: int) -> tuple[int, int] | None:
    """Return the bytes read and written of a block device since boot; None if there is none."""
    wanted = (str(os.major(number)), str(os.minor(number)))
    with suppress(OSError):
        for line in Path("/proc/diskstats").read_text().splitlines():
            fields = line.split()
            if (fields[0], fields[1]) == wanted:
                return int(fields[5]) * SECTOR, int(fields[9]) * SECTOR
    return None
