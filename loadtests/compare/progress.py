"""The progress of a run: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sluice_s3.loadtests.compare.trial import TrialResult


class Bar:
    """Shows the progress of a run."""

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
    def of(self, seconds: float) -> Iterator[None]:
        """Show a bar until the end of the block, for an estimated `seconds`."""
        self.print_line(f"about {max(1, round(seconds / 60))} min")
        with self._progress:
            self._task = self._progress.add_task("", total=max(seconds, 1.0))
            yield

    def show_start(self, what: str) -> None:
        """Show the current step."""
        if self._task is not None:
            self._progress.update(self._task, description=what)

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
