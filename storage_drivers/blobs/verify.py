"""Reads of blobs from the device, past the page cache: for the scrubber.

Cached pages are dropped first, so that the device answers; pages that were not cached before are dropped again
afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.blobs.footer import CHUNK, chunk_check, read_footer
from sluice_s3.storage_drivers.blobs.reader import OPEN
from sluice_s3.storage_drivers.errors import BlobDamaged, DriverError, map_errors
from sluice_s3.storage_drivers.fsutil import close_read, read_exactly
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import RecordLocation


def verify_pack(
    path: str,
    pack: int,
    wanted: Sequence[tuple[RecordLocation, int]],
    take: Callable[[int, Buffer], None],
    errors: dict[int, DriverError],
) -> None:
    """Read some records of a pack, each with a number. Blocks.

    `take` receives a record's number and body, `errors` what is wrong with it.
    """
    try:
        with map_errors(committed=f"pack {pack:x}"):
            fd = os.open(path, OPEN)
    except DriverError as error:
        errors.update({number: error for _, number in wanted})
        return
    try:
        for location, number in wanted:
            try:
                take(number, _reread_record(fd, location))
            except DriverError as error:
                errors[number] = error
    finally:
        close_read(fd)


def _reread_record(fd: int, location: RecordLocation) -> Buffer:
    with map_errors():
        salt = format.read_salt(fd, location.pack)
        with _from_device(fd, location.offset, location.total):
            whole = memoryview(read_exactly(fd, location.offset, location.total))
    return format.parse_record(whole, location.offset, location.blob_id, salt)


def verify_file(path: str, blob_id: int, locator: str) -> Iterator[Buffer]:
    """Yield the body of a file, chunk by chunk. Raises BlobMissing, BlobDamaged; blocks."""
    with map_errors(committed=locator):
        fd = os.open(path, OPEN)
        try:
            footer = read_footer(fd, os.fstat(fd).st_size, blob_id, locator)
            for chunk in range(-(-footer.body // CHUNK)):
                start = chunk * CHUNK
                length = min(CHUNK, footer.body - start)
                with _from_device(fd, start, length):
                    piece = read_exactly(fd, start, length)
                if chunk_check(piece, blob_id) != footer.check(chunk):
                    raise BlobDamaged(f"{locator} is not what was written, in the {length} bytes at {start}")
                yield piece
        finally:
            close_read(fd)


@contextmanager
def _from_device(fd: int, offset: int, length: int) -> Iterator[None]:
    cached = True
    try:
        os.preadv(fd, [bytearray(1)], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        cached = False
    except OSError:  # the mount cannot say
        pass
    _drop(fd, offset, length)
    yield
    if not cached:
        _drop(fd, offset, length)


def _drop(fd: int, offset: int, length: int) -> None:
    try:
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)
    except OSError:
        pass  # then the page cache answers, which is better than nothing


def next_piece(pieces: Iterator[Buffer], take: Callable[[Buffer], None] | None) -> int | None:
    """Pass the next piece to `take`; return its bytes, None at the end."""
    piece = next(pieces, None)
    if piece is None:
        return None
    if take is not None:
        take(piece)
    return len(piece)
