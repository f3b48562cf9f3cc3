"""The last requests of every process of a server, in one mapped file, while somebody watches.

The admin process makes the file when it is first asked, and says in its first word until when it reads. Workers look at
that word in their sweeps alone. Each writes its own ring of cells and never waits: what is not read in time is
overwritten, and the reader learns how much that was from the numbers of the cells.
"""

from __future__ import annotations

import mmap
import struct
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
"""Bytes of a cell: its number, its length, and the record."""
_HEAD = 16
LONGEST_RECORD = CELL - _HEAD
_WORD = 8
_FIRST = 64
"""Offset of the rings; before them is the time until which records are wanted."""
_RING = _WORD * 8 + CELLS * CELL
"""Bytes of a ring: the number of records ever written there, padded, and the cells."""
_CUT = "…"
_NUMBERS = struct.Struct("<QQ")


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

    @classmethod
    def open(cls, run_dir: Path, slots: int, slot: int) -> TailWriter | None:
        """Map the reader's file; None while there is none."""
        try:
            return cls(map_shared_file(_path(run_dir, slots), _size(slots), create=False), slot)
        except (OSError, ValueError):
            return None

    def is_wanted(self, now: int) -> bool:
        """Return whether somebody reads at `now`, CLOCK_BOOTTIME in milliseconds.

        A time that is too far ahead is one of an earlier boot.
        """
        return now < self._words[0] <= now + 2 * WATCH_MS

    def append(self, line: bytes, timings: dict[str, float]) -> None:
        """Add a request: its line of the access log, and the seconds of its phases."""
        record = line + orjson.dumps(timings)
        if len(record) > LONGEST_RECORD:
            record = _shorten(line) + orjson.dumps(timings)
        number, size = self._number, len(record)
        at = self._cells + number % CELLS * CELL
        number += 1
        shared, word = self._shared, at // _WORD
        self._words[word] = 0  # a reader in between drops the cell
        shared[at + _HEAD : at + _HEAD + size] = record
        self._words[word + 1] = size
        self._words[word] = number
        self._number = self._words[self._head] = number


def _shorten(line: bytes) -> bytes:
    """Return a line with its long texts cut, so that it fits a cell."""
    fields = orjson.loads(line)
    for most in (256, 64, 16):
        shorter = {
            name: text[:most] + _CUT if isinstance(text, str) and len(text) > most else text
            for name, text in fields.items()
        }
        found = orjson.dumps(shorter, option=orjson.OPT_APPEND_NEWLINE)
        if len(found) <= LONGEST_RECORD * 3 // 4:
            break
    return found


class TailReader:
    """Reads the rings of all processes, from its creation on. Raises OSError when there is no space for them."""

    def __init__(self, run_dir: Path, slots: int) -> None:
        self._shared = open_or_create(_path(run_dir, slots), _size(slots), create=False)
        self._words = memoryview(self._shared).cast("Q")
        self._rings = [_FIRST + slot * _RING for slot in range(slots)]
        self._read = [self._words[ring // _WORD] for ring in self._rings]

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
        for place, ring in enumerate(self._rings):
            written = self._words[ring // _WORD]
            before, self._read[place] = self._read[place], written
            first = max(before, written - CELLS)
            lost += max(first - before, 0)
            for number in range(first, written):
                record = self._copy(ring + _WORD * 8 + number % CELLS * CELL, number + 1)
                if record is None:
                    lost += 1
                else:
                    found.append(record)
        return found, lost

    def _copy(self, at: int, number: int) -> dict[str, object] | None:
        """Return the record of a cell; None when another one has replaced it."""
        stored, size = _NUMBERS.unpack_from(self._shared, at)
        if stored != number or size > LONGEST_RECORD:
            return None
        record = self._shared[at + _HEAD : at + _HEAD + size]
        if self._words[at // _WORD] != number:
            return None
        line, _, timings = record.rpartition(b"\n")
        try:
            fields: dict[str, object] = orjson.loads(line)
            seconds: dict[str, float] = orjson.loads(timings)
        except orjson.JSONDecodeError:
            return None
        fields["phases"] = {name: round(spent * 1000, 3) for name, spent in seconds.items()}
        return fields
