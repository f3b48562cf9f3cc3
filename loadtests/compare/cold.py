"""Empties the page cache while a cell runs, and verifies by the device's reads that it was cold."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare.devices import device_of, sectors_of
from sluice_s3.loadtests.compare.resources import sample_processes
from sluice_s3.loadtests.compare.targets import RunningTarget
from sluice_s3.loadtests.request_log import read_rows

DROP = Path("/proc/sys/vm/drop_caches")
PAUSE_SECONDS = 0.1
MOST_SHARE = 0.5
"""Share of the time that the cache is being emptied at most."""
COLD_SHARE = 0.5
"""Reads are called cold when the device gave at least so much of what the clients received."""


@dataclass(frozen=True)
class Coldness:
    """How cold a cell was. `by` is what emptied the cache, `device` None where no block device is below.

    `device` are the bytes that were read of it meanwhile, by the processes of the store where these are known (others
    use it too), `received` those that clients got.
    """

    by: str
    times: int
    device: int | None
    received: int

    @property
    def share(self) -> float | None:
        """The share of what clients got that came from the device, if that is known; 1 at most."""
        if self.device is None or not self.received:
            return None
        return min(1.0, self.device / self.received)

    def as_json(self) -> dict[str, Any]:
        """Return it as `meta.json` stores it."""
        return asdict(self) | {"share": self.share}


def can_drop() -> bool:
    """Return whether the kernel lets this process empty the whole page cache."""
    return os.access(DROP, os.W_OK) and os.geteuid() == 0


class Evictor:
    """Empties the cache of these directories again and again: `drop_caches` as root, else file by file.

    What is dirty stays in the cache: a gateway syncs what it acknowledges. `processes` are those of the store, the
    gateway and what serves its mount: the kernel counts what each reads of a device.
    """

    def __init__(self, directories: Sequence[Path], processes: Sequence[int] = ()) -> None:
        self._directories = directories
        self._processes = processes
        self._whole = can_drop()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._devices = list(filter(None, dict.fromkeys(map(_device, directories))))
        self._before = self._read()
        self._times = 0
        self._thread.start()

    def end(self, rows: Path | None) -> Coldness:
        """Stop, and return what the device read beside what the clients received by these rows."""
        self._over.set()
        self._thread.join(PAUSE_SECONDS * 50)
        now = self._read()
        device = None if self._before is None or now is None else now - self._before
        return Coldness(
            "drop_caches" if self._whole else "posix_fadvise", self._times, device, _received(rows) if rows else 0
        )

    def _run(self) -> None:
        took = 0.0
        while not self._over.wait(max(PAUSE_SECONDS, took * (1 / MOST_SHARE - 1))):
            began = time.monotonic()
            if self._whole:
                with suppress(OSError):
                    DROP.write_text("1")
            else:
                evict(self._directories, self._over)
            self._times += 1
            took = time.monotonic() - began

    def _read(self) -> int | None:
        found = [sectors[0] for number in self._devices if (sectors := sectors_of(number)) is not None]
        own = [sample.read for root in self._processes if (sample := sample_processes(root)) is not None]
        known = [one for one in own if one is not None]
        if found and known and len(known) == len(self._processes):
            return sum(known)
        return sum(found) if found else None


def evictor_of(there: RunningTarget) -> Evictor:
    """Return what empties the cache of a running target from now on."""
    processes = [pid for pid in (there.gateway_pid, there.mount_pid) if pid]
    return Evictor([one for one in (there.path, there.backing) if one is not None], processes)


def evict(directories: Sequence[Path], over: threading.Event | None = None) -> None:
    """Ask the kernel to forget the pages of all files below these directories."""
    for top in directories:
        for directory, _, names in os.walk(top):
            for name in names:
                if over is not None and over.is_set():
                    return
                with suppress(OSError):
                    descriptor = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    finally:
                        os.close(descriptor)


def _device(directory: Path) -> int:
    with suppress(OSError):
        return device_of(directory)
    return 0


def _received(rows: Path) -> int:
    """Return the bytes of all recorded GETs."""
    try:
        return sum(row["bytes"] for row in read_rows(rows) if row["operation"] == "GET")
    except (OSError, EOFError, ValueError, KeyError):
        return 0


def describe(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return for each target how cold its reads were, of cells with `cold` in their notes."""
    found = []
    for target in dict.fromkeys(cell["target"] for cell in cells):
        notes = [cell["notes"]["cold"] for cell in cells if cell["target"] == target and "cold" in cell["notes"]]
        read = [one for one in notes if one["received"]]
        if not read:
            continue
        by = read[0]["by"]
        if any(one["device"] is None for one in read):
            found.append(f"{target}: the cache was emptied by {by}; no block device is below it to verify that")
            continue
        share = min(1.0, sum(one["device"] for one in read) / sum(one["received"] for one in read))
        verdict = "cold" if share >= COLD_SHARE else "not cold"
        found.append(f"{target}: reads were {verdict}: the device gave {share:.0%} of what was read, emptied by {by}")
    return found
