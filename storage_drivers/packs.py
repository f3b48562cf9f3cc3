"""The packs of one store: who writes them, who reads them, what is in them."""

from __future__ import annotations

import os
from collections.abc import Callable

from storage_drivers import pack_format
from storage_drivers.base import Append, PackBook
from storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed, map_errors
from storage_drivers.pack_reader import OPEN, PREFIX, PackReader, place_of
from storage_drivers.pack_writer import PackWriter

SIZE = 256 << 20
"""Bytes at which a pack is sealed and the next one begun."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a closing store waits for its packs; what a stuck mount holds back is the sweep's."""


class Packs:
    """`path` names a pack's file, `sync_entry` makes its directory entry durable (None: a relaxed store)."""

    def __init__(
        self, path: Callable[[int], str], sync_entry: Callable[[int], None] | None, size: int, at: Callable[[str], None]
    ) -> None:
        self._path = path
        self._sync_entry = sync_entry
        self._size = size
        self._at = at
        self._writer: PackWriter | None = None
        self._reader = PackReader(path)
        self.read_now = self._reader.read_now
        self.forget = self._reader.forget

    def open(self, book: PackBook) -> None:
        """Be a writer from now on."""
        self._writer = PackWriter(book, self._path, self._sync_entry, self._size, self._at)

    def close(self) -> None:
        """Write what is queued, seal what is written, close what is read. Blocks."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close(CLOSE_TIMEOUT)
        self._reader.close()

    def append(self, entry: Append) -> None:
        """See `Driver.append`."""
        if self._writer is None:
            raise StoreFailed("the store is closed")
        self._writer.append(entry)

    def read(self, locator: str, offset: int, length: int) -> bytes:
        """Verified bytes of a record; blocks. Raises BlobMissing, BlobDamaged."""
        return self._reader.read(place_of(locator), locator, offset, length)

    def records(self, pack_id: int) -> list[tuple[str, int]]:
        """Locators of all blobs in a pack, live or dead, and the bytes of their bodies; blocks."""
        try:
            with map_errors(committed=f"pack {pack_id:x}"):
                fd = os.open(self._path(pack_id), OPEN)
                try:
                    found = list(pack_format.walk(fd, pack_format.read_salt(fd, pack_id)))
                finally:
                    os.close(fd)
        except (BlobMissing, BlobDamaged):  # discarded meanwhile, or torn before its first record
            return []
        return [
            (f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}", record.body)
            for record in found
            if record.kind == pack_format.BLOB
        ]
