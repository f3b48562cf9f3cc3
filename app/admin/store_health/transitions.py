"""The last changes of each store's condition in this gateway, kept in a file of the runtime directory.

A circuit breaker belongs to a process, and its state ends with it. This process reads what all of them publish, and is
the only one that writes the file: once a change, never for a request.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from sluice_s3.app.private_files import open_file, replace_file
from sluice_s3.app.store.availability.circuit_breaker import Condition

logger = logging.getLogger("sluice.admin")

FILE = "store-history"
MAX_TRANSITIONS = 50
"""Changes that are kept of each store."""
SEVERITY: tuple[Condition, ...] = ("up", "full", "read-only", "failing", "down")


@dataclass(slots=True)
class Transition:
    """A change of a store's condition."""

    at: int
    """Milliseconds since the epoch."""
    condition: Condition
    processes: int
    """Processes that saw it, at most at once."""
    of: int
    """Processes that used the store then."""
    reason: str = ""


class TransitionLog:
    """The changes of all stores."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self._known: dict[str, list[Transition]] = {}
        self._changed = False

    def load(self) -> None:
        """Read what an earlier process wrote. A file that cannot be read is written again."""
        try:
            with os.fdopen(open_file(self._path, os.O_RDONLY), "rb") as file:
                found = orjson.loads(file.read())
            self._known = {name: [Transition(**one) for one in known] for name, known in found.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, AttributeError) as error:
            logger.warning("the history of the stores cannot be read: %s", type(error).__name__)

    def of(self, store: str) -> list[Transition]:
        """Return the changes of a store, the oldest first."""
        return self._known.get(store, [])

    def note(self, store: str, conditions: Sequence[Condition], reason: str, now: int) -> None:
        """Note the condition that each process sees, at `now` in milliseconds. The worst one counts."""
        if not conditions:
            return
        worst = max(conditions, key=SEVERITY.index)
        affected = sum(condition == worst for condition in conditions)
        known = self._known.setdefault(store, [])
        last = known[-1] if known else None
        if last is None or last.condition != worst:
            known.append(Transition(now, worst, affected, len(conditions), reason if worst != "up" else ""))
            del known[:-MAX_TRANSITIONS]
        elif worst != "up" and (affected > last.processes or (reason and not last.reason)):
            last.processes, last.of = max(affected, last.processes), len(conditions)
            last.reason = last.reason or reason
        else:
            return
        self._changed = True

    async def save(self) -> None:
        """Write the changes since the last call, if there are any."""
        if not self._changed:
            return
        self._changed = False
        content = orjson.dumps({name: [asdict(one) for one in known] for name, known in self._known.items()})
        try:
            await asyncio.to_thread(self._write, content)
        except OSError as error:
            logger.warning("the history of the stores cannot be written: %s", error.strerror)

    def _write(self, content: bytes) -> None:
        with os.fdopen(replace_file(self._path), "wb") as file:
            file.write(content)
