"""Bytes of a version: one bytes object when small and cached, else file slices."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from time import perf_counter
from typing import Protocol

from sluice_s3.app.encryption.scheme import SEALED, parse_scheme
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import DataDamaged, KeyUnavailable
from sluice_s3.app.index.multipart.rows import PIECES, Extent, Part
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.store.driver_errors import Timings, to_domain_error, translate_driver_errors
from sluice_s3.app.store.encryption.decryption import ciphertext_needed, decrypt_range, decrypt_stream, keys_of
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import Buffer, FileSlice
from sluice_s3.storage_drivers.errors import DriverError

SMALL_BODY_BYTES = 256 * 1024
"""Bytes up to which a body is one bytes object."""
PIECES_AT_ONCE = 256
PIECE_BYTES = 1 << 20
"""Bytes that are copied at a time."""


async def extents(store: Store, version: Version, offset: int, length: int) -> AsyncIterator[Extent]:
    """Yield the extents of `length` bytes at `offset` of a version, in order.

    Raises DataDamaged for a hole.
    """
    if not length:
        return
    if not version.body.startswith(PIECES):
        yield Extent(version.body, offset, length)
        return
    async for extent, _ in _of_pieces(store, version, offset, length):
        yield extent


async def _of_pieces(store: Store, version: Version, offset: int, length: int) -> AsyncIterator[tuple[Extent, int]]:
    """Yield the extents of a body of pieces, each with its whole piece's size."""
    end = offset + length
    while offset < end:
        pieces = await store.index.pieces(version.body, offset, PIECES_AT_ONCE)
        if not pieces:
            raise DataDamaged()
        for piece in pieces:
            skip = offset - piece.start
            if skip < 0 or skip >= piece.size:
                raise DataDamaged()
            count = min(piece.size - skip, end - offset)
            yield Extent(piece.locator, piece.offset + skip, count), piece.size
            offset += count
            if offset >= end:
                return


async def read_body(
    store: Store, version: Version, offset: int, length: int, timings: Timings, customer: CustomerKey | None = None
) -> bytes | BodyStream:
    """Return `length` bytes at `offset` of a version.

    The first slice is open on return, so that damage shows early. `customer` is the customer's key of a version with
    SSE-C. Raises DataDamaged for a committed blob that is missing or short, StoreUnavailable, KeyDisabled,
    KeyUnavailable; SourceGone for a plain file that changed: find the version again.
    """
    if not length:
        return b""
    started = perf_counter()
    try:
        if is_plain_file(version.body):
            read = await store.tree_at(version.body).read(version.body, offset, length)
            return read if isinstance(read, bytes) else BodyStream(*read)
        if SEALED in version.headers:
            return await _opened_body(store, version, offset, length, customer)
        if version.body.startswith(PIECES):
            return await _begun(_slices(store, version, offset, length), length)
        await store.quarantine.check(version.body)
        driver = store.at(version.body).driver
        try:
            if length <= SMALL_BODY_BYTES and (data := driver.try_read(version.body, offset, length)) is not None:
                return data
            first = await driver.read(version.body, offset, length)
        except DriverError as error:
            raise to_domain_error(error) from error
        count = len(first) if isinstance(first, bytes) else first.count
        if count < length:
            return BodyStream(first, _slices(store, version, offset + count, length - count))
        return first if isinstance(first, bytes) else BodyStream(first)
    finally:
        timings["open"] = perf_counter() - started


async def _begun(slices: AsyncGenerator[FileSlice | bytes, None], length: int) -> bytes | BodyStream:
    first = await anext(slices)
    if isinstance(first, bytes) and len(first) == length:
        await slices.aclose()
        return first
    return BodyStream(first, slices)


async def _opened_body(
    store: Store, version: Version, offset: int, length: int, customer: CustomerKey | None
) -> bytes | BodyStream:
    if length <= SMALL_BODY_BYTES and not version.body.startswith(PIECES):
        await store.quarantine.check(version.body)
        with translate_driver_errors():
            data = _try_opened(store, version, offset, length, customer)
        if data is not None:
            return data
    return await _begun(_windows(store, version, offset, length, customer), length)


def _try_opened(store: Store, version: Version, offset: int, length: int, customer: CustomerKey | None) -> bytes | None:
    """Return bytes of an encrypted blob; None when that must wait."""
    keys = keys_of(store, parse_scheme(version.headers), customer)
    # The blob begins with the header, so a small body is read from the start.
    if offset > SMALL_BODY_BYTES:
        return None
    data = store.at(version.body).driver.try_read(version.body, 0, ciphertext_needed(offset, length, version.size))
    if data is None:
        return None
    try:
        return decrypt_range(data, offset, length, version.size, keys)
    except (DataDamaged, KeyUnavailable):
        return None  # the async variant reads again and raises the error


async def _windows(
    store: Store,
    version: Version,
    offset: int,
    length: int,
    customer: CustomerKey | None,
    take: Callable[[Buffer], None] | None = None,
) -> AsyncGenerator[FileSlice | bytes, None]:
    """Yield the bytes of an encrypted version, window by window.

    Its blobs are never shared in part.
    """
    keys = keys_of(store, parse_scheme(version.headers), customer)
    if not length:
        return
    if not version.body.startswith(PIECES):
        async for data in decrypt_stream(store, Extent(version.body, offset, length), version.size, keys, take):
            yield data
        return
    async for extent, size in _of_pieces(store, version, offset, length):
        async for data in decrypt_stream(store, extent, size, keys, take):
            yield data


async def _slices(store: Store, version: Version, offset: int, length: int) -> AsyncGenerator[FileSlice | bytes, None]:
    async for locator, start, size in extents(store, version, offset, length):
        await store.quarantine.check(locator)
        driver = store.at(locator).driver
        end = start + size
        while start < end:
            with translate_driver_errors():
                piece = await driver.read(locator, start, end - start)
            start += len(piece) if isinstance(piece, bytes) else piece.count
            yield piece


class SliceIterator(Protocol):
    """Iterator of the bytes that follow the first slice of a `BodyStream`."""

    async def __anext__(self) -> FileSlice | bytes: ...
    async def aclose(self) -> None:
        """Close what is open."""
        ...


class BodyStream:
    """File slices and bytes of small blobs, in order.

    The first is open already. The owner must close it.
    """

    def __init__(self, first: FileSlice | bytes, rest: SliceIterator | None = None) -> None:
        self._first: FileSlice | bytes | None = first
        self._rest = rest

    @property
    def single(self) -> FileSlice | None:
        """The slice that holds all of the body; None when there are several, or bytes."""
        return self._first if self._rest is None and isinstance(self._first, FileSlice) else None

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> FileSlice | bytes:
        first, self._first = self._first, None
        if first is not None:
            return first
        if self._rest is None:
            raise StopAsyncIteration
        return await self._rest.__anext__()

    async def aclose(self) -> None:
        """Close what was not taken."""
        if isinstance(self._first, FileSlice):
            self._first.release()
        self._first = None
        if self._rest is not None:
            await self._rest.aclose()


class VersionSource:
    """A source of `length` bytes at `offset` of a version, for a copy.

    `take` receives them too.
    """

    def __init__(
        self,
        store: Store,
        version: Version,
        offset: int,
        length: int,
        take: Callable[[Buffer], None] | None = None,
        customer: CustomerKey | None = None,
    ) -> None:
        self.size: int | None = length
        self._store = store
        self._version = version
        self._at = offset
        self._end = offset + length
        self._take = take
        self._customer = customer

    async def read(self) -> Buffer:
        """Return the next piece. Raises DataDamaged, StoreUnavailable."""
        piece = bytearray()
        count = min(PIECE_BYTES, self._end - self._at)
        await feed_bytes(self._store, self._version, self._at, count, piece.extend, self._customer)
        self._at += count
        return piece

    def digest(self, piece: Buffer) -> None:
        """Hash the piece, if hashes are wanted."""
        if self._take is not None:
            self._take(piece)

    def verify(self) -> None:
        """Do nothing: the driver verified the bytes."""


async def feed_bytes(
    store: Store,
    version: Version,
    offset: int,
    length: int,
    take: Callable[[Buffer], None],
    customer: CustomerKey | None = None,
) -> None:
    """Read bytes of a version once and pass them to `take`, in a driver thread.

    They are passed in order. Raises SourceGone for a plain file that changed.
    """
    if is_plain_file(version.body):
        await store.tree_at(version.body).feed(version.body, offset, length, take)
        return
    if SEALED in version.headers:
        async for _ in _windows(store, version, offset, length, customer, take):
            pass
        return
    async for extent in extents(store, version, offset, length):
        await store.quarantine.check(extent.locator)
        with translate_driver_errors():
            await store.at(extent.locator).driver.feed(extent.locator, extent.offset, extent.size, take)


async def bytes_of_parts(store: Store, parts: Sequence[Part]) -> AsyncGenerator[FileSlice | bytes, None]:
    """Yield the bytes of parts in order; each slice is valid until the next one."""
    for part in parts:
        for locator, start, size in part.extents:
            await store.quarantine.check(locator)
            driver = store.at(locator).driver
            end = start + size
            while start < end:
                with translate_driver_errors():
                    piece = await driver.read(locator, start, end - start)
                start += len(piece) if isinstance(piece, bytes) else piece.count
                try:
                    yield piece
                finally:
                    if isinstance(piece, FileSlice):
                        piece.release()
