"""The row of a request, and the files that hold rows."""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = (
    *("run", "target", "scenario", "repeat", "stage", "operation", "size", "users", "start", "late_s"),
    *("ttfb_s", "total_s", "bytes", "status", "error", "phases", "retries"),
)
BUFFERED_ROWS = 2000
"""Rows buffered before they are written."""


@dataclass(frozen=True)
class TrialId:
    """The columns that all rows of a cell share; names have no quotes and commas.

    `start` counts from `epoch` (seconds since 1970).
    """

    run: str = ""
    target: str = ""
    scenario: str = ""
    repeat: int = 1
    epoch: float = 0.0


class Recorder:
    """Appends rows to a file of this process. They are in the file after `flush`."""

    def __init__(self, directory: Path, trial: TrialId) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / f"{os.uname().nodename}-{os.getpid()}.csv").open("a", encoding="utf-8")
        self._prefix = _line(trial.run, trial.target, trial.scenario, trial.repeat)
        self._epoch = time.time() - time.perf_counter() - trial.epoch
        self._rows: list[str] = []

    def add(
        self,
        operation: str,
        size: int,
        started: float,
        total: float,
        *,
        ttfb: float | None = None,
        moved: int = 0,
        status: int = 200,
        error: str = "",
        phases: str = "",
        stage: str = "",
        users: int = 1,
        late: float | None = None,
        retries: int = 0,
    ) -> None:
        """Add one request.

        `started` is a `time.perf_counter` value; times are in seconds.
        """
        first = "" if ttfb is None else f"{ttfb:.6f}"
        late_text = "" if late is None else f"{late:.6f}"
        error_text = f'"{_plain(error)}"' if error else ""
        self._rows.append(
            f"{self._prefix},{stage},{operation},{size},{users},{self._epoch + started:.6f},{late_text},{first},"
            f"{total:.6f},{moved},{status},{error_text},{phases},{retries}\n"
        )
        if len(self._rows) >= BUFFERED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows."""
        rows, self._rows = self._rows, []
        self._file.write("".join(rows))
        self._file.flush()

    def close(self) -> None:
        """Write the buffered rows and close the file."""
        self.flush()
        self._file.close()


def merge(directory: Path, to: Path) -> tuple[int, int]:
    """Merge the rows of all processes into one compressed file, and remove theirs.

    The file has a header and is created atomically. A last line that was cut off by the end of its process is left out.
    Returns the number of rows, and how many of them are errors.
    """
    rows = errors = 0
    to.parent.mkdir(parents=True, exist_ok=True)
    making = to.with_name(to.name + ".making")
    with gzip.open(making, "wt", compresslevel=3, encoding="utf-8") as made:
        made.write(",".join(COLUMNS) + "\n")
        for part in sorted(directory.glob("*.csv")):
            with part.open(encoding="utf-8") as lines:
                for line in lines:
                    if not line.endswith("\n"):
                        break
                    made.write(line)
                    rows += 1
                    errors += '"' in line  # names need no quotes: only an error's text is quoted
    making.replace(to)
    shutil.rmtree(directory, ignore_errors=True)
    return rows, errors


def read_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a file, with numbers as numbers and None for empty columns.

    Raises OSError, ValueError.
    """
    floats = {"start", "late_s", "ttfb_s", "total_s"}
    whole = {"repeat", "size", "users", "bytes", "status"}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            found: dict[str, Any] = dict(row)
            for name in floats:
                found[name] = float(found[name]) if found[name] else None
            for name in whole:
                found[name] = int(found[name])
            found["retries"] = int(found.get("retries") or 0)  # older files lack the column
            yield found


def _line(*values: object) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="").writerow(values)
    return made.getvalue()


def _plain(text: str) -> str:
    """Return the text without characters that would end a field or a line."""
    with suppress(ValueError):
        text = text.encode("utf-8", "replace").decode()
    return "".join(one if one.isprintable() else " " for one in text).replace('"', "'")
