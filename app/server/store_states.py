"""How every store is in every process of a server, in one file that each of them maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.server.shared import open_shared

FILE = "stores"
CONDITIONS = ("", "up", "full", "read-only", "failing", "down")
"""Of a store in a process, by their numbers; the first: there is no process. See `app.store.breaker`."""
_WORDS = 4
"""Of a store at a place: its condition, calls that run, calls that are stuck, bytes that are held in memory."""
_WORD = 8


class StoreStates:
    """`names` are the stores, in the same order in all processes. A process writes at its own place only."""

    def __init__(self, run_dir: Path, names: Sequence[str], places: int, *, create: bool = False) -> None:
        self._names = list(names)
        self._size = len(self._names) * _WORDS
        self._words = memoryview(open_shared(run_dir / FILE, places * self._size * _WORD, create=create)).cast("Q")

    def publish(self, place: int, name: str, condition: str, running: int, stuck: int, held: int) -> None:
        """Say how a store is here."""
        at = place * self._size + self._names.index(name) * _WORDS
        for offset, number in enumerate((CONDITIONS.index(condition), running, stuck, held)):
            self._words[at + offset] = number

    def clear(self, place: int) -> None:
        """The process of a place is dead."""
        for at in range(place * self._size, (place + 1) * self._size):
            self._words[at] = 0

    def of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Condition, running and stuck calls, and bytes held, of a store, of every process that runs."""
        first = self._names.index(name) * _WORDS
        found = []
        for at in range(first, len(self._words), self._size):
            condition, running, stuck, held = self._words[at : at + _WORDS]
            if condition:
                found.append((CONDITIONS[condition], running, stuck, held))
        return found
