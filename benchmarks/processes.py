"""What processes cost, from /proc: CPU time of a tree, resident memory, how busy a core was."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
CPUCLOCK_SCHED = 2
"""User and system time, of include/linux/posix-timers.h."""


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state (field 3) on; the name before may hold spaces and brackets."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """`root` and all its descendants that run. Raises ProcessLookupError when `root` is gone."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(PROC):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                children.setdefault(int(_stat(int(entry))[1]), []).append(int(entry))
    if not (PROC / str(root)).exists():
        raise ProcessLookupError(f"process {root} is gone")
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of a process tree since it began, with that of children that exited and were waited for.

    Of processes that run it is right to the nanosecond, of those that exited to a tick (10 ms).
    """
    total = 0.0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            user, system, exited_user, exited_system = (int(field) * TICK for field in _stat(pid)[11:15])
            total += exited_user + exited_system + (_clock(pid) or user + system)
    return total


def _clock(pid: int) -> float:
    """A process's CPU clock in seconds, threads that ended included; 0 where the kernel does not let us read it."""
    try:
        return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)  # what clock_getcpuclockid(3) makes of a pid
    except OSError:
        return 0.0


def reset_peak(root: int) -> None:
    """Let the peak of resident memory begin anew, where the kernel allows it."""
    for pid in tree(root):
        with contextlib.suppress(OSError):
            (PROC / str(pid) / "clear_refs").write_text("5")


def peak_bytes(root: int) -> int:
    """Sum of the peaks of resident memory of a tree's processes, in bytes; pages they share count in each."""
    total = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * 1024
    return total


def pin(root: int, core: int) -> None:
    """Put every thread of a process tree on one core; what they start inherits it. Raises PermissionError."""
    for pid in tree(root):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(PROC / str(pid) / "task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), {core})


@dataclass(frozen=True)
class CoreTime:
    """Seconds since boot that a core was busy, and all of its seconds."""

    busy: float
    total: float

    def share_since(self, before: CoreTime) -> float:
        """Part of the time since `before` that the core was busy, 0 to 1."""
        total = self.total - before.total
        return (self.busy - before.busy) / total if total > 0 else 0.0


def core_time(core: int) -> CoreTime:
    """From /proc/stat; time stolen by the host counts as busy. Raises LookupError for a core there is not."""
    for line in (PROC / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name == f"cpu{core}":
            user, nice, system, idle, iowait, irq, softirq, steal = (int(field) * TICK for field in fields[:8])
            busy = user + nice + system + irq + softirq + steal
            return CoreTime(busy, busy + idle + iowait)
    raise LookupError(f"no core {core}")
