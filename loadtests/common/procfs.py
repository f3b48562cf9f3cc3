"""What processes cost, from /proc: CPU time, resident memory, and how busy a core was."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
CPUCLOCK_SCHED = 2
"""User and system time (include/linux/posix-timers.h)."""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state (field 3) on.

    The process name before it may hold spaces and brackets.
    """
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """Return `root` and all its running descendants.

    Raises ProcessLookupError when `root` is gone.
    """
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
    """Return user and system time of a process tree since it began.

    It includes children that exited and were waited for. Times of running processes are exact to the nanosecond, of
    exited ones to a tick (10 ms).
    """
    total = 0.0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            user, system, exited_user, exited_system = (int(field) * TICK for field in _stat(pid)[11:15])
            total += exited_user + exited_system + (_clock(pid) or user + system)
    return total


def _clock(pid: int) -> float:
    """Return a process's CPU clock in seconds, ended threads included.

    Returns 0 where the kernel does not let us read it.
    """
    try:
        return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)  # as clock_getcpuclockid(3) computes it from a pid
    except OSError:
        return 0.0


def age_seconds() -> float:
    """Return the seconds since this process began."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(_stat(os.getpid())[19]) * TICK


def reset_peak(root: int) -> None:
    """Reset the peak of resident memory, where the kernel allows it."""
    for pid in tree(root):
        with contextlib.suppress(OSError):
            (PROC / str(pid) / "clear_refs").write_text("5")


def peak_bytes(root: int) -> int:
    """Return the sum of the peak resident memory of a tree's processes, in bytes.

    Shared pages count in each process.
    """
    total = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * 1024
    return total


def pss_bytes(root: int) -> int:
    """Return the resident memory of a tree in bytes; a page that processes share counts once."""
    total = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def pin(root: int, core: int) -> None:
    """Pin every thread of a process tree to one core.

    Processes that it starts inherit the pin. Raises PermissionError.
    """
    for pid in tree(root):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(PROC / str(pid) / "task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), {core})


@dataclass(frozen=True)
class CoreTime:
    """Busy seconds and all seconds of a core since boot."""

    busy: float
    total: float

    def share_since(self, before: CoreTime) -> float:
        """Return the share of the time since `before` that the core was busy.

        It is 0 to 1.
        """
        total = self.total - before.total
        return (self.busy - before.busy) / total if total > 0 else 0.0


def core_time(core: int) -> CoreTime:
    """Read a core's time from /proc/stat.

    Time stolen by the host counts as busy. Raises LookupError if there is no such core.
    """
    return _cpu_line(f"cpu{core}")


def busy_seconds() -> float:
    """Return the seconds since boot that all cores together were busy."""
    return _cpu_line("cpu").busy


def _cpu_line(wanted: str) -> CoreTime:
    for line in (PROC / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name == wanted:
            user, nice, system, idle, iowait, irq, softirq, steal = (int(field) * TICK for field in fields[:8])
            busy = user + nice + system + irq + softirq + steal
            return CoreTime(busy, busy + idle + iowait)
    raise LookupError(f"no {wanted}")
