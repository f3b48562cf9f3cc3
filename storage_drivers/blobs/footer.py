"""The footer of a blob's file: chunk checks, recovery header, and a trailer.

The body begins the file, so that it goes to a socket as it lies. The trailer has all lengths. It ends the file, so that
a truncated or extended file has none. Every check is seeded with the blob's id, so that bytes of another blob do not
verify.

A large body may lie in several files, its *parts*, each with such a footer. The first states how many there are and has
the recovery header; all but the last have one size. A part's checks are seeded with the blob's id and its own number.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.fsutil import read_exactly

CHUNK = 1 << 20
"""Bytes of the body in one check; the last check covers the rest."""
MAGIC = b"SLUICEFT"
VERSION, PARTED = 1, 2
"""Versions of the trailer: of a whole body (and of further parts), and of the first of several parts."""
TRAILER = struct.Struct("<8sHHIIIQQQ")
CHECK = struct.Struct("<Q")
END = TRAILER.size + CHECK.size
TAIL = 4096
"""Bytes read from the end of a file in one read: most footers fit."""
SEED = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
"""Difference between the seeds of a blob's parts: odd and without pattern, so that they are no other blob's ids."""


class Shape(NamedTuple):
    """The arrangement of a blob's body in files."""

    parts: int
    size: int
    """Bytes in each part but the last."""
    last: int
    """Bytes in the last one."""

    @property
    def total(self) -> int:
        """Bytes of the body."""
        return (self.parts - 1) * self.size + self.last

    def locate(self, offset: int, length: int) -> tuple[int, int, int]:
        """Return where `length` bytes at `offset` begin: part, offset, and bytes there."""
        if self.parts == 1:
            return 0, offset, length
        part, inside = divmod(offset, self.size)
        if part >= self.parts:  # an empty range, right at the end
            part, inside = self.parts - 1, self.last
        return part, inside, min(length, self.size_of(part) - inside)

    def size_of(self, part: int) -> int:
        """Return the bytes of the body in a part."""
        return self.last if part == self.parts - 1 else self.size


def whole(size: int) -> Shape:
    """Return the shape of a body in one file."""
    return Shape(1, size, size)


def part_id(blob_id: int, part: int) -> int:
    """Return the id that seeds a part's checks; the blob's own for the first."""
    return (blob_id + part * STEP) & SEED


class Footer(NamedTuple):
    """A footer that verified."""

    body: int
    """Bytes of the body in this file."""
    checks: bytes
    """Checks of 8 bytes a chunk."""
    recovery_header: bytes
    shape: Shape
    """The shape of the whole blob if this is its first part."""

    def check(self, chunk: int) -> int:
        """Return the check of a chunk."""
        found: int = CHECK.unpack_from(self.checks, chunk * CHECK.size)[0]
        return found


class ChunkChecks:
    """The checks of a body that arrives in pieces of any size."""

    __slots__ = ("_checks", "_hasher", "_left", "_seed", "size")

    def __init__(self, blob_id: int) -> None:
        self._seed = blob_id & SEED
        self._hasher = xxh3_64(seed=self._seed)
        self._left = CHUNK
        self._checks = bytearray()
        self.size = 0
        """Bytes hashed so far."""

    def update(self, piece: Buffer) -> None:
        """Hash the next piece."""
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

    def footer(self, header: bytes, parts: int = 1, last: int = 0) -> bytes:
        """Return everything that follows the body.

        `parts` and `last` are as in `Shape` for the first part of several.
        """
        if self._left < CHUNK:
            self._end_chunk()
        covered = bytes(self._checks) + header
        chunks = len(self._checks) // CHECK.size
        check = xxh3_64_intdigest(covered, self._seed)
        version, several = (PARTED, parts) if parts > 1 else (VERSION, 0)
        trailer = TRAILER.pack(MAGIC, version, several, len(header), chunks, last, self._seed, self.size, check)
        return covered + trailer + CHECK.pack(xxh3_64_intdigest(trailer, self._seed))


def chunk_check(piece: Buffer, blob_id: int) -> int:
    """Return the check of one whole chunk."""
    return xxh3_64_intdigest(piece, blob_id & SEED)


class Trailer(NamedTuple):
    """The trailer of a file: the lengths of everything before it."""

    body: int
    header_size: int
    chunks: int
    check: int
    shape: Shape

    @property
    def covered(self) -> int:
        """Bytes between the body and the trailer."""
        return self.chunks * CHECK.size + self.header_size


def read_footer(fd: int, size: int, blob_id: int, name: str) -> Footer:
    """Return the footer of an open file of `size` bytes.

    `blob_id` is the part's own (`part_id`) for a further part of a blob. Raises BlobDamaged, naming `name`, unless the
    footer verifies and fits.
    """
    tail = read_exactly(fd, size - min(size, TAIL), min(size, TAIL))
    trailer = parse_trailer(tail[-END:], size, blob_id, name)
    begins = len(tail) - END - trailer.covered
    covered = tail[begins:-END] if begins >= 0 else read_exactly(fd, trailer.body, trailer.covered)
    return parse_footer(covered, trailer, blob_id, name)


def read_shape(fd: int, size: int, blob_id: int, name: str) -> Shape:
    """Return a body's shape from the trailer of its first file alone. Raises BlobDamaged."""
    length = min(size, END)
    return parse_trailer(read_exactly(fd, size - length, length), size, blob_id, name).shape


def parse_trailer(end: bytes, size: int, blob_id: int, name: str) -> Trailer:
    """Parse the last `END` bytes of a file of `size` bytes.

    Raises BlobDamaged, naming `name`.
    """
    if len(end) < END:
        raise BlobDamaged(f"{name} is cut short")
    magic, version, parts, header_size, chunks, last, found, body, check = TRAILER.unpack_from(end)
    (own,) = CHECK.unpack_from(end, TRAILER.size)
    known = magic == MAGIC and version in (VERSION, PARTED)
    if not known or own != xxh3_64_intdigest(end[: TRAILER.size], blob_id & SEED):
        raise BlobDamaged(f"{name} does not end as it was written")
    if found != blob_id & SEED or size != body + chunks * CHECK.size + header_size + END or chunks != -(-body // CHUNK):
        raise BlobDamaged(f"{name} is not of the length that was written")
    return Trailer(body, header_size, chunks, check, Shape(parts, body, last) if version == PARTED else whole(body))


def parse_footer(covered: bytes, trailer: Trailer, blob_id: int, name: str) -> Footer:
    """Parse the footer whose bytes before the trailer are `covered`.

    Raises BlobDamaged, naming `name`.
    """
    if len(covered) != trailer.covered or xxh3_64_intdigest(covered, blob_id & SEED) != trailer.check:
        raise BlobDamaged(f"{name}: its footer is not what was written")
    checks = trailer.chunks * CHECK.size
    return Footer(trailer.body, covered[:checks], covered[checks:], trailer.shape)
