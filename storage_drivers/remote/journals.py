"""Journals on a remote place, where nothing can be added to an object: every batch is an object of its own.

ROOT/journals/<id as 16 hex>.journal.<number from 0> has the bytes of a pack, as a journal on a mount has.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence

from storage_drivers.base import Decision
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed
from storage_drivers.packs import pack_format
from storage_drivers.remote.filesystem import Remote

NAME = re.compile(r"([0-9a-f]{16})\.journal\.(0|[1-9][0-9]*)")
DIRECTORY = "journals"
PIECE = 1 << 20


class RemoteJournals:
    """The journals of one place. Methods block; those that write are called by one thread at a time."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._open: dict[int, tuple[int, int]] = {}
        """Journals being written: batches and bytes so far."""

    def path(self, journal_id: int, number: int) -> str:
        """The object of a batch."""
        return f"{self._remote.root}/{DIRECTORY}/{journal_id:016x}.journal.{number}"

    def append(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        """Write a batch; the bytes of the whole journal. Raises DriverError; nothing can be added then any more."""
        opened = self._open.pop(journal_id, None)
        if opened is None and any(found == journal_id for found, _, _ in self.listed()):
            raise StoreFailed("the journal was ended")
        number, length = opened or (0, 0)
        salt = secrets.randbits(64)
        batch = bytearray(pack_format.pack_header(journal_id, salt))
        for decision, claim, body in decisions:
            batch += pack_format.record_head(pack_format.DECISION, decision, len(batch), claim, body, salt)
            batch += claim
            batch += body
        self._remote.create(self.path(journal_id, number), batch)
        self._open[journal_id] = number + 1, length + len(batch)
        return length + len(batch)

    def end(self, journal_id: int) -> None:
        """Nothing more is written to a journal by this process."""
        self._open.pop(journal_id, None)

    def listed(self) -> list[tuple[int, int, int]]:
        """Every batch in order: journal, number and bytes."""
        found = []
        for name, size in self._remote.list(f"{self._remote.root}/{DIRECTORY}"):
            match = NAME.fullmatch(name)
            if match is not None:
                found.append((int(match[1], 16), int(match[2]), size))
        return sorted(found)

    def discard(self, ids: Sequence[int]) -> None:
        """Remove journals, the first batch last: what is left of one is known by its missing end, not its beginning."""
        wanted = set(ids)
        for journal_id, number, _ in reversed(self.listed()):
            if journal_id in wanted:
                self._remote.remove(self.path(journal_id, number))

    def read(self, journal_id: int) -> Iterator[Decision | None]:
        """The records of a journal in order, None for what is damaged or missing; a torn end is passed over."""
        numbers = [number for found, number, _ in self.listed() if found == journal_id]
        if not numbers:
            raise BlobMissing(f"journal {journal_id:x}")
        for number in range(numbers[-1] + 1):
            try:
                yield from self._batch(journal_id, number, last=number == numbers[-1])
            except DriverError:
                yield None

    def _batch(self, journal_id: int, number: int, *, last: bool) -> Iterator[Decision | None]:
        path = self.path(journal_id, number)
        with tempfile.TemporaryFile() as file:
            size = 0
            while piece := self._remote.read(path, size, size + PIECE, f"journal {journal_id:x}"):
                file.write(piece)
                size += len(piece)
                if len(piece) < PIECE:
                    break
            file.flush()
            fd = file.fileno()
            try:
                salt = pack_format.read_salt(fd, journal_id)
            except BlobDamaged:
                if last and size <= pack_format.PACK_HEADER:  # torn before its first record
                    return
                raise
            end = pack_format.PACK_HEADER
            for record in pack_format.walk(fd, salt):
                if record.offset != end:
                    yield None
                found = pack_format.intact(fd, record, salt)
                yield None if found is None else Decision(record.blob_id, *found)
                end = record.offset + record.total
            if end != size and not last:
                yield None
