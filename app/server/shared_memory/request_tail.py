"""The last requests of every process of a server, in one mapped file, while somebody watches.

The admin process makes the file when it is first asked, and says in its first word until when it reads. Workers look at
that word in their sweeps alone. Each writes its own ring of cells and never waits: what comes while the ring is full
is dropped, and counted.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import orjson

from sluice_s3.app.server.shared_memory.counters import open_or_create
from sluice_s3.app.server.shared_memory.oldest_requests import boottime_ms, map_shared_file

FILE = "request-tail"
WATCH_MS = 5000
"""Milliseconds for which workers write after the reader's last sign of life."""
CELLS = 128
"""Requests that a process holds for the reader."""
CELL = 1024
"""Bytes of a cell: a line of the access log, and one with the seconds of phases, both JSON."""
_WORD = 8
_FIRST = 64
"""Offset of the rings; before them is the time until which records are wanted."""
_RING = _WORD * 8 + CELLS * CELL
"""Bytes of a ring: three numbers, padded, and the cells."""
_READ, _DROPPED = 1, 2
"""Words of a ring after the number of records ever written: how many of these were read, and how many were dropped."""
_CUT = "…"
_dumps, _NEWLINE = orjson.dumps, orjson.OPT_APPEND_NEWLINE


def _path(run_dir: Path, slots: int) -> Path:
    return run_dir / f"{FILE}-{slots}"


def _size(slots: int) -> int:
    return _FIRST + slots * _RING


class TailWriter:
    """The ring of one process."""

    def __init__(self, shared: mmap.mmap, slot: int) -> None:
        self._shared = shared
        self._words = memoryview(shared).cast("Q")
        self._head = (_FIRST + slot * _RING) // _WORD
        self._cells = _FIRST + slot * _RING + _WORD * 8
        self._number: int = self._words[self._head]
        self._dropped: int = self._words[self._head + _DROPPED]

    @classmethod
    def open(cls, run_dir: Path, slots: int, slot: int) -> TailWriter | None:
        """Map the reader's file; None while there is none."""
        path = _path(run_dir, slots)
        if not os.path.exists(path):  # each worker looks at every sweep, and the checks of a private file cost more
            return None
        try:
            return cls(map_shared_file(path, _size(slots), create=False), slot)
        except (OSError, ValueError):
            return None

    def is_wanted(self, now: int) -> bool:
        """Return whether somebody reads at `now`, CLOCK_BOOTTIME in milliseconds.

        A time that is too far ahead is one of an earlier boot.
        """
        return now < self._words[0] <= now + 2 * WATCH_MS

    def append(self, line: bytes, timings: dict[str, float]) -> None:
        """Add a request: its line of the access log, and the seconds of its phases.

        While the reader has not taken what is there, it is counted and dropped: so a busy worker spends no more on the
        tail than the reader can show.
        """
        number, words, head = self._number, self._words, self._head
        if number - words[head + _READ] >= CELLS:
            self._dropped += 1
            words[head + _DROPPED] = self._dropped
            return
        record = line + _dumps(timings, None, _NEWLINE)
        size = len(record)
        if size > CELL:
            self.append(_shorten(line), timings)
            return
        at = self._cells + number % CELLS * CELL
        self._shared[at : at + size] = record
        self._number = words[head] = number + 1


def _shorten(line: bytes) -> bytes:
    """Return a line with its long texts cut, so that it fits a cell."""
    fields = orjson.loads(line)
    for most in (256, 64, 16):
        shorter = {
            name: text[:most] + _CUT if isinstance(text, str) and len(text) > most else text
            for name, text in fields.items()
        }
        found = orjson.dumps(shorter, option=orjson.OPT_APPEND_NEWLINE)
        if len(found) <= CELL * 3 // 4:
            break
    return found


class TailReader:
    """Reads the rings of all processes, from its creation on. Raises OSError when there is no space for them."""

    def __init__(self, run_dir: Path, slots: int) -> None:
        self._shared = open_or_create(_path(run_dir, slots), _size(slots), create=False)
        self._words = memoryview(self._shared).cast("Q")
        self._rings = [_FIRST + slot * _RING for slot in range(slots)]
        self._dropped = [0] * slots
        self.read()

    def want(self) -> None:
        """Make the workers write for `WATCH_MS` from now on."""
        self._words[0] = boottime_ms() + WATCH_MS

    def stop(self) -> None:
        """Make the workers stop at their next sweep."""
        self._words[0] = 0

    def read(self) -> tuple[list[dict[str, object]], int]:
        """Return the new requests as the access log has them, with all phases, and how many are lost."""
        found: list[dict[str, object]] = []
        lost = 0
        for slot, ring in enumerate(self._rings):
            head = ring // _WORD
            written, dropped = self._words[head], self._words[head + _DROPPED]
            first = max(self._words[head + _READ], written - CELLS)
            places = [ring + _WORD * 8 + number % CELLS * CELL for number in range(first, written)]
            copies = [self._shared[at : at + CELL] for at in places]
            self._words[head + _READ] = written  # the process may use these cells again
            records = [_parse(record) for record in copies]
            found += [record for record in records if record is not None]
            lost += dropped - self._dropped[slot] + records.count(None)
            self._dropped[slot] = dropped
        return found, lost


def _parse(record: bytes) -> dict[str, object] | None:
    """Return the record of a cell; None when there is none."""
    lines = record.split(b"\n", 2)
    try:
        fields: dict[str, object] = orjson.loads(lines[0])
        seconds: dict[str, float] = orjson.loads(lines[1])
    except (IndexError, orjson.JSONDecodeError):
        return None
    fields["phases"] = {name: round(spent * 1000, 3) for name, spent in seconds.items()}
    return fields
