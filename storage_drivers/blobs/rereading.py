"""Reads a blob again from its device to see whether it is still what was written: for the scrubber.

What the page cache has of it is dropped first, so that the device answers; what it had not is dropped again after.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from storage_drivers.base import Buffer
from storage_drivers.blobs.footer import CHUNK, chunk_check, read_footer
from storage_drivers.blobs.reader import OPEN
from storage_drivers.errors import BlobDamaged, DriverError, map_errors
from storage_drivers.files import close_read, read_exactly
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import Place


def reread_pack(
    path: str,
    pack: int,
    wanted: Sequence[tuple[Place, int]],
    take: Callable[[int, Buffer], None],
    errors: dict[int, DriverError],
) -> None:
    """Some records of a pack, each with a number by which `take` gets its body or `errors` what is wrong. Blocks."""
    try:
        with map_errors(committed=f"pack {pack:x}"):
            fd = os.open(path, OPEN)
    except DriverError as error:
        errors.update({number: error for _, number in wanted})
        return
    try:
        for place, number in wanted:
            try:
                take(number, _reread_record(fd, place))
            except DriverError as error:
                errors[number] = error
    finally:
        close_read(fd)


def _reread_record(fd: int, place: Place) -> Buffer:
    with map_errors():
        salt = pack_format.read_salt(fd, place.pack)
        with _from_device(fd, place.offset, place.total):
            whole = memoryview(read_exactly(fd, place.offset, place.total))
    return pack_format.body_of(whole, place.offset, place.blob_id, salt)


def reread_file(path: str, blob_id: int, locator: str) -> Iterator[Buffer]:
    """The body of a file, chunk by chunk. Raises BlobMissing, BlobDamaged; blocks."""
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
    """Give the next piece to `take`; its bytes, None at the end."""
    piece = next(pieces, None)
    if piece is None:
        return None
    if take is not None:
        take(piece)
    return len(piece)
