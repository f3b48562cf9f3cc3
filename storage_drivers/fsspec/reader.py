"""Reads of blobs from a remote place, chunk by chunk, each verified by the footer.

Every chunk is checked each time it is read, since the network may damage it too. Footers are cached. All methods block
and may be called in any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator

from sluice_s3.storage_drivers.blobs.footer import CHUNK, END, Footer, chunk_check, parse_footer, parse_trailer
from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient

FIRST_READ_BYTES = CHUNK + (64 << 10)
"""Bytes of the first read of an unknown blob: a small one arrives whole, with its footer."""
LAST_READ_BYTES = 64 << 10
"""Bytes read at the end of a large blob: enough for the checks of 8 GiB."""
CACHED_BYTES = 8 << 20
"""Bytes of footers that are cached."""
MIN_ENTRY_BYTES = 256
"""Minimum bytes that a cached footer counts for."""


class RemoteReader:
    """Reader of one place."""

    def __init__(self, remote: FsspecClient, remembered: int = CACHED_BYTES) -> None:
        self._remote = remote
        self._left = remembered
        self._footers: OrderedDict[int, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: str, blob_id: int, locator: str, offset: int, length: int) -> bytes:
        """Return the first of `length` bytes at `offset`, up to the end of their chunk.

        Raises BlobMissing, BlobDamaged.
        """
        if not length:
            self._remote.size(path, locator)
            return b""
        first = offset // CHUNK
        start = first * CHUNK
        footer = self._known(blob_id)
        piece: bytes | None = None
        if footer is None:
            if first == 0:
                footer, piece = self._begin(path, blob_id, locator)
            else:
                footer = self._inspected(path, blob_id, locator)
        if offset + length > footer.body:
            raise BlobDamaged(f"{locator} ends {offset + length - footer.body} bytes early")
        if piece is None:
            piece = self._remote.read(path, start, min(start + CHUNK, footer.body), locator)
        check(piece, first, footer, blob_id, locator)
        return piece[offset - start : offset - start + length]

    def inspect(self, path: str, blob_id: int, locator: str, size: int | None = None) -> Footer:
        """Read the present footer of a blob; `size` is of its object, if known."""
        if size is None:
            size = self._remote.size(path, locator)
        tail = self._remote.read(path, max(0, size - LAST_READ_BYTES), size, locator)
        trailer = parse_trailer(tail[-END:], size, blob_id, locator)
        if trailer.covered + END <= len(tail):
            covered = tail[len(tail) - END - trailer.covered : len(tail) - END]
        else:
            covered = self._remote.read(path, trailer.body, trailer.body + trailer.covered, locator)
        return parse_footer(covered, trailer, blob_id, locator)

    def chunks(self, path: str, blob_id: int, locator: str) -> Iterator[bytes]:
        """Yield the whole body, chunk by chunk, after reading the footer again."""
        footer = self.inspect(path, blob_id, locator)
        for chunk in range(-(-footer.body // CHUNK)):
            start = chunk * CHUNK
            piece = self._remote.read(path, start, min(start + CHUNK, footer.body), locator)
            check(piece, chunk, footer, blob_id, locator)
            yield piece

    def length(self, path: str, blob_id: int, size: int) -> int:
        """Return the body's bytes from the trailer alone; 0 if it is unreadable.

        `size` is of the object.
        """
        try:
            end = self._remote.read(path, max(0, size - END), size, path)
            return parse_trailer(end, size, blob_id, "").body
        except BlobDamaged:
            return 0

    def _begin(self, path: str, blob_id: int, locator: str) -> tuple[Footer, bytes]:
        """Return footer and first chunk of a blob."""
        head = self._remote.read(path, 0, FIRST_READ_BYTES, locator)
        size = len(head)
        if size < FIRST_READ_BYTES:  # the read has the whole object
            trailer = parse_trailer(head[-END:], size, blob_id, locator)
            footer = parse_footer(head[trailer.body : size - END], trailer, blob_id, locator)
            self._remember(blob_id, footer)
        else:
            footer = self._inspected(path, blob_id, locator)
        return footer, head[: min(CHUNK, footer.body)]

    def _inspected(self, path: str, blob_id: int, locator: str) -> Footer:
        footer = self.inspect(path, blob_id, locator)
        self._remember(blob_id, footer)
        return footer

    def _known(self, blob_id: int) -> Footer | None:
        with self._lock:
            footer = self._footers.get(blob_id)
            if footer is not None:
                self._footers.move_to_end(blob_id)
            return footer

    def _remember(self, blob_id: int, footer: Footer) -> None:
        with self._lock:
            if blob_id in self._footers:
                return
            self._footers[blob_id] = footer._replace(recovery_header=b"")
            self._left -= max(MIN_ENTRY_BYTES, len(footer.checks))
            while self._left < 0:
                _, gone = self._footers.popitem(last=False)
                self._left += max(MIN_ENTRY_BYTES, len(gone.checks))

    def forget(self, blob_id: int) -> None:
        """Forget the footer, so that the next read of the blob reads it again."""
        with self._lock:
            gone = self._footers.pop(blob_id, None)
            if gone is not None:
                self._left += max(MIN_ENTRY_BYTES, len(gone.checks))


def check(piece: bytes, chunk: int, footer: Footer, blob_id: int, locator: str) -> None:
    """Raise BlobDamaged when a chunk differs from what was written."""
    length = min(CHUNK, footer.body - chunk * CHUNK)
    if len(piece) != length or chunk_check(piece, blob_id) != footer.check(chunk):
        raise BlobDamaged(f"{locator} is not what was written, in the {length} bytes at {chunk * CHUNK}")
