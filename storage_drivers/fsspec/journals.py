"""Journals on a remote place without appends: every batch is an object of its own.

ROOT/journals/<id as 16 hex>.journal.<number from 0> has the bytes of a pack, like a journal on a mount.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed
from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient
from sluice_s3.storage_drivers.packs import format

NAME = re.compile(r"([0-9a-f]{16})\.journal\.(0|[1-9][0-9]*)")
DIRECTORY = "journals"
PIECE_BYTES = 1 << 20


class RemoteJournals:
    """The journals of one place.

    Methods block; those that write are called by one thread at a time.
    """

    def __init__(self, remote: FsspecClient) -> None:
        self._remote = remote
        self._open: dict[int, tuple[int, int]] = {}
        """Open journals, each with its batches and bytes so far."""

    def path(self, journal_id: int, number: int) -> str:
        """Return the object of a batch."""
        return f"{self._remote.root}/{DIRECTORY}/{journal_id:016x}.journal.{number}"

    def append(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """Write a batch; return the bytes of the whole journal.

        Raises DriverError; then nothing can be appended any more.
        """
        opened = self._open.pop(journal_id, None)
        if opened is None and any(found == journal_id for found, _, _ in self.listed()):
            raise StoreFailed("the journal was ended")
        batch_number, length = opened or (0, 0)
        salt = secrets.randbits(64)
        batch = bytearray(format.pack_header(journal_id, salt))
        for number, header, body in records:
            batch += format.record_head(format.JOURNAL_RECORD, number, len(batch), header, body, salt)
            batch += header
            batch += body
        self._remote.create(self.path(journal_id, batch_number), batch)
        self._open[journal_id] = batch_number + 1, length + len(batch)
        return length + len(batch)

    def end(self, journal_id: int) -> None:
        """Close a journal: this process writes nothing more to it."""
        self._open.pop(journal_id, None)

    def listed(self) -> list[tuple[int, int, int]]:
        """Return every batch in order: journal, number and bytes."""
        found = []
        for name, size in self._remote.list(f"{self._remote.root}/{DIRECTORY}"):
            match = NAME.fullmatch(name)
            if match is not None:
                found.append((int(match[1], 16), int(match[2]), size))
        return sorted(found)

    def discard(self, ids: Sequence[int]) -> None:
        """Remove journals, the first batch last: an incomplete one lacks its end, not its beginning."""
        wanted = set(ids)
        for journal_id, number, _ in reversed(self.listed()):
            if journal_id in wanted:
                self._remote.remove(self.path(journal_id, number))

    def sizes(self) -> dict[int, int]:
        """Return every journal, and the bytes of all its batches."""
        found: dict[int, int] = {}
        for journal_id, _, size in self.listed():
            found[journal_id] = found.get(journal_id, 0) + size
        return found

    def read(self, journal_id: int) -> Iterator[JournalRecord | None]:
        """Yield the records of a journal in order, None for a damaged or missing one.

        A torn end is skipped.
        """
        return self.tail(journal_id, 0)

    def tail(self, journal_id: int, length: int) -> Iterator[JournalRecord | None]:
        """Yield the records of the batches behind the first `length` bytes, as `read` does."""
        sizes = {number: size for found, number, size in self.listed() if found == journal_id}
        if not sizes:
            raise BlobMissing(f"journal {journal_id:x}")
        last = max(sizes)
        for number in range(last + 1):
            length -= sizes.get(number, 0)
            if length >= 0 and number in sizes:
                continue
            try:
                yield from self._batch(journal_id, number, last=number == last)
            except DriverError:
                yield None

    def _batch(self, journal_id: int, number: int, *, last: bool) -> Iterator[JournalRecord | None]:
        path = self.path(journal_id, number)
        with tempfile.TemporaryFile() as file:
            size = 0
            while piece := self._remote.read(path, size, size + PIECE_BYTES, f"journal {journal_id:x}"):
                file.write(piece)
                size += len(piece)
                if len(piece) < PIECE_BYTES:
                    break
            file.flush()
            fd = file.fileno()
            try:
                salt = format.read_salt(fd, journal_id)
            except BlobDamaged:
                if last and size <= format.PACK_HEADER:  # torn before its first record
                    return
                raise
            end = format.PACK_HEADER
            for record in format.walk(fd, salt):
                if record.offset != end:
                    yield None
                found = format.read_verified(fd, record, salt)
                yield None if found is None else JournalRecord(record.blob_id, *found)
                end = record.offset + record.total
            if end != size and not last:
                yield None
