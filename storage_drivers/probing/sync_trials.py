"""The trials of fsync(2): whether it succeeds, and whether it reaches the mount."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sluice_s3.storage_drivers.fsutil import write_all
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.probing.scratch import CONTENT, Outcome, Scratch

COMPARED_SYNCS, ENOUGH_SYNCS, FAR_SECONDS = 10, 3, 1e-3
"""Syncs that are timed; so few, if all of them took so long that Linux alone cannot have answered."""
ROUND_TRIP_SECONDS, ROUND_TRIP_SHARE = 4e-6, 5
"""No process of a mount answers in so few seconds, or in so small a share of another call's time."""


def fsync_file(scratch: Scratch) -> Outcome:
    """Return whether fsync(2) and fdatasync(2) of a file succeed; not whether they are honest."""
    fd = scratch.create(scratch.path("fsync"))
    try:
        scratch.timed("write", write_all, fd, CONTENT)
        scratch.timed("fsync", os.fsync, fd)
        scratch.timed("write", os.pwrite, fd, CONTENT, len(CONTENT))
        scratch.timed("fdatasync", os.fdatasync, fd)
    finally:
        os.close(fd)
    return True, ""


def fsync_directory(scratch: Scratch) -> Outcome:
    """Return whether fsync(2) of a directory succeeds."""
    fd = os.open(scratch.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        scratch.timed("fsync directory", os.fsync, fd)
    finally:
        os.close(fd)
    return True, ""


def fsync_reaches(scratch: Scratch) -> Outcome:
    """Return whether fsync(2) of new bytes is more than an answer of Linux for a FUSE mount without it."""
    fd = scratch.create(scratch.path("reaches"))
    try:
        return _reaches(scratch, fd, lambda: write_all(fd, CONTENT[:4096]))
    finally:
        os.close(fd)


def fsync_directory_reaches(scratch: Scratch) -> Outcome:
    """Return the same of a directory; without it a new name is as durable as fsync of the file makes it."""
    fd = os.open(scratch.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return _reaches(scratch, fd, lambda: None)
    finally:
        os.close(fd)


def _reaches(scratch: Scratch, fd: int, change: Callable[[], None]) -> Outcome:
    """Compare fsync with a call that Linux passes on each time.

    A FUSE mount that answers ENOSYS to fsync is not called again, and every later fsync succeeds (fuse_fsync_common in
    fs/fuse/file.c of Linux).
    """
    if not mount_of(f"/proc/self/fd/{fd}").kind.startswith("fuse"):
        return True, ""
    syncs, calls = [], []
    for _ in range(COMPARED_SYNCS):
        scratch.progress.step("fsync")
        change()
        before = time.perf_counter()
        os.fsync(fd)
        between = time.perf_counter()
        os.fstatvfs(fd)
        syncs.append(between - before)
        calls.append(time.perf_counter() - between)
        if len(syncs) == ENOUGH_SYNCS and min(syncs) > FAR_SECONDS:  # each may upload something
            return True, ""
    fastest = min(syncs)
    if fastest >= ROUND_TRIP_SECONDS or fastest >= min(calls) / ROUND_TRIP_SHARE:
        return True, ""
    return False, f"Linux answers for the mount, which has none ({fastest * 1e6:.1f} µs)"
