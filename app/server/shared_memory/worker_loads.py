"""How busy each worker is, shared by a server's workers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file

STALE_SECONDS = 1.0
"""Seconds without a sign of life after which a worker counts as absent: it is dead, stopping or held up."""
_WORDS = 4


class WorkerLoad(NamedTuple):
    """The load of a worker."""

    cores: float
    """CPU seconds that its process used a second."""
    threads: float
    """The share of its threads that its busiest store uses."""
    connections: int

    @property
    def busy(self) -> float:
        """What is scarcer of cores and threads."""
        return max(self.cores, self.threads)


class WorkerLoads:
    """Four doubles a worker: when it wrote them (CLOCK_BOOTTIME, seconds), and its load.

    The number of a worker is that of its listening sockets, which pass from process to process.
    """

    def __init__(self, path: Path, count: int, *, create: bool = False) -> None:
        self._count = count
        self._words = memoryview(map_shared_file(path, count * _WORDS * 8, create=create)).cast("d")

    def publish(self, worker: int, load: WorkerLoad) -> None:
        """Write the load of a worker."""
        at = worker * _WORDS
        for word, value in enumerate(load, at + 1):
            self._words[word] = value
        self._words[at] = time.clock_gettime(time.CLOCK_BOOTTIME)

    def read(self) -> dict[int, WorkerLoad]:
        """Return the loads of the workers that have given a sign of life lately, by their numbers in order."""
        alive_since = time.clock_gettime(time.CLOCK_BOOTTIME) - STALE_SECONDS
        words = self._words
        return {
            worker: WorkerLoad(words[at + 1], words[at + 2], int(words[at + 3]))
            for worker, at in enumerate(range(0, self._count * _WORDS, _WORDS))
            if words[at] > alive_since
        }
