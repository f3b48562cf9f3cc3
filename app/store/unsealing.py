"""Bytes of encrypted versions: only chunks that opened are given out."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable

from app.encryption.chunks import CHUNK, Opener, covering
from app.encryption.customer import CustomerKey
from app.encryption.envelope import HEADER, Keys, unwrap
from app.encryption.scheme import CUSTOMER, Scheme
from app.errors import CustomerKeyNeeded, DataDamaged, DomainError, KeyUnavailable
from app.index.rows import Extent
from app.store.calls import driver_calls
from app.store.store import Store
from storage_drivers.base import Buffer

logger = logging.getLogger("sluice.store")

WINDOW = 16 * CHUNK
"""Bytes that are opened at a time."""

Take = Callable[[Buffer], None]


def keys_of(store: Store, scheme: Scheme, customer: CustomerKey | None) -> Keys:
    """Where the keys of a version are found. Raises CustomerKeyNeeded."""
    if scheme.method != CUSTOMER:
        return store.keyring
    if customer is None:
        raise CustomerKeyNeeded()
    return customer


def opened(data: bytes, offset: int, length: int, size: int, keys: Keys) -> bytes:
    """A range of a body of `size` bytes, whose blob begins with `data`. Raises DomainError."""
    first, begin, end = covering(offset, length, size)
    chunks = Opener(unwrap(data[:HEADER], keys), size).open(first, memoryview(data)[HEADER + begin : HEADER + end])
    return _cut(chunks, first, offset, length)


def needed(offset: int, length: int, size: int) -> int:
    """How many of a blob's first bytes `opened` needs."""
    return HEADER + covering(offset, length, size)[2]


def _cut(chunks: bytes, first: int, offset: int, length: int) -> bytes:
    skipped = offset - first * CHUNK
    if len(chunks) < skipped + length:
        raise DataDamaged(reason="an encrypted body is too short")
    return chunks if not skipped and len(chunks) == length else chunks[skipped : skipped + length]


async def windows(
    store: Store, extent: Extent, size: int, keys: Keys, take: Take | None = None
) -> AsyncGenerator[bytes, None]:
    """The bytes of an extent of a blob that holds `size` bytes. `take` is given them in the thread that reads."""
    await store.quarantine.check(extent.locator)
    blob = _Blob(store, extent.locator, size, keys)
    offset, end = extent.offset, extent.offset + extent.size
    while offset < end:
        count = min((offset // CHUNK) * CHUNK + WINDOW, end) - offset
        yield await blob.read(offset, count, take)
        offset += count


class _Blob:
    """A blob that is read from. Its header is read with the first window, if that begins behind it."""

    def __init__(self, store: Store, locator: str, size: int, keys: Keys) -> None:
        self._driver = store.at(locator).driver
        self._keyring = store.keyring
        self._locator = locator
        self._size = size
        self._keys = keys
        self._opener: Opener | None = None

    async def read(self, offset: int, length: int, take: Take | None) -> bytes:
        """A range. Raises DataDamaged, KeyUnavailable, KeyDisabled, StoreUnavailable."""
        try:
            return await self._read(offset, length, take)
        except KeyUnavailable:
            await self._keyring.read_anew()  # another process may have made it a moment ago
            return await self._read(offset, length, take)
        except DataDamaged as error:
            logger.error("integrity alarm: %s: %s", self._locator, error)
            raise

    async def _read(self, offset: int, length: int, take: Take | None) -> bytes:
        first, begin, end = covering(offset, length, self._size)
        if self._opener is None and begin:
            await self._fetch(0, HEADER, self._open_header)
        with_header = self._opener is None

        def open_window(data: Buffer) -> bytes:
            if with_header:
                self._open_header(data)
            assert self._opener is not None
            chunks = memoryview(data)[HEADER:] if with_header else data
            found = _cut(self._opener.open(first, chunks), first, offset, length)
            if take is not None:
                take(found)
            return found

        start = 0 if with_header else HEADER + begin
        return await self._fetch(start, HEADER + end - start, open_window)

    def _open_header(self, data: Buffer) -> bytes:
        self._opener = Opener(unwrap(bytes(data[:HEADER]), self._keys), self._size)
        return b""

    async def _fetch(self, offset: int, length: int, use: Callable[[Buffer], bytes]) -> bytes:
        """Read, and use what was read in the thread that did."""
        fetched = _Fetched(length, use)
        with driver_calls():
            await self._driver.feed(self._locator, offset, length, fetched.take)
        if fetched.error is not None:
            raise fetched.error
        return fetched.made


class _Fetched:
    def __init__(self, length: int, use: Callable[[Buffer], bytes]) -> None:
        self._length = length
        self._use = use
        self._come = bytearray()
        self.made = b""
        self.error: DomainError | None = None

    def take(self, piece: Buffer) -> None:
        self._come += piece
        if len(self._come) == self._length:
            try:
                self.made = self._use(self._come)
            except DomainError as error:  # not the driver's to judge
                self.error = error
