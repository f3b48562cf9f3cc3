"""The trials of a mount before a tree store starts on it."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice_s3.storage_drivers.errors import StoreUnfit
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.probing.probe import NOT_TRIED
from sluice_s3.storage_drivers.probing.scratch import CONTENT, Outcome, Progress, Scratch
from sluice_s3.storage_drivers.probing.trials import rename_across, rename_over, rmdir_refuses
from sluice_s3.storage_drivers.tree.openat2 import DIRECTORY, rename_new

WITH_FLAGS = frozenset({"ext4", "f2fs", "tmpfs"})
"""Filesystems where single directories may fold `Name` and `name`, and report it."""
GET_FLAGS, SET_FLAGS, CASEFOLD = 0x80086601, 0x40086602, 0x40000000
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_CASEFOLD_FL of linux/fs.h."""
LASTING_INODES = frozenset({"local", "efs"})
"""Drivers of mounts with lasting inode numbers; FUSE filesystems often invent them at each lookup."""
UNSTABLE_INODES = frozenset({"vfat", "msdos", "exfat"})
MIN_GRAIN_NS = 20_000_000
"""Minimum granularity in nanoseconds: Linux stamps files by a clock that ticks every 1 to 10 ms."""
NAMES = (
    "Name",
    "\u00f6",
    "e\u0301",
    "\u00e9",
    "A\u030a",
    "\u212b",
    "dot.",
    "space ",
    "col:on",
    "q?",
    "tab\t",
)


@dataclass(frozen=True, slots=True)
class Traits:
    """The behaviour of a mount with names, stamps and directories."""

    folds: bool = False
    """Whether it takes some different names for one."""
    has_flags: bool = False
    """Whether single directories may do so."""
    careful: bool = False
    """Whether only the plainest names are sure to come back unchanged, and to have no twins."""
    claims: bool = True
    """Whether a rename can refuse to replace a file."""
    inodes: bool = True
    """Whether inode numbers last, and survive a rename."""
    rmdir: bool = False
    """Whether rmdir(2) was seen to refuse a directory that is not empty."""
    grain_ns: int = MIN_GRAIN_NS
    time_step: int = 0
    """Granularity in nanoseconds of the mtimes that can be set; 0 where that is not worth it or does not work."""


def try_mount(root: Path, directory: str, progress: Progress) -> Traits:
    """Try the mount in `directory`, which is of its store.

    A full or read-only mount can still be read from: then nothing is known and the least is assumed. Blocks; raises
    OSError, and StoreUnfit without renames.
    """
    scratch = Scratch(directory, progress)
    try:
        return _run_trials(root, scratch)
    except OSError as error:
        if error.errno not in NOT_TRIED:
            raise
        mount = mount_of(root)
        step = 0 if mount.driver == "efs" else 1
        return Traits(careful=True, has_flags=mount.kind in WITH_FLAGS, inodes=_inodes_last(root), time_step=step)
    finally:
        scratch.clear()


def _run_trials(root: Path, scratch: Scratch) -> Traits:
    for trial in (rename_over, rename_across):
        works, detail = _outcome(trial, scratch)
        if not works:
            raise StoreUnfit("rename", f"{trial.__name__.replace('_', ' ')}: {detail}; the layout tree needs it")
    survives, inodes = stamps_survive(scratch)
    inodes = inodes and _inodes_last(root)
    if not survives:
        raise StoreUnfit("rename", "a file has another size or mtime once it is renamed; the layout tree needs them")
    driver, step = mount_of(root).driver, time_step(scratch)
    if not step and not inodes:
        raise StoreUnfit("stamps", "neither inode numbers nor fine times tell files apart; the layout tree needs one")
    preserved, distinct = names_given(scratch)
    claims, _ = _outcome(claiming, scratch)
    return Traits(
        folds=not distinct,
        has_flags=mount_of(root).kind in WITH_FLAGS and _outcome(flags_can_be_set, scratch)[0],
        careful=not preserved or (not distinct and not claims),
        claims=claims,
        inodes=inodes,
        rmdir=_outcome(rmdir_refuses, scratch)[0],
        grain_ns=grain(scratch),
        time_step=0 if driver == "efs" else step,  # one more call to a server; inode numbers do there
    )


def _outcome(trial: Callable[[Scratch], Outcome], scratch: Scratch) -> Outcome:
    try:
        return trial(scratch)
    except OSError as error:
        if error.errno in NOT_TRIED:
            raise
        return False, os.strerror(error.errno or 0)


def _inodes_last(root: Path) -> bool:
    mount = mount_of(root)
    return mount.driver in LASTING_INODES and mount.kind not in UNSTABLE_INODES


def stamps_survive(scratch: Scratch) -> tuple[bool, bool]:
    """Return whether size and mtime survive a rename, and whether the inode number does."""
    old, new = scratch.path("stamp-from"), scratch.path("stamp-to")
    scratch.write(old, CONTENT)
    before = os.stat(old)
    scratch.timed("rename", os.rename, old, new)
    after = os.stat(new)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return same, before.st_ino == after.st_ino


def time_step(scratch: Scratch) -> int:
    """Return the granularity in nanoseconds of mtimes that are set.

    It is 0 when they are not stored, or in seconds only.
    """
    path = scratch.path("time")
    wanted = time.time_ns() // 10**9 * 10**9 + 123_456_789
    fd = scratch.create(path)
    try:
        scratch.timed("utime", os.utime, fd, ns=(wanted, wanted))
    except OSError as error:
        if error.errno in NOT_TRIED and error.errno != errno.EACCES:
            raise
        return 0
    finally:
        os.close(fd)
    stored = os.stat(path).st_mtime_ns
    return next((step for step in (1, 100, 1000, 10**6) if stored == wanted - wanted % step), 0)


def names_given(scratch: Scratch) -> tuple[bool, bool]:
    """Return whether a directory lists names unchanged, and whether it distinguishes them all."""
    directory = scratch.make_directory("names")
    created, distinct = set(), True
    for name in NAMES:
        path = scratch.inside(directory, name)
        try:
            scratch.write(path, b"")
        except FileExistsError:
            distinct = False
        except OSError as error:
            if error.errno in NOT_TRIED:
                raise
        else:
            created.add(name)
    for twin in ("name", "NAME"):
        distinct = distinct and not os.path.lexists(f"{directory}/{twin}")
    return set(os.listdir(directory)) == created, distinct


def claiming(scratch: Scratch) -> Outcome:
    """Return whether a no-replace rename is refused for an existing name, and works otherwise."""
    first, second, third = scratch.path("claim-1"), scratch.path("claim-2"), scratch.path("claim-3")
    scratch.write(first, b"1")
    scratch.write(second, b"2")
    fd = os.open(scratch.directory, DIRECTORY)
    try:
        try:
            rename_new(fd, os.path.basename(first).encode(), fd, os.path.basename(second).encode())
        except FileExistsError:
            rename_new(fd, os.path.basename(first).encode(), fd, os.path.basename(third).encode())
            return scratch.read(third) == b"1", ""
    finally:
        os.close(fd)
    return False, "it replaced a file"


def flags_can_be_set(scratch: Scratch) -> Outcome:
    """Return whether single directories may fold names: most ext4 are created without that."""
    fd = os.open(scratch.make_directory("flags"), DIRECTORY)
    try:
        flags = _flags(fd)
        flags[0] |= CASEFOLD
        fcntl.ioctl(fd, SET_FLAGS, flags, True)
        return flag_is_set(fd), ""
    finally:
        os.close(fd)


def flag_is_set(directory: int) -> bool:
    """Return whether a directory reports that it folds names; False if it cannot report."""
    try:
        return bool(_flags(directory)[0] & CASEFOLD)
    except OSError:
        return False


def _flags(directory: int) -> array.array[int]:
    flags = array.array("i", [0, 0])  # declared as a long, written as an int
    fcntl.ioctl(directory, GET_FLAGS, flags, True)
    return flags


def grain(scratch: Scratch) -> int:
    """Return nanoseconds within which two changes may share an mtime.

    They include how far the mount's clock is behind the local one.
    """
    started = time.time_ns()
    times = []
    for number in range(3):
        path = scratch.path(f"grain-{number}")
        scratch.write(path, b"x")
        times.append(os.stat(path).st_mtime_ns)
        time.sleep(0.003)
    step = next((unit for unit in (10**9, 10**6) if all(at % unit == 0 for at in times)), 1)
    behind = max(0, started - times[0])
    return max(MIN_GRAIN_NS, 2 * step) + behind
