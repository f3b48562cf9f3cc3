"""The progress of a run: a bar on a terminal, lines elsewhere, or lines of JSON for programs."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sluice_s3.loadtests.compare.live import LiveFigures
from sluice_s3.loadtests.compare.time_budget import TURN_SECONDS
from sluice_s3.loadtests.compare.trial import TrialResult

PRIOR_SECONDS = 20.0
"""The estimate counts as much as so many seconds of the pace so far."""


class Bar:
    """Shows the progress of a run."""

    live = False

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task: TaskID | None = None

    @contextmanager
    def of(self, seconds: float, limit: float = 0.0) -> Iterator[None]:
        """Show a bar until the end of the block, for an estimated `seconds`, `limit` at most."""
        most = f", {limit / 60:.0f} min at most" if limit else ""
        self.print_line(f"about {max(1, round(seconds / 60))} min{most}")
        with self._progress:
            self._task = self._progress.add_task("", total=max(seconds, 1.0))
            yield

    def show_start(self, what: str, cell: tuple[str, str, int] | None = None) -> None:
        """Show the current step. One without a cell begins a turn, whose time beside its cells is counted now."""
        if self._task is not None:
            self._progress.update(self._task, description=what, advance=0 if cell else TURN_SECONDS)

    def show_live(self, figures: LiveFigures) -> None:
        """Show nothing: a bar has no place for it."""

    def show_end(self, seconds: float, outcome: TrialResult | None, what: str) -> None:
        """Advance by the estimated seconds of a cell that ended."""
        if self._task is not None:
            self._progress.advance(self._task, seconds)
        if outcome is None:
            return
        took = f"{outcome.ended - outcome.started:.0f} s, {outcome.rows:,} requests, {outcome.errors:,} errors"
        self.print_line(f"{what}: {took}{f', {outcome.state}: {outcome.reason}' if outcome.reason else ''}")

    def print_line(self, message: str) -> None:
        """Print one line."""
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)


class JsonLines:
    """Writes each event as one JSON object a line, with the seconds that are left (`left_s`).

    Who reads may go away: then the run goes on in silence.
    """

    live = True

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._total = self._done = 0.0
        self._since = self._began
        self._limit = math.inf
        self._cell: tuple[str, str, int] | None = None

    @contextmanager
    def of(self, seconds: float, limit: float = 0.0) -> Iterator[None]:
        """Count down from an estimate of `seconds`, until the end of the block.

        With a `limit` the run ends after so many seconds, or before, when it knows enough.
        """
        self._began = self._since = time.monotonic()
        self._total, self._limit = seconds, limit or math.inf
        self._write("begin", seconds=seconds)
        yield
        self._total, self._limit = self._done, 0.0
        self._write("measured")

    def show_start(self, what: str, cell: tuple[str, str, int] | None = None) -> None:
        """Write the current step. One without a cell begins a turn, whose time beside its cells is counted now."""
        self._cell = cell
        if cell is None:
            self._count(TURN_SECONDS)
        self._write("start", what=what, **self._cell_fields())

    def show_live(self, figures: LiveFigures) -> None:
        """Write the figures of the last second."""
        self._write("live", **asdict(figures))

    def show_end(self, seconds: float, outcome: TrialResult | None, what: str) -> None:
        """Write how a cell ended."""
        self._count(seconds)
        if outcome is not None:
            fields = {"state": outcome.state, "reason": outcome.reason, "rows": outcome.rows, "errors": outcome.errors}
            self._write("cell", what=what, **self._cell_fields(), **fields)

    def print_line(self, message: str) -> None:
        """Write a message."""
        self._write("line", text=message)

    def show_verdict(self, state: str, reason: str, repeats: int, headline: list[str]) -> None:
        """Write the verdict, and why it is partial, as the last event."""
        self._write("verdict", state=state, reason=reason, repeats=repeats, headline=headline)

    def _cell_fields(self) -> dict[str, Any]:
        return dict(zip(("target", "scenario", "repeat"), self._cell, strict=True)) if self._cell else {}

    def _count(self, seconds: float) -> None:
        """Count estimated seconds as done."""
        self._done += seconds
        self._since = time.monotonic()

    def _left(self) -> float:
        """Return the seconds left: the estimate, corrected by the pace so far."""
        pace = (self._since - self._began + PRIOR_SECONDS) / (self._done + PRIOR_SECONDS)
        now = time.monotonic()
        left = (self._total - self._done) * pace - (now - self._since)
        until_limit = self._limit - (now - self._began)
        if left <= 0 and math.isfinite(self._limit):  # it measures longer than estimated: nobody knows how long
            left = until_limit
        return max(0.0, min(left, until_limit))

    def _write(self, event: str, **fields: Any) -> None:
        try:
            print(json.dumps({"event": event, **fields, "left_s": round(self._left(), 1)}), flush=True)
        except OSError:  # else the interpreter would fail again when it flushes at its end
            sys.stdout = open("/dev/null", "w", encoding="utf-8")
