"""How the kernel schedules a process or a thread of this server, and the memory that it keeps."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
THRESHOLD_VARIABLES = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}
"""Where an operator sets the first two in the environment."""
ARENA_VARIABLES = {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"}
"""Where an operator sets the last."""
KEPT_BYTES = 8 << 20
"""Free bytes at the end of an arena that stay this process's."""
MAPPED_BYTES = 4 << 20
"""Bytes from which a block gets a mapping of its own: more than a piece of a body, or a page of a listing."""
ARENAS = 2
"""Arenas of all threads together, each of which keeps what it freed. By default they are eight a core, for threads that
allocate at the same time: the interpreter lock leaves few of these."""


def avoid_preemption() -> None:
    """Let the calling thread never interrupt another one at its wakeups (SCHED_BATCH, sched(7)).

    Threads that it starts inherit this. On busy cores it then finds more to do each time it runs: several requests, or
    a larger group to commit. Its share of the cores stays the same, and an idle core still wakes it at once.
    """
    if os.sched_getscheduler(0) == os.SCHED_OTHER:  # else the operator chose
        with suppress(OSError):  # a sandbox may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def keep_freed_memory() -> None:
    """Keep up to `KEPT_BYTES` of freed memory in each of few arenas for the next request (mallopt(3)).

    By default glibc returns it to the kernel after each large block, so that each page of 1,000 keys, and each piece
    of a large body, pays for its memory again: 270 page faults, a third of the CPU of a LIST. What an operator chose
    in the environment stays.
    """
    with suppress(AttributeError):  # another C library has no such function
        mallopt = ctypes.CDLL(None).mallopt
        if THRESHOLD_VARIABLES.isdisjoint(os.environ):
            mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
            mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        if ARENA_VARIABLES.isdisjoint(os.environ):
            mallopt(M_ARENA_MAX, ARENAS)
