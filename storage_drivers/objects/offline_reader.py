"""A reader of a whole store of the layout *objects*, for `sluice rebuild`.

It needs no index. All methods block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.blobs.footer import CHUNK, Shape, chunk_check, part_id, read_footer
from sluice_s3.storage_drivers.errors import BlobDamaged, DriverError, map_errors
from sluice_s3.storage_drivers.fsutil import read_exactly
from sluice_s3.storage_drivers.layout import DIRECTORIES, JOURNAL_SUFFIX, ObjectsLayout, list_ids
from sluice_s3.storage_drivers.objects.journals import Journals
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import OPEN, PREFIX, parse_locator


class Blob(NamedTuple):
    """A blob of the store."""

    blob_id: int
    locator: str
    size: int
    """Bytes of the body."""
    pack: int
    """Its pack, 0 for a file of its own."""
    total: int
    """Bytes of its record."""
    recovery_header: bytes
    """Its recovery header, unverified when it lies in a pack: see `Contents.intact`."""


class Damaged(NamedTuple):
    """A file without a readable blob."""

    locator: str
    reason: str


class OfflineStoreReader:
    """Reader of the store at `root`.

    Raises DriverError for what the mount refuses to read.
    """

    def __init__(self, root: Path) -> None:
        self._names = ObjectsLayout(root)
        self._journals = Journals(self._names, durable=False)

    def _numbers(self, suffix: str) -> Iterator[int]:
        for low in range(DIRECTORIES):
            with map_errors():
                ids = list_ids(self._names.directory(low), suffix)
            yield from ids

    @property
    def empty(self) -> bool:
        """Whether nothing was ever written to this store, or nothing is left."""
        return not self.journals() and not any(next(self._numbers(suffix), None) for suffix in ("", ".pack"))

    def packs(self) -> list[int]:
        """Return the ids of all packs."""
        return sorted(self._numbers(".pack"))

    def pack_size(self, pack_id: int) -> tuple[int, int]:
        """Return the bytes of a pack's file, and of its possible records."""
        with map_errors():
            size = os.stat(self._names.pack(pack_id)).st_size
        return size, size - format.PACK_HEADER

    def records(self, pack_id: int) -> Iterator[Blob]:
        """Yield the blobs of a pack whose records have whole headers.

        Raises BlobDamaged when the pack itself has no header.
        """
        with map_errors():
            fd = os.open(self._names.pack(pack_id), OPEN)
            try:
                for record in format.walk(fd, format.read_salt(fd, pack_id)):
                    if record.kind != format.BLOB:
                        continue
                    header = os.pread(fd, record.header_size, record.offset + format.RECORD_HEADER)
                    locator = f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}"
                    yield Blob(record.blob_id, locator, record.body, pack_id, record.total, header)
            finally:
                os.close(fd)

    def file_ids(self) -> Iterator[int]:
        """Yield the ids of the blobs with a file of their own; reads directories only."""
        return self._numbers("")

    def files(self) -> Iterator[Blob | Damaged]:
        """Yield the blobs with a file of their own."""
        return map(self.file, self.file_ids())

    def file(self, blob_id: int) -> Blob | Damaged:
        """Return the blob of that id, which has a file of its own."""
        locator = f"f:{blob_id:016x}"
        try:
            with map_errors(committed=locator):
                fd = os.open(self._names.blob(blob_id), OPEN)
                try:
                    footer = read_footer(fd, os.fstat(fd).st_size, blob_id, locator)
                finally:
                    os.close(fd)
        except DriverError as error:
            return Damaged(locator, str(error))
        return Blob(blob_id, locator, footer.shape.total, 0, 0, footer.recovery_header)

    def intact(self, locator: str) -> bool:
        """Return whether header and body of a blob verify; reads all of it."""
        try:
            with map_errors(committed=locator):
                return self._record_intact(locator) if locator.startswith(PREFIX) else self._file_intact(locator)
        except DriverError:
            return False

    def _record_intact(self, locator: str) -> bool:
        location = parse_locator(locator)
        fd = os.open(self._names.pack(location.pack), OPEN)
        try:
            whole = memoryview(read_exactly(fd, location.offset, location.total))
            format.parse_record(whole, location.offset, location.blob_id, format.read_salt(fd, location.pack))
        finally:
            os.close(fd)
        return True

    def _file_intact(self, locator: str) -> bool:
        blob_id = self.blob_id(locator)
        shape = self._part_intact(self._names.blob(blob_id), blob_id, locator)
        for part in range(1, shape.parts):
            found = self._part_intact(self._names.blob(blob_id, part), part_id(blob_id, part), locator)
            if found.total != shape.size_of(part):
                return False
        return True

    @staticmethod
    def _part_intact(path: str, number: int, locator: str) -> Shape:
        """Read a whole file and return its shape. Raises BlobMissing, BlobDamaged."""
        fd = os.open(path, OPEN)
        try:
            footer = read_footer(fd, os.fstat(fd).st_size, number, locator)
            for chunk in range(-(-footer.body // CHUNK)):
                piece = read_exactly(fd, chunk * CHUNK, min(CHUNK, footer.body - chunk * CHUNK))
                if chunk_check(piece, number) != footer.check(chunk):
                    raise BlobDamaged(f"{locator} is not what was written")
        finally:
            os.close(fd)
        return footer.shape

    def journals(self) -> list[int]:
        """Return the ids of all journals, oldest first."""
        with map_errors():
            try:
                own = list_ids(self._names.journals, JOURNAL_SUFFIX)
            except FileNotFoundError:  # a store on which no current version has started
                own = []
        return sorted({*own, *self._numbers(JOURNAL_SUFFIX)})

    def journal(self, journal_id: int) -> Iterator[JournalRecord | None]:
        """Yield the records of a journal, None for a damaged one."""
        return self._journals.read(journal_id)

    def journal_size(self, journal_id: int) -> int:
        """Return the bytes of a journal."""
        return self._journals.size(journal_id)

    @staticmethod
    def blob_id(locator: str) -> int:
        """Return the id of the blob at a locator.

        Raises BlobDamaged for a text that is no locator.
        """
        try:
            return int(locator.rpartition(".")[2] if locator.startswith(PREFIX) else locator.removeprefix("f:"), 16)
        except ValueError:
            raise BlobDamaged(f"{locator!r} is no locator") from None
