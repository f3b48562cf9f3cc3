"""The bytes of a pack: a header, then records end to end.

They are written once and never edited. A record is self-describing: its header holds the blob's id, its own place in
the pack, the lengths, and checks of itself and of what follows. Both checks are seeded with a random number of the
pack. So neither a record of another pack nor a body that looks like a record verifies.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from xxhash import xxh3_64, xxh3_64_intdigest

from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.fsutil import read_exactly
from sluice_s3.storage_drivers.types import Buffer

PACK = struct.Struct("<8sHHIQQ24s")
RECORD = struct.Struct("<4sBBHQQIIQ")
CHECK = struct.Struct("<Q")
HEAD = struct.Struct(RECORD.format + "Q")
PACK_MAGIC = b"SLUICEPK"
MAGIC = b"\xf5SlR"
VERSION = 1
PACK_HEADER = PACK.size + CHECK.size
RECORD_HEADER = RECORD.size + CHECK.size

BLOB, JOURNAL_RECORD = 1, 2
"""Kinds of records: a blob with its recovery header, or a journal record."""

WINDOW = 1 << 20
"""Bytes that a walk reads at a time."""


class Record(NamedTuple):
    """The position and the header fields of a record."""

    kind: int
    blob_id: int
    offset: int
    header_size: int
    """Bytes of the recovery header, which follows the record's header; the body comes next."""
    body: int
    check: int

    @property
    def total(self) -> int:
        """Bytes of the whole record."""
        return RECORD_HEADER + self.header_size + self.body


def pack_header(pack_id: int, salt: int) -> bytes:
    """Return the first bytes of a pack."""
    head = PACK.pack(PACK_MAGIC, VERSION, 0, 0, pack_id, salt, b"")
    return head + CHECK.pack(xxh3_64_intdigest(head))


def read_salt(fd: int, pack_id: int) -> int:
    """Return the salt of an open pack.

    Raises BlobDamaged when it is no pack, or another one.
    """
    head = read_exactly(fd, 0, PACK_HEADER)
    magic, version, _, _, found, salt, _ = PACK.unpack_from(head)
    (check,) = CHECK.unpack_from(head, PACK.size)
    if magic != PACK_MAGIC or version != VERSION or check != xxh3_64_intdigest(head[: PACK.size]):
        raise BlobDamaged(f"pack {pack_id:x} has no header")
    if found != pack_id:
        raise BlobDamaged(f"pack {pack_id:x} is in truth pack {found:x}")
    return int(salt)


def record_head(kind: int, blob_id: int, offset: int, header: bytes, body: Buffer, salt: int) -> bytes:
    """Return the header of a record at `offset`."""
    hasher = xxh3_64(header, salt)
    hasher.update(body)
    head = RECORD.pack(MAGIC, kind, 0, 0, blob_id, offset, len(header), len(body), hasher.intdigest())
    return head + CHECK.pack(xxh3_64_intdigest(head, salt))


def parse_head(head: Buffer, offset: int, salt: int) -> Record | None:
    """Parse a record's header; None if it is none at that offset of that pack."""
    magic, kind, _, _, blob_id, position, header_size, body, check = RECORD.unpack_from(head)
    if magic != MAGIC or position != offset:
        return None
    (own,) = CHECK.unpack_from(head, RECORD.size)
    if own != xxh3_64_intdigest(head[: RECORD.size], salt):
        return None
    return Record(kind, blob_id, offset, header_size, body, check)


def parse_record(whole: memoryview, offset: int, blob_id: int, salt: int) -> memoryview:
    """Return the verified body of a whole record.

    Raises BlobDamaged when the bytes are not that blob's.
    """
    # Same checks as `parse_head`, without a Record: every small GET passes here.
    magic, _, _, _, found, position, header_size, body, check, own = HEAD.unpack_from(whole)
    total = RECORD_HEADER + header_size + body
    if magic != MAGIC or found != blob_id or position != offset or total != len(whole):
        raise BlobDamaged(f"there is no record of blob {blob_id:x} at {offset:x}")
    if own != xxh3_64_intdigest(whole[: RECORD.size], salt) or check != xxh3_64_intdigest(whole[RECORD_HEADER:], salt):
        raise BlobDamaged(f"the record of blob {blob_id:x} at {offset:x} is not what was written")
    return whole[RECORD_HEADER + header_size :]


def walk(fd: int, salt: int, offset: int = PACK_HEADER) -> Iterator[Record]:
    """Yield the records of an open pack in order, from `offset` on.

    Torn, punched and damaged ones are skipped. A record is yielded when its header is whole; `read_verified` checks its
    body.
    """
    size = os.fstat(fd).st_size
    window, start = b"", 0
    while offset + RECORD_HEADER <= size:
        if offset < start or offset + RECORD_HEADER > start + len(window):
            window, start = os.pread(fd, WINDOW, offset), offset
            if len(window) < RECORD_HEADER:
                return
        at = offset - start
        record = parse_head(window[at : at + RECORD_HEADER], offset, salt)
        if record is not None and offset + record.total <= size:
            yield record
            offset += record.total
        else:
            offset = _next_magic(fd, offset + 1, size)


def _next_magic(fd: int, offset: int, size: int) -> int:
    """Return the next place where a record could begin; `size` when there is none."""
    while offset < size:
        try:
            offset = max(offset, os.lseek(fd, offset, os.SEEK_DATA))
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return size
        window = os.pread(fd, WINDOW, offset)
        if not window:
            return size
        found = window.find(MAGIC)
        if found >= 0:
            return offset + found
        if len(window) <= len(MAGIC):
            return size
        offset += len(window) - len(MAGIC) + 1
    return size


def read_verified(fd: int, record: Record, salt: int) -> tuple[bytes, bytes] | None:
    """Return recovery header and body of a record; None when they do not verify."""
    try:
        whole = read_exactly(fd, record.offset, record.total)
    except BlobDamaged:
        return None
    rest = whole[RECORD_HEADER:]
    if parse_head(whole, record.offset, salt) != record or xxh3_64_intdigest(rest, salt) != record.check:
        return None
    return rest[: record.header_size], rest[record.header_size :]
