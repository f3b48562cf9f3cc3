"""Journals: files of records that say what the index decided. Written by one process at a time, each synced as a whole.

A journal has the bytes of a pack. A failed write or sync ends it for ever, and so does the end of its process: what is
written next goes into another.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence

from storage_drivers.base import Decision
from storage_drivers.errors import BlobDamaged, StoreFailed, map_errors
from storage_drivers.files import FILE_MODE, write_all
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import OPEN

CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class Journals:
    """`path` names a journal's file, `sync_entry` makes its directory entry durable (None: a relaxed store).

    Methods block, and are called by one thread at a time.
    """

    def __init__(self, path: Callable[[int], str], sync_entry: Callable[[int], None] | None) -> None:
        self._path = path
        self._sync_entry = sync_entry
        self._open: dict[int, tuple[int, int, int]] = {}
        """Journals being written: descriptor, salt and length."""

    def append(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        """Write records and return the journal's length once they are as durable as declared.

        A journal is made by the first call. Raises DriverError; nothing is added to that journal then any more.
        """
        with map_errors():
            opened = self._open.pop(journal_id) if journal_id in self._open else self._create(journal_id)
            fd, salt, offset = opened
            try:
                for number, claim, body in decisions:
                    head = pack_format.record_head(pack_format.DECISION, number, offset, claim, body, salt)
                    write_all(fd, head + claim + body)
                    offset += len(head) + len(claim) + len(body)
                if self._sync_entry is not None:
                    os.fdatasync(fd)
            except BaseException:
                os.close(fd)
                raise
        self._open[journal_id] = fd, salt, offset
        return offset

    def _create(self, journal_id: int) -> tuple[int, int, int]:
        fd = os.open(self._path(journal_id), CREATE, FILE_MODE)
        try:
            salt = secrets.randbits(64)
            head = pack_format.pack_header(journal_id, salt)
            write_all(fd, head)
            if self._sync_entry is not None:
                os.fsync(fd)
                self._sync_entry(journal_id)
        except BaseException:
            os.close(fd)
            raise
        return fd, salt, len(head)

    def end(self, journal_id: int) -> None:
        """Nothing more is written to a journal by this process."""
        opened = self._open.pop(journal_id, None)
        if opened is not None:
            os.close(opened[0])

    def close(self) -> None:
        """End all."""
        for journal_id in list(self._open):
            self.end(journal_id)

    def read(self, journal_id: int) -> Iterator[Decision | None]:
        """The records of a journal in order, None for one that is damaged; a torn end is passed over."""
        try:
            with map_errors(committed=f"journal {journal_id:x}"):
                fd = os.open(self._path(journal_id), OPEN)
        except StoreFailed:
            yield None
            return
        try:
            salt = pack_format.read_salt(fd, journal_id)
            end = pack_format.PACK_HEADER
            for record in pack_format.walk(fd, salt):
                if record.offset != end:
                    yield None
                end = record.offset + record.total
                found = pack_format.intact(fd, record, salt)
                yield None if found is None else Decision(record.blob_id, *found)
        except BlobDamaged:
            if os.fstat(fd).st_size > pack_format.PACK_HEADER:  # else torn before its first record
                yield None
        finally:
            os.close(fd)
