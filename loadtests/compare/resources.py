"""Samples gateway, generator, mount and device from /proc, about once a second."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.compare.devices import sectors_of

COLUMNS = (
    *("time", "target", "scenario", "repeat", "who", "interval_s", "cpu", "rss_bytes", "read_bytes"),
    *("written_bytes", "processes"),
)
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class ResourceSample:
    """Totals since an actor began: CPU seconds and bytes. None: unknown."""

    cpu: float | None
    rss: int | None
    read: int | None
    written: int | None
    processes: int = 0


def sample_processes(root: int) -> ResourceSample | None:
    """Sample a process tree. Returns None when it is gone."""
    try:
        pids = procfs.tree(root)
        cpu = procfs.cpu_seconds(root)
    except (ProcessLookupError, FileNotFoundError):
        return None
    rss = read = written = 0
    known = True
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            rss += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        try:
            counts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
            read += int(counts["read_bytes"])
            written += int(counts["write_bytes"])
        except (OSError, ValueError, KeyError):
            known = False
    return ResourceSample(cpu, rss, read if known else None, written if known else None, len(pids))


def sample_device(number: int) -> ResourceSample | None:
    """Sample the block device with this number. Returns None if there is none (a network or FUSE mount)."""
    moved = sectors_of(number)
    return None if moved is None else ResourceSample(None, None, *moved)


class Sampler:
    """Appends to `resources.csv`. Times count from `epoch` (seconds since 1970)."""

    def __init__(self, file: Path, epoch: float) -> None:
        new = not file.exists()
        self._file = file.open("a", newline="", encoding="utf-8")
        self._lines = csv.writer(self._file)
        self._epoch = epoch
        self._actors: Mapping[str, int] = {}
        self._device = 0
        self._last: dict[str, tuple[float, ResourceSample]] = {}
        self._trial: tuple[str, str, int] = ("", "", 0)
        if new:
            self._lines.writerow(COLUMNS)

    def start(self, trial: tuple[str, str, int], actors: Mapping[str, int], path: Path | None) -> None:
        """Sample the cell (target, scenario, repeat) from here on.

        `actors` are roots of process trees by name (0: no such process). The device is the one below a path.
        """
        self._trial = trial
        self._actors = {who: pid for who, pid in actors.items() if pid}
        self._device = os.stat(path).st_dev if path is not None and path.exists() else 0
        self._last.clear()
        self.sample()

    def sample(self) -> None:
        """Read everything; write lines from the second call on."""
        found = {who: sample_processes(pid) for who, pid in self._actors.items()}
        if self._device:
            found["device"] = sample_device(self._device)
        now = time.time()
        for who, reading in found.items():
            if reading is None:
                continue
            before = self._last.get(who)
            self._last[who] = (now, reading)
            if before is not None and now > before[0]:
                self._write(who, now, now - before[0], reading, before[1])
        self._file.flush()

    def _write(self, who: str, now: float, interval: float, reading: ResourceSample, before: ResourceSample) -> None:
        cpu: str | float = ""
        if reading.cpu is not None and before.cpu is not None:
            cpu = round(max(0.0, reading.cpu - before.cpu) / interval, 4)
        moved = [
            "" if new is None or old is None else max(0, new - old)
            for new, old in ((reading.read, before.read), (reading.written, before.written))
        ]
        rss = "" if reading.rss is None else reading.rss
        line = (round(now - self._epoch, 3), *self._trial, who, round(interval, 3), cpu, rss, *moved, reading.processes)
        self._lines.writerow(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
