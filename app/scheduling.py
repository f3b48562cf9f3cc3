"""How the kernel schedules a process or a thread of this server."""

from __future__ import annotations

import os
from contextlib import suppress


def avoid_preemption() -> None:
    """Let the calling thread never interrupt another one at its wakeups (SCHED_BATCH, sched(7)).

    Threads that it starts inherit this. On busy cores it then finds more to do each time it runs: several requests, or
    a larger group to commit. Its share of the cores stays the same, and an idle core still wakes it at once.
    """
    if os.sched_getscheduler(0) == os.SCHED_OTHER:  # else the operator chose
        with suppress(OSError):  # a sandbox may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
