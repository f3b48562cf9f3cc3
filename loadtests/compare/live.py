"""What is shown while a run goes on: its steps, and figures of the requests of the last moment."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sluice_s3.loadtests.compare.trial import TrialResult
from sluice_s3.loadtests.request_log import COLUMNS

MOST_BYTES = 256 * 1024
"""Bytes of new rows that are read of a process at a time; of more only their number is estimated."""
_TOTAL, _MOVED, _ERROR = (COLUMNS.index(name) for name in ("total_s", "bytes", "error"))


@dataclass(frozen=True)
class LiveFigures:
    """Requests and errors a second, bytes a second, and times in seconds; None without a request."""

    requests: float
    errors: float
    bytes: float
    p50: float | None
    p99: float | None


class Progress(Protocol):
    """Shows the progress of a run. `live`: whether it wants the figures of each second."""

    live: bool

    def show_start(self, what: str, cell: tuple[str, str, int] | None = None) -> None:
        """Show that a step began, perhaps of a cell: target, scenario, repeat."""
        ...

    def show_live(self, figures: LiveFigures) -> None:
        """Show the requests of the last second."""
        ...

    def show_end(self, seconds: float, outcome: TrialResult | None, what: str) -> None:
        """Show that a cell ended."""
        ...

    def print_line(self, message: str) -> None:
        """Print one line."""
        ...


class RowsTail:
    """Reads what the processes of a cell have written since the last look."""

    def __init__(self, directory: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._now = now
        self._read: dict[Path, int] = {}
        self._at = now()

    def look(self) -> LiveFigures:
        """Return figures of the time since the last call."""
        now = self._now()
        seconds, self._at = max(now - self._at, 1e-3), now
        count = errors = moved = 0.0
        times: list[float] = []
        for file in sorted(self._directory.glob("*.csv")):
            lines, share = self._new_lines(file)
            rows = [row for row in csv.reader(lines) if len(row) == len(COLUMNS)]
            count += len(rows) * share
            errors += sum(bool(row[_ERROR]) for row in rows) * share
            moved += sum(int(row[_MOVED]) for row in rows) * share
            times += [float(row[_TOTAL]) for row in rows if not row[_ERROR]]
        times.sort()
        p50, p99 = (times[min(len(times) - 1, int(len(times) * part))] if times else None for part in (0.5, 0.99))
        return LiveFigures(count / seconds, errors / seconds, moved / seconds, p50, p99)

    def _new_lines(self, file: Path) -> tuple[list[str], float]:
        """Return whole new lines, the last ones if there are many, and for how many each stands."""
        try:
            with file.open("rb") as rows:
                size, before = rows.seek(0, 2), self._read.get(file, 0)
                rows.seek(max(before, size - MOST_BYTES))
                skipped = rows.tell() > before
                text = rows.read(MOST_BYTES)
        except OSError:
            return [], 1.0
        end = text.rfind(b"\n") + 1
        self._read[file] = size - (len(text) - end)
        whole = text[text.find(b"\n") + 1 if skipped else 0 : end]
        return whole.decode(errors="replace").splitlines(), (size - before) / max(len(text), 1)
