"""What else the machine does: other processes, the clock, the battery, the memory for files."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sluice_s3.loadtests.common import procfs

LOOK_SECONDS = 0.5
BUSY_SHARE = 0.5
"""A machine is called busy when its load is higher than this share of its cores, or others take half of that."""
NAMED_CORES, NAMED = 0.1, 3
"""Processes are named that take so much of a core, the first few."""
LOW_PERCENT = 30
STEADY_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "riscv_clocksource"})
"""Clocks of the kernel that are quick to read and do not drift between cores."""
STEP_SECONDS = 0.02
"""A clock that is set off by more than this was stepped; NTP's slewing is slower."""
TIME_ERROR = 5
"""What adjtimex(2) returns where no time server keeps the clock."""
POWER = Path("/sys/class/power_supply")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def others() -> tuple[float, list[tuple[str, float]]]:
    """Return the cores that other processes take, and the names and cores of the busiest. Takes half a second."""
    before, busy, began = dict(_processes()), _busy(), time.monotonic()
    own = set(procfs.tree(os.getpid()))
    time.sleep(LOOK_SECONDS)
    seconds = time.monotonic() - began
    taken = [
        (name, (ticks - before[pid][1]) / seconds)
        for pid, (name, ticks) in _processes()
        if pid in before and pid not in own
    ]
    used = sum(cores for _, cores in taken)
    total = max(used, min((_busy() - busy) / seconds, float(os.cpu_count() or 1)))
    named = sorted((one for one in taken if one[1] >= NAMED_CORES), key=lambda one: -one[1])
    return total, named[:NAMED]


def _busy() -> float:
    with suppress(OSError, LookupError, ValueError):
        return procfs.busy_seconds()
    return 0.0


def _processes() -> Iterator[tuple[int, tuple[str, float]]]:
    """Yield process ids with names and CPU seconds."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, ValueError, IndexError):
                head, _, tail = Path(f"/proc/{entry}/stat").read_text().rpartition(")")
                user, system = (int(field) * procfs.TICK for field in tail.split()[11:13])
                yield int(entry), (head.partition("(")[2], user + system)


def busy_warning() -> str:
    """Return that the machine is busy, with its load and who takes CPU; else an empty string."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    total, named = others()
    if load <= cores * BUSY_SHARE and total <= cores * BUSY_SHARE / 2:
        return ""
    who = ", ".join(f"{name} ({share:.0%})" for name, share in named)
    taken = f"; others take {total:.1f} of them" + (f": {who}" if who else "")
    return f"the machine is busy: its load is {load:.1f}, with {cores} cores{taken}"


def battery_warning() -> str:
    """Return that the machine runs on a battery that is low; else an empty string."""
    for supply in sorted(POWER.glob("*")) if POWER.is_dir() else []:
        with suppress(OSError, ValueError):
            if (supply / "type").read_text().strip() != "Battery":
                continue
            if (supply / "status").read_text().strip() == "Discharging":
                percent = int((supply / "capacity").read_text())
                if percent <= LOW_PERCENT:
                    return f"the battery is low ({percent} %), and nothing charges it: the processor may slow down"
    return ""


def clock_warnings() -> list[str]:
    """Return why the clock is unsteady."""
    found = []
    with suppress(OSError):
        source = CLOCK.read_text().strip()
        if source not in STEADY_CLOCKS:
            found.append(f"the clock is unsteady: the kernel reads it from {source}, which is slow")
    if not is_synchronised():
        found.append("the clock is not synchronised by a time server: it may be stepped while the run measures")
    return found


def is_synchronised() -> bool:
    """Return whether the kernel says that a time server keeps the clock; True where it does not say."""
    fields = ctypes.create_string_buffer(1024)  # struct timex with all modes 0: nothing is set
    try:
        return int(ctypes.CDLL(None).adjtimex(fields)) != TIME_ERROR
    except (OSError, AttributeError):
        return True


class ClockWatch:
    """Notices steps of the clock of the day, from which the kernel's stamps of received bytes come."""

    def __init__(self) -> None:
        self._offset = _offset()
        self.steps: list[float] = []

    def look(self) -> None:
        """Note a step since the last call."""
        now = _offset()
        if abs(now - self._offset) > STEP_SECONDS:
            self.steps.append(round(now - self._offset, 3))
        self._offset = now


def _offset() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)


class OthersWatch:
    """Measures the cores that other processes than this one's take, between two calls."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._at, self._busy, self._own = time.monotonic(), _busy(), procfs.cpu_seconds(os.getpid())

    def cores(self) -> float:
        """Return the cores that others took since then, with what the host of a virtual machine took away."""
        seconds = max(time.monotonic() - self._at, 1e-3)
        own = max(0.0, procfs.cpu_seconds(os.getpid()) - self._own)
        return max(0.0, (_busy() - self._busy - own) / seconds)


def cache_bytes() -> int:
    """Return the bytes of files that memory can hold, 0 where it is unknown."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _cgroup_limit())
    return 0


def _cgroup_limit() -> int:
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # the former says "max" where there is none
            return int(Path(file).read_text())
    return 1 << 62
