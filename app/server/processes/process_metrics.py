"""What the processes of a server use, in the names that Prometheus' own clients have for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app import __version__
from sluice_s3.app.server.processes.instance_lock import noted_pids
from sluice_s3.app.server.shared_memory.counters import family

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
USER_TIME, SYSTEM_TIME, START_TIME, RESIDENT_PAGES = 11, 12, 19, 21
"""Indexes of these fields of /proc/PID/stat (proc(5)) after the name; the state is the first."""
LAUNCHER = "launcher"
PYTHON = ".".join(map(str, sys.version_info[:3]))


class ProcessUse(NamedTuple):
    """What one process uses. Its fields are in the order of `FAMILIES`."""

    cpu_seconds: float
    resident_bytes: int
    open_fds: int
    start_seconds: float


FAMILIES = (
    ("process_cpu_seconds_total", "counter", "User and system CPU time of each process in seconds."),
    (
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory of each process in bytes; what they share counts in each.",
    ),
    ("process_open_fds", "gauge", "Open file descriptors of each process."),
    ("process_start_time_seconds", "gauge", "Start of each process in seconds since the epoch."),
)


def render_processes(run_dir: Path) -> bytes:
    """Return the usage of the server's processes, and its version, in the text format of Prometheus."""
    labels = f'version="{__version__}",python="{PYTHON}"'
    build = [f"sluice_build_info{{{labels}}} 1"]
    lines = [*family("sluice_build_info", "gauge", "Version of Sluice and of Python; always 1.", build)]
    found = list(_processes(run_dir))
    for number, (name, kind, text) in enumerate(FAMILIES):
        samples = [f'{name}{{process="{title}",pid="{pid}"}} {use[number]:.12g}' for title, pid, use in found]
        lines += family(name, kind, text, samples)
    return ("\n".join(lines) + "\n").encode()


def _processes(run_dir: Path) -> Iterator[tuple[str, int, ProcessUse]]:
    """Yield kind, pid and usage of each process of the server; the launcher is the first."""
    try:
        pids = noted_pids(run_dir)
    except (OSError, ValueError):
        return
    booted = _boot_seconds()
    for number, pid in enumerate(pids):
        try:
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")
            open_fds = len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:  # it has ended
            continue
        fields = rest.split()
        use = ProcessUse(
            (int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])) / TICKS,
            int(fields[RESIDENT_PAGES]) * PAGE,
            open_fds,
            booted + int(fields[START_TIME]) / TICKS,
        )
        yield LAUNCHER if number == 0 else name.removeprefix("sluice "), pid, use


def _boot_seconds() -> float:
    with open("/proc/stat") as file:
        return next((float(line.split()[1]) for line in file if line.startswith("btime ")), 0.0)
