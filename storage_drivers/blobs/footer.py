"""What follows a body in a file of its own: a check of each MiB, its claim, and a trailer that says how long all is.

The body begins the file, so that it goes to a socket as it lies; the trailer ends it, so that a file that was cut or
added to has none. Every check is seeded with the blob's id: what belongs to another blob is not taken for this one's.

A large body may lie in several files, its *parts*, each with such a footer. The first says how many there are and has
the claim; all but the last are of one size. A part's checks are seeded with the blob's id and its own number.
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
VERSION, PARTED = 1, 2
"""Versions of the trailer: of a body that is here whole (and of further parts), and of the first of several parts."""
TRAILER = struct.Struct("<8sHHIIIQQQ")
CHECK = struct.Struct("<Q")
END = TRAILER.size + CHECK.size
TAIL = 4096
"""Bytes read at once from the end of a file: the footer of most."""
SEED = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
"""Between the seeds of a blob's parts: odd and without pattern, so that they are no other blob's ids."""


class Shape(NamedTuple):
    """How the body of a blob lies in files."""

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
        """Where `length` bytes at `offset` begin: the part, the offset in it, and how many of them lie there."""
        if self.parts == 1:
            return 0, offset, length
        part, inside = divmod(offset, self.size)
        if part >= self.parts:  # nothing, right at the end
            part, inside = self.parts - 1, self.last
        return part, inside, min(length, self.size_of(part) - inside)

    def size_of(self, part: int) -> int:
        """Bytes of the body in a part."""
        return self.last if part == self.parts - 1 else self.size


def whole(size: int) -> Shape:
    """A body in one file."""
    return Shape(1, size, size)


def part_id(blob_id: int, part: int) -> int:
    """The id that seeds the checks of a part; that of the blob for the first."""
    return (blob_id + part * STEP) & SEED


class Footer(NamedTuple):
    """A footer that was found whole."""

    body: int
    """Bytes of the body in this file."""
    checks: bytes
    """8 bytes a chunk."""
    claim: bytes
    shape: Shape
    """Of the whole blob when this is its first part."""

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

    def footer(self, claim: bytes, parts: int = 1, last: int = 0) -> bytes:
        """All that is written behind the body; `parts` and `last` as in `Shape` for the first part of several."""
        if self._left < CHUNK:
            self._end_chunk()
        covered = bytes(self._checks) + claim
        chunks = len(self._checks) // CHECK.size
        check = xxh3_64_intdigest(covered, self._seed)
        version, several = (PARTED, parts) if parts > 1 else (VERSION, 0)
        trailer = TRAILER.pack(MAGIC, version, several, len(claim), chunks, last, self._seed, self.size, check)
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
    shape: Shape

    @property
    def covered(self) -> int:
        """Bytes between the body and the trailer."""
        return self.chunks * CHECK.size + self.claim


def read_footer(fd: int, size: int, blob_id: int, name: str) -> Footer:
    """The footer of an open file of `size` bytes. Raises BlobDamaged, naming `name`, unless it is whole and fits.

    `blob_id` is the part's own (`part_id`) for a further part of a blob.
    """
    tail = read_exactly(fd, size - min(size, TAIL), min(size, TAIL))
    trailer = parse_trailer(tail[-END:], size, blob_id, name)
    begins = len(tail) - END - trailer.covered
    covered = tail[begins:-END] if begins >= 0 else read_exactly(fd, trailer.body, trailer.covered)
    return parse_footer(covered, trailer, blob_id, name)


def read_shape(fd: int, size: int, blob_id: int, name: str) -> Shape:
    """How a body lies in files, by the trailer of the first alone. Raises BlobDamaged."""
    length = min(size, END)
    return parse_trailer(read_exactly(fd, size - length, length), size, blob_id, name).shape


def parse_trailer(end: bytes, size: int, blob_id: int, name: str) -> Trailer:
    """What the last `END` bytes of a file of `size` bytes say. Raises BlobDamaged, naming `name`."""
    if len(end) < END:
        raise BlobDamaged(f"{name} is cut short")
    magic, version, parts, claim, chunks, last, found, body, check = TRAILER.unpack_from(end)
    (own,) = CHECK.unpack_from(end, TRAILER.size)
    known = magic == MAGIC and version in (VERSION, PARTED)
    if not known or own != xxh3_64_intdigest(end[: TRAILER.size], blob_id & SEED):
        raise BlobDamaged(f"{name} does not end as it was written")
    if found != blob_id & SEED or size != body + chunks * CHECK.size + claim + END or chunks != -(-body // CHUNK):
        raise BlobDamaged(f"{name} is not of the length that was written")
    return Trailer(body, claim, chunks, check, Shape(parts, body, last) if version == PARTED else whole(body))


def parse_footer(covered: bytes, trailer: Trailer, blob_id: int, name: str) -> Footer:
    """The footer whose bytes before the trailer are `covered`. Raises BlobDamaged, naming `name`."""
    if len(covered) != trailer.covered or xxh3_64_intdigest(covered, blob_id & SEED) != trailer.check:
        raise BlobDamaged(f"{name}: its footer is not what was written")
    checks = trailer.chunks * CHECK.size
    return Footer(trailer.body, covered[:checks], covered[checks:], trailer.shape)
