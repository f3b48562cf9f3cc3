"""Journals: files of records with what the index committed.

One process at a time writes them, and each write is synced as a whole. A journal has the bytes of a pack. A failed
write or sync closes it for ever, and so does the end of its process: the next records go into another.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed, StoreGone, map_errors
from sluice_s3.storage_drivers.fsutil import FILE_MODE, sync_directory, write_all
from sluice_s3.storage_drivers.layout import DIRECTORIES, JOURNAL_SUFFIX, ObjectsLayout, list_ids
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import OPEN

CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class Journals:
    """The journals of the store whose layout is `names`.

    Writes are synced unless `durable` is false. Methods block, and are called by one thread at a time.
    """

    def __init__(self, names: ObjectsLayout, *, durable: bool) -> None:
        self._names = names
        self._durable = durable
        self._open: dict[int, tuple[int, int, int]] = {}
        """Open journals, each with its descriptor, salt and length."""

    def append(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """Append records and return the journal's length once they are as durable as declared.

        The first call creates the journal. Raises DriverError; then nothing can be appended to that journal any more.
        """
        with map_errors():
            opened = self._open.pop(journal_id) if journal_id in self._open else self._create(journal_id)
            fd, salt, offset = opened
            try:
                if not os.fstat(fd).st_nlink:
                    raise StoreGone(f"journal {journal_id:x} was removed")
                for number, header, body in records:
                    head = format.record_head(format.JOURNAL_RECORD, number, offset, header, body, salt)
                    write_all(fd, head + header + body)
                    offset += len(head) + len(header) + len(body)
                if self._durable:
                    os.fdatasync(fd)
            except BaseException:
                os.close(fd)
                raise
        self._open[journal_id] = fd, salt, offset
        return offset

    def _create(self, journal_id: int) -> tuple[int, int, int]:
        fd = os.open(self._names.journal(journal_id), CREATE, FILE_MODE)
        try:
            salt = secrets.randbits(64)
            head = format.pack_header(journal_id, salt)
            write_all(fd, head)
            if self._durable:
                os.fsync(fd)
                sync_directory(self._names.journals)
        except BaseException:
            os.close(fd)
            raise
        return fd, salt, len(head)

    def end(self, journal_id: int) -> None:
        """Close a journal: this process writes nothing more to it."""
        opened = self._open.pop(journal_id, None)
        if opened is not None:
            os.close(opened[0])

    def close(self) -> None:
        """Close all journals."""
        for journal_id in list(self._open):
            self.end(journal_id)

    def sizes(self) -> dict[int, int]:
        """Return the journals of their own directory, and the bytes of each.

        While that has none, return those among the blobs, where versions before 2026-11 put them: it takes a listing of
        all directories, once after an upgrade.
        """
        found = _sizes_in(self._names.journals)
        if not found:
            for low in range(DIRECTORIES):
                found |= _sizes_in(self._names.directory(low))
        return found

    def size(self, journal_id: int) -> int:
        """Return the bytes of a journal. Raises StoreFailed when there is none."""
        with map_errors():
            try:
                return os.stat(self._names.journal(journal_id)).st_size
            except FileNotFoundError:
                return os.stat(self._names.journal_in_data(journal_id)).st_size

    def discard(self, ids: Sequence[int]) -> None:
        """Unlink journals; a missing one is no error."""
        with map_errors():
            for journal_id in ids:
                for path in (self._names.journal(journal_id), self._names.journal_in_data(journal_id)):
                    try:
                        os.unlink(path)
                    except FileNotFoundError:
                        continue
                    break
            if self._durable:
                sync_directory(self._names.journals)

    def read(self, journal_id: int) -> Iterator[JournalRecord | None]:
        """Yield the records of a journal in order, None for a damaged one.

        A torn end is skipped.
        """
        return self.tail(journal_id, 0)

    def tail(self, journal_id: int, length: int) -> Iterator[JournalRecord | None]:
        """Yield the records behind the first `length` bytes of a journal, as `read` does."""
        try:
            with map_errors(committed=f"journal {journal_id:x}"):
                fd = self._open_to_read(journal_id)
        except StoreFailed:
            yield None
            return
        try:
            salt = format.read_salt(fd, journal_id)
            end = max(format.PACK_HEADER, length)
            for record in format.walk(fd, salt, end):
                if record.offset != end:
                    yield None
                end = record.offset + record.total
                found = format.read_verified(fd, record, salt)
                yield None if found is None else JournalRecord(record.blob_id, *found)
        except BlobDamaged:
            if os.fstat(fd).st_size > format.PACK_HEADER:  # else torn before its first record
                yield None
        finally:
            os.close(fd)

    def _open_to_read(self, journal_id: int) -> int:
        try:
            return os.open(self._names.journal(journal_id), OPEN)
        except FileNotFoundError:
            return os.open(self._names.journal_in_data(journal_id), OPEN)


def _sizes_in(directory: str) -> dict[int, int]:
    """Return the journals in a directory, and the bytes of each."""
    found = {}
    with map_errors():
        try:
            ids = list_ids(directory, JOURNAL_SUFFIX)
        except FileNotFoundError:  # a store on which no current version has started
            return {}
        for journal_id in ids:
            try:
                found[journal_id] = os.stat(f"{directory}/{journal_id:016x}{JOURNAL_SUFFIX}").st_size
            except FileNotFoundError:  # discarded meanwhile
                continue
    return found
