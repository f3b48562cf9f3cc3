"""Gathers the jobs that arrive on the event loop into groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sluice_s3.app.index.engine.commit_queue import Job

MAX_TICKS = 16
"""Ticks of the event loop for which a group grows at most."""
FULL_GROUP = 128
"""Jobs from which a group waits for no more."""


class JobGathering:
    """Passes on the jobs of one tick of the event loop, all at once.

    With `grow`, a group waits for further ticks while each brings more jobs: half of the cost of a small group is the
    same for a large one. A lone job waits for one look at the sockets.
    """

    def __init__(self, *, grow: bool, commit: Callable[[list[Job]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._grow = grow
        self._commit = commit
        self._jobs: list[Job] = []
        self._seen = self._ticks = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: Job) -> None:
        """Add a job on the event loop."""
        if not self._jobs:
            self._loop.call_soon(self._tick)
        self._jobs.append(job)

    def _tick(self) -> None:
        if self._grow and self._seen < len(self._jobs) < FULL_GROUP and self._ticks < MAX_TICKS:
            self._seen = len(self._jobs)
            self._ticks += 1
            try:
                self._loop.call_soon(self._tick)
                return
            except MemoryError:
                pass  # nothing else would pass them on
        if jobs := self.take():
            self._commit(jobs)

    def take(self) -> list[Job]:
        """Return the jobs, which are passed on no more."""
        self._seen = self._ticks = 0
        jobs, self._jobs = self._jobs, []
        return jobs
