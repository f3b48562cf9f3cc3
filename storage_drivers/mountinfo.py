"""The filesystem of a path, from the kernel's table of mounts (proc(5))."""

from __future__ import annotations

import functools
import os
import re
import select
from pathlib import Path
from typing import NamedTuple

TABLE = Path("/proc/self/mountinfo")
IN_MEMORY = frozenset({"tmpfs", "ramfs"})
"""Kinds that lose everything in a power cut, whatever they answer to fsync(2)."""

NOT_LOCAL = frozenset({"fuse", "fuseblk", "9p", "cifs", "smb3", "ceph", "lustre", "virtiofs", "unknown"})
"""Kinds for the driver `fuse`; `fuseblk` is FUSE on a block device, as of ntfs-3g and exfat-fuse."""


class Mount(NamedTuple):
    """One mount."""

    kind: str
    """`ext4`, `nfs4`, `fuse.sshfs`, …; `unknown` when it is not in the table."""
    source: str
    point: str
    options: str
    settings: str = ""
    """What the file system itself was mounted with, such as `vers=4.1,hard`."""

    @property
    def driver(self) -> str:
        """The driver meant for such a mount."""
        kind = self.kind.partition(".")[0]
        if kind.startswith("nfs"):
            return "efs"
        return "fuse" if kind in NOT_LOCAL else "local"


UNKNOWN = Mount("unknown", "", "", "")


def mount_of(path: str | Path) -> Mount:
    """Return the mount of `path`; the top one if several are stacked. Blocks; raises OSError."""
    real = os.path.realpath(path)
    device = os.stat(real).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    best = UNKNOWN
    try:
        lines = TABLE.read_text().splitlines()
    except OSError:
        return UNKNOWN
    for line in lines:
        fields = line.split(" ")
        if "-" not in fields:
            continue
        point = _plain(fields[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        # btrfs gives its subvolumes device numbers that are not in the table.
        same = fields[2] == number or fields[fields.index("-") + 1] == "btrfs"
        if inside and same and len(point) >= len(best.point):
            kind, source, settings = fields[fields.index("-") + 1 :][:3]
            best = Mount(kind, _plain(source), point, fields[5], _plain(settings))
    return best


def _plain(escaped: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), escaped)


class _Table:
    """The kernel's table of mounts, whose changes poll(2) reports (proc(5))."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._changes = 0
        try:
            self._poll.register(os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC), select.POLLPRI)
        except OSError:
            pass  # then changes go unnoticed
        self._poll.poll(0)

    def changes(self) -> int:
        """Return the number of changes seen."""
        self._changes += bool(self._poll.poll(0))
        return self._changes


_table = functools.cache(_Table)


def mount_table_generation() -> int:
    """Return a number that changes with each mount and unmount. Never waits."""
    return _table().changes()
