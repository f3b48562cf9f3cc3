"""What follows a body in a file of its own: a check of each MiB, its claim, and a trailer that says how long all is.

The body begins the file, so that it goes to a socket as it lies; the trailer ends it, so that a file that was cut or
added to has none. Every check is seeded with the blob's id: what belongs to another blob is not taken for this one's.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from storage_drivers.base import Buffer
from storage_drivers.errors import BlobDamaged
from storage_drivers.files import read_exactly

CHUNK = 1 << 20
"""Bytes of the body that one check covers; the last one covers the rest."""
MAGIC = b"SLUICEFT"
VERSION = 1
TRAILER = struct.Struct("<8sHHIIIQQQ")
CHECK = struct.Struct("<Q")
END = TRAILER.size + CHECK.size
SEED = (1 << 64) - 1


class Footer(NamedTuple):
    """A footer that was found whole."""

    body: int
    """Bytes of the body."""
    checks: bytes
    """8 bytes a chunk."""
    claim: bytes

    def check(self, chunk: int) -> int:
        """The check of a chunk."""
        found: int = CHECK.unpack_from(self.checks, chunk * CHECK.size)[0]
        return found


class ChunkChecks:
    """Computes the checks of a body that comes in pieces of any size."""

    __slots__ = ("_checks", "_hasher", "_left", "_seed", "size")

    def __init__(self, blob_id: int) -> None:
        self._seed = blob_id & SEED
        self._hasher = xxh3_64(seed=self._seed)
        self._left = CHUNK
        self._checks = bytearray()
        self.size = 0
        """Bytes taken so far."""

    def update(self, piece: Buffer) -> None:
        """Take the next piece."""
        self.size += len(piece)
        if len(piece) < self._left:
            self._hasher.update(piece)
            self._left -= len(piece)
            return
        view = memoryview(piece)
        while view:
            some = view[: self._left]
            self._hasher.update(some)
            self._left -= len(some)
            view = view[len(some) :]
            if not self._left:
                self._end_chunk()

    def _end_chunk(self) -> None:
        self._checks += CHECK.pack(self._hasher.intdigest())
        self._hasher = xxh3_64(seed=self._seed)
        self._left = CHUNK

    def footer(self, claim: bytes) -> bytes:
        """All that is written behind the body."""
        if self._left < CHUNK:
            self._end_chunk()
        covered = bytes(self._checks) + claim
        chunks = len(self._checks) // CHECK.size
        check = xxh3_64_intdigest(covered, self._seed)
        trailer = TRAILER.pack(MAGIC, VERSION, 0, len(claim), chunks, 0, self._seed, self.size, check)
        return covered + trailer + CHECK.pack(xxh3_64_intdigest(trailer, self._seed))


def chunk_check(piece: Buffer, blob_id: int) -> int:
    """The check of one whole chunk."""
    return xxh3_64_intdigest(piece, blob_id & SEED)


class Trailer(NamedTuple):
    """The end of a file: how much of everything there is before it."""

    body: int
    claim: int
    chunks: int
    check: int

    @property
    def covered(self) -> int:
        """Bytes between the body and the trailer."""
        return self.chunks * CHECK.size + self.claim


def read_footer(fd: int, size: int, blob_id: int, name: str) -> Footer:
    """The footer of an open file of `size` bytes. Raises BlobDamaged, naming `name`, unless it is whole and fits."""
    trailer = _read_trailer(fd, size, blob_id, name)
    return parse_footer(read_exactly(fd, trailer.body, trailer.covered), trailer, blob_id, name)


def body_length(fd: int, size: int, blob_id: int, name: str) -> int:
    """Bytes of the body by the trailer alone. Raises BlobDamaged."""
    return _read_trailer(fd, size, blob_id, name).body


def _read_trailer(fd: int, size: int, blob_id: int, name: str) -> Trailer:
    if size < END:
        raise BlobDamaged(f"{name} is cut short")
    return parse_trailer(read_exactly(fd, size - END, END), size, blob_id, name)


def parse_trailer(end: bytes, size: int, blob_id: int, name: str) -> Trailer:
    """What the last `END` bytes of a file of `size` bytes say. Raises BlobDamaged, naming `name`."""
    if len(end) < END:
        raise BlobDamaged(f"{name} is cut short")
    magic, version, _, claim, chunks, _, found, body, check = TRAILER.unpack_from(end)
    (own,) = CHECK.unpack_from(end, TRAILER.size)
    if magic != MAGIC or version != VERSION or own != xxh3_64_intdigest(end[: TRAILER.size], blob_id & SEED):
        raise BlobDamaged(f"{name} does not end as it was written")
    if found != blob_id & SEED or size != body + chunks * CHECK.size + claim + END or chunks != -(-body // CHUNK):
        raise BlobDamaged(f"{name} is not of the length that was written")
    return Trailer(body, claim, chunks, check)


def parse_footer(covered: bytes, trailer: Trailer, blob_id: int, name: str) -> Footer:
    """The footer whose bytes before the trailer are `covered`. Raises BlobDamaged, naming `name`."""
    if len(covered) != trailer.covered or xxh3_64_intdigest(covered, blob_id & SEED) != trailer.check:
        raise BlobDamaged(f"{name}: its footer is not what was written")
    checks = trailer.chunks * CHECK.size
    return Footer(trailer.body, covered[:checks], covered[checks:])
