"""Bytes of a version: at once when they are small and cached, else slices of files for the socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from time import perf_counter
from typing import Protocol

from app.encryption.customer import CustomerKey
from app.encryption.scheme import SEALED, parsed_scheme
from app.errors import DataDamaged, KeyUnavailable, NotNow, StoreUnavailable
from app.index.rows import PIECES, Extent, Part, Version, is_tree
from app.store.calls import Timings, driver_calls
from app.store.store import Store
from app.store.unsealing import keys_of, needed, opened, windows
from storage_drivers.base import Buffer, FileSlice
from storage_drivers.errors import DriverError

SMALL = 256 * 1024
"""Bytes up to which a body is answered as one bytes object."""
PIECES_AT_ONCE = 256
PIECE = 1 << 20
"""Bytes that are copied at a time."""


async def extents(store: Store, version: Version, offset: int, length: int) -> AsyncIterator[Extent]:
    """The extents that hold `length` bytes at `offset` of a version, in order. Raises DataDamaged for a hole."""
    if not length:
        return
    if not version.body.startswith(PIECES):
        yield Extent(version.body, offset, length)
        return
    async for extent, _ in _of_pieces(store, version, offset, length):
        yield extent


async def _of_pieces(store: Store, version: Version, offset: int, length: int) -> AsyncIterator[tuple[Extent, int]]:
    """The extents of a body of pieces, each with the bytes of its whole piece."""
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


async def body(
    store: Store, version: Version, offset: int, length: int, timings: Timings, customer: CustomerKey | None = None
) -> bytes | Slices:
    """`length` bytes at `offset` of a version. The first slice is open when this returns, so that damage shows early.

    `customer` is the key of a version that is encrypted with one of its customer's. Raises DataDamaged for a committed
    blob that is missing or short, StoreUnavailable, KeyDisabled, KeyUnavailable; SourceGone for a plain file that
    others change: find the version again.
    """
    if not length:
        return b""
    started = perf_counter()
    try:
        if is_tree(version.body):
            read = await store.tree_at(version.body).read(version.body, offset, length)
            return read if isinstance(read, bytes) else Slices(*read)
        if SEALED in version.headers:
            return await _opened_body(store, version, offset, length, customer)
        if length <= SMALL and not version.body.startswith(PIECES):
            await store.quarantine.check(version.body)
            with driver_calls():
                data = store.at(version.body).driver.read_now(version.body, offset, length)
            if data is not None:
                return data
        return await _begun(_slices(store, version, offset, length), length)
    finally:
        timings["open"] = perf_counter() - started


async def _begun(slices: AsyncGenerator[FileSlice | bytes, None], length: int) -> bytes | Slices:
    first = await anext(slices)
    if isinstance(first, bytes) and len(first) == length:
        await slices.aclose()
        return first
    return Slices(first, slices)


async def _opened_body(
    store: Store, version: Version, offset: int, length: int, customer: CustomerKey | None
) -> bytes | Slices:
    if length <= SMALL and not version.body.startswith(PIECES):
        await store.quarantine.check(version.body)
        with driver_calls():
            data = _opened_now(store, version, offset, length, customer)
        if data is not None:
            return data
    return await _begun(_windows(store, version, offset, length, customer), length)


def _opened_now(store: Store, version: Version, offset: int, length: int, customer: CustomerKey | None) -> bytes | None:
    """Bytes of an encrypted blob, None when that would have to wait for a device or for a key."""
    keys = keys_of(store, parsed_scheme(version.headers), customer)
    # it begins with the header, and so what is small is read from there
    if offset > SMALL:
        return None
    data = store.at(version.body).driver.read_now(version.body, 0, needed(offset, length, version.size))
    if data is None:
        return None
    try:
        return opened(data, offset, length, version.size, keys)
    except (DataDamaged, KeyUnavailable):
        return None  # the way that may wait reads again, and says what is wrong


async def _windows(
    store: Store,
    version: Version,
    offset: int,
    length: int,
    customer: CustomerKey | None,
    take: Callable[[Buffer], None] | None = None,
) -> AsyncGenerator[FileSlice | bytes, None]:
    """The bytes of an encrypted version, window by window. Its blobs are never shared in part."""
    keys = keys_of(store, parsed_scheme(version.headers), customer)
    if not length:
        return
    if not version.body.startswith(PIECES):
        async for data in windows(store, Extent(version.body, offset, length), version.size, keys, take):
            yield data
        return
    async for extent, size in _of_pieces(store, version, offset, length):
        async for data in windows(store, extent, size, keys, take):
            yield data


def body_now(
    store: Store, version: Version, offset: int, length: int, timings: Timings, customer: CustomerKey | None = None
) -> bytes:
    """The same bytes without an await. Raises NotNow when they are many, in pieces, not cached or damaged."""
    if not length:
        return b""
    if length > SMALL or version.body.startswith(PIECES) or is_tree(version.body):
        raise NotNow
    started = perf_counter()
    try:
        store.quarantine.check_now(version.body)
        if SEALED in version.headers:
            data = _opened_now(store, version, offset, length, customer)
        else:
            data = store.at(version.body).driver.read_now(version.body, offset, length)
    except (StoreUnavailable, DriverError):
        data = None  # the way that may wait reads again, and says what is wrong
    if data is None:
        raise NotNow
    timings["open"] = perf_counter() - started
    return data


def is_record(store: Store, version: Version, length: int) -> bool:
    """Whether these bytes of a version are in one record of a pack."""
    body = version.body
    if not 0 < length <= SMALL or body.startswith(PIECES) or is_tree(body):
        return False
    return store.at(body).driver.packed(body) is not None


async def record(store: Store, version: Version, offset: int, length: int, timings: Timings) -> bytes:
    """Bytes of a version that is a record and is not encrypted. Raises DataDamaged, StoreUnavailable."""
    started = perf_counter()
    await store.quarantine.check(version.body)
    with driver_calls():
        data = await store.at(version.body).driver.read(version.body, offset, length)
    assert isinstance(data, bytes)
    timings["open"] = perf_counter() - started
    return data


async def _slices(store: Store, version: Version, offset: int, length: int) -> AsyncGenerator[FileSlice | bytes, None]:
    async for locator, start, size in extents(store, version, offset, length):
        await store.quarantine.check(locator)
        driver = store.at(locator).driver
        end = start + size
        while start < end:
            with driver_calls():
                piece = await driver.read(locator, start, end - start)
            start += len(piece) if isinstance(piece, bytes) else piece.count
            yield piece


class Rest(Protocol):
    """What `Slices` go on with."""

    async def __anext__(self) -> FileSlice | bytes: ...
    async def aclose(self) -> None: ...


class Slices:
    """Slices of files, and bytes of small blobs, in order; the first is open already. Whoever has it closes it."""

    def __init__(self, first: FileSlice | bytes, rest: Rest) -> None:
        self._first: FileSlice | bytes | None = first
        self._rest = rest

    def __aiter__(self) -> Slices:
        return self

    async def __anext__(self) -> FileSlice | bytes:
        first, self._first = self._first, None
        return first if first is not None else await self._rest.__anext__()

    async def aclose(self) -> None:
        """Give back what was not taken."""
        if isinstance(self._first, FileSlice):
            self._first.release()
        self._first = None
        await self._rest.aclose()


class VersionBytes:
    """A source of `length` bytes at `offset` of a version, to be written elsewhere; `take` is given them too."""

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
        """The next piece. Raises DataDamaged, StoreUnavailable."""
        piece = bytearray()
        count = min(PIECE, self._end - self._at)
        await feed(self._store, self._version, self._at, count, piece.extend, self._customer)
        self._at += count
        return piece

    def digest(self, piece: Buffer) -> None:
        """Hash, if that was asked for."""
        if self._take is not None:
            self._take(piece)

    def verify(self) -> None:
        """What was read was verified by its driver."""


async def feed(
    store: Store,
    version: Version,
    offset: int,
    length: int,
    take: Callable[[Buffer], None],
    customer: CustomerKey | None = None,
) -> None:
    """Read bytes of a version once and give them in order to `take`, in a thread of the driver's.

    Raises SourceGone for a plain file that others change.
    """
    if is_tree(version.body):
        await store.tree_at(version.body).feed(version.body, offset, length, take)
        return
    if SEALED in version.headers:
        async for _ in _windows(store, version, offset, length, customer, take):
            pass
        return
    async for extent in extents(store, version, offset, length):
        await store.quarantine.check(extent.locator)
        with driver_calls():
            await store.at(extent.locator).driver.feed(extent.locator, extent.offset, extent.size, take)


async def bytes_of_parts(store: Store, parts: Sequence[Part]) -> AsyncGenerator[FileSlice | bytes, None]:
    """The bytes of parts, one after the other; each slice is good until the next is asked for."""
    for part in parts:
        for locator, start, size in part.extents:
            await store.quarantine.check(locator)
            driver = store.at(locator).driver
            end = start + size
            while start < end:
                with driver_calls():
                    piece = await driver.read(locator, start, end - start)
                start += len(piece) if isinstance(piece, bytes) else piece.count
                try:
                    yield piece
                finally:
                    if isinstance(piece, FileSlice):
                        piece.release()
