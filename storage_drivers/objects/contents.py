"""Everything that lies in a store of the layout *objects*, read without an index: for `sluice rebuild`. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from storage_drivers.base import Decision
from storage_drivers.blobs.footer import CHUNK, Shape, chunk_check, part_id, read_footer
from storage_drivers.errors import BlobDamaged, DriverError, map_errors
from storage_drivers.files import read_exactly
from storage_drivers.names import DIRECTORIES, NAME, Names
from storage_drivers.objects.journals import Journals
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import OPEN, PREFIX, place_of


class Blob(NamedTuple):
    """A blob that was found."""

    blob_id: int
    locator: str
    size: int
    """Bytes of the body."""
    pack: int
    """The pack it lies in, 0 for a file of its own."""
    total: int
    """Bytes of its record."""
    claim: bytes
    """Unverified when it lies in a pack: see `Contents.intact`."""


class Damaged(NamedTuple):
    """A file that holds no blob that could be read."""

    locator: str
    reason: str


class Contents:
    """The store at `root`. Raises DriverError for what the mount does not let us read."""

    def __init__(self, root: Path) -> None:
        self._names = Names(root)
        self._journals = Journals(self._names.journal, None)

    def _numbers(self, suffix: str) -> Iterator[int]:
        for low in range(DIRECTORIES):
            with map_errors():
                names = sorted(os.listdir(self._names.directory(low)))
            for name in names:
                found = NAME.fullmatch(name)
                if found is not None and found[2] == suffix:
                    yield int(found[1], 16)

    @property
    def empty(self) -> bool:
        """Nothing was ever written to this store, or nothing is left."""
        return not any(next(self._numbers(suffix), None) for suffix in ("", ".pack", ".journal"))

    def packs(self) -> list[int]:
        """Ids of all packs."""
        return sorted(self._numbers(".pack"))

    def pack_size(self, pack_id: int) -> tuple[int, int]:
        """Bytes of a pack's file, and of what can be records there."""
        with map_errors():
            size = os.stat(self._names.pack(pack_id)).st_size
        return size, size - pack_format.PACK_HEADER

    def records(self, pack_id: int) -> Iterator[Blob]:
        """The blobs of a pack whose record has a whole header. Raises BlobDamaged when the pack has none itself."""
        with map_errors():
            fd = os.open(self._names.pack(pack_id), OPEN)
            try:
                for record in pack_format.walk(fd, pack_format.read_salt(fd, pack_id)):
                    if record.kind != pack_format.BLOB:
                        continue
                    claim = os.pread(fd, record.claim, record.offset + pack_format.RECORD_HEADER)
                    locator = f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}"
                    yield Blob(record.blob_id, locator, record.body, pack_id, record.total, claim)
            finally:
                os.close(fd)

    def files(self) -> Iterator[Blob | Damaged]:
        """The blobs that have a file of their own."""
        for blob_id in self._numbers(""):
            locator = f"f:{blob_id:016x}"
            try:
                with map_errors(committed=locator):
                    fd = os.open(self._names.blob(blob_id), OPEN)
                    try:
                        footer = read_footer(fd, os.fstat(fd).st_size, blob_id, locator)
                    finally:
                        os.close(fd)
            except DriverError as error:
                yield Damaged(locator, str(error))
            else:
                yield Blob(blob_id, locator, footer.shape.total, 0, 0, footer.claim)

    def intact(self, locator: str) -> bool:
        """Whether claim and body of a blob are what was written; reads all of it."""
        try:
            with map_errors(committed=locator):
                return self._record_intact(locator) if locator.startswith(PREFIX) else self._file_intact(locator)
        except DriverError:
            return False

    def _record_intact(self, locator: str) -> bool:
        place = place_of(locator)
        fd = os.open(self._names.pack(place.pack), OPEN)
        try:
            whole = memoryview(read_exactly(fd, place.offset, place.total))
            pack_format.body_of(whole, place.offset, place.blob_id, pack_format.read_salt(fd, place.pack))
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
        """What a file says of its shape, once all of it was read. Raises BlobMissing, BlobDamaged."""
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
        """Ids of all journals, oldest first."""
        return sorted(self._numbers(".journal"))

    def journal(self, journal_id: int) -> Iterator[Decision | None]:
        """The records of a journal, None for one that is damaged."""
        return self._journals.read(journal_id)

    def journal_size(self, journal_id: int) -> int:
        """Bytes of a journal."""
        with map_errors():
            return os.stat(self._names.journal(journal_id)).st_size

    @staticmethod
    def blob_id(locator: str) -> int:
        """The id of the blob at a locator. Raises BlobDamaged for what is none."""
        try:
            return int(locator.rpartition(".")[2] if locator.startswith(PREFIX) else locator.removeprefix("f:"), 16)
        except ValueError:
            raise BlobDamaged(f"{locator!r} is no locator") from None
