"""The state of every store in every process of a server, in one mapped file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file

FILE = "stores"
CONDITIONS = ("", "up", "full", "read-only", "failing", "down")
"""Conditions by their numbers; the first means no process. See `app.store.availability.circuit_breaker`."""
_WORDS = 4
"""Words of a store in a slot: condition, running calls, stuck calls, bytes held."""
_WORD = 8


class StoreStates:
    """The states of the stores `names`, in the same order in all processes.

    A process writes in its own slot only.
    """

    def __init__(self, run_dir: Path, names: Sequence[str], slot_count: int, *, create: bool = False) -> None:
        self._names = list(names)
        self._size = len(self._names) * _WORDS
        self._words = memoryview(map_shared_file(run_dir / FILE, slot_count * self._size * _WORD, create=create)).cast(
            "Q"
        )

    def publish(self, slot: int, name: str, condition: str, running: int, stuck: int, held_bytes: int) -> None:
        """Publish the state of a store in this process."""
        at = slot * self._size + self._names.index(name) * _WORDS
        for offset, number in enumerate((CONDITIONS.index(condition), running, stuck, held_bytes)):
            self._words[at + offset] = number

    def clear(self, slot: int) -> None:
        """Clear the slot of a dead process."""
        for at in range(slot * self._size, (slot + 1) * self._size):
            self._words[at] = 0

    def find(self, name: str) -> list[tuple[str, int, int, int]]:
        """Return condition, running and stuck calls, and bytes held, of a store in running processes."""
        first = self._names.index(name) * _WORDS
        found = []
        for at in range(first, len(self._words), self._size):
            condition, running, stuck, held_bytes = self._words[at : at + _WORDS]
            if condition:
                found.append((CONDITIONS[condition], running, stuck, held_bytes))
        return found
