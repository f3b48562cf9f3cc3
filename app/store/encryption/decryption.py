"""Decryption of encrypted versions. Only authenticated chunks leave this module."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable

from sluice_s3.app.encryption.chunked_aead import CHUNK, ChunkDecryptor, chunk_range
from sluice_s3.app.encryption.envelope import HEADER, Keys, unwrap
from sluice_s3.app.encryption.scheme import CUSTOMER, Scheme
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import CustomerKeyNeeded, DataDamaged, DomainError, KeyUnavailable
from sluice_s3.app.index.multipart.rows import Extent
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import Buffer

logger = logging.getLogger("sluice.store")

WINDOW = 16 * CHUNK
"""Bytes that are decrypted at a time."""

OnPlaintext = Callable[[Buffer], None]


def keys_of(store: Store, scheme: Scheme, customer: CustomerKey | None) -> Keys:
    """Return the source of a version's keys. Raises CustomerKeyNeeded."""
    if scheme.method != CUSTOMER:
        return store.keyring
    if customer is None:
        raise CustomerKeyNeeded()
    return customer


def decrypt_range(data: bytes, offset: int, length: int, size: int, keys: Keys) -> bytes:
    """Return a range of a body of `size` bytes, whose blob begins with `data`.

    Raises DomainError.
    """
    first, begin, end = chunk_range(offset, length, size)
    chunks = ChunkDecryptor(unwrap(data[:HEADER], keys), size).open(
        first, memoryview(data)[HEADER + begin : HEADER + end]
    )
    return _cut(chunks, first, offset, length)


def ciphertext_needed(offset: int, length: int, size: int) -> int:
    """Return how many of a blob's first bytes `decrypt_range` needs."""
    return HEADER + chunk_range(offset, length, size)[2]


def _cut(chunks: bytes, first: int, offset: int, length: int) -> bytes:
    skipped = offset - first * CHUNK
    if len(chunks) < skipped + length:
        raise DataDamaged(reason="an encrypted body is too short")
    return chunks if not skipped and len(chunks) == length else chunks[skipped : skipped + length]


async def decrypt_stream(
    store: Store, extent: Extent, size: int, keys: Keys, take: OnPlaintext | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of an extent of a blob that holds `size` bytes.

    `take` receives them in the thread that reads.
    """
    await store.quarantine.check(extent.locator)
    blob = _Blob(store, extent.locator, size, keys)
    offset, end = extent.offset, extent.offset + extent.size
    while offset < end:
        count = min((offset // CHUNK) * CHUNK + WINDOW, end) - offset
        yield await blob.read(offset, count, take)
        offset += count


class _Blob:
    """An encrypted blob that is being read.

    The header is read with the first window, or before it if the window begins after the header.
    """

    def __init__(self, store: Store, locator: str, size: int, keys: Keys) -> None:
        self._driver = store.at(locator).driver
        self._keyring = store.keyring
        self._locator = locator
        self._size = size
        self._keys = keys
        self._opener: ChunkDecryptor | None = None

    async def read(self, offset: int, length: int, take: OnPlaintext | None) -> bytes:
        """Return a range. Raises DataDamaged, KeyUnavailable, KeyDisabled, StoreUnavailable."""
        try:
            return await self._read(offset, length, take)
        except KeyUnavailable:
            await self._keyring.read_anew()  # another process may have created the key a moment ago
            return await self._read(offset, length, take)
        except DataDamaged as error:
            logger.error("integrity alarm: %s: %s", self._locator, error)
            raise

    async def _read(self, offset: int, length: int, take: OnPlaintext | None) -> bytes:
        first, begin, end = chunk_range(offset, length, self._size)
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
        self._opener = ChunkDecryptor(unwrap(bytes(data[:HEADER]), self._keys), self._size)
        return b""

    async def _fetch(self, offset: int, length: int, use: Callable[[Buffer], bytes]) -> bytes:
        """Read bytes and pass them to `use` in the thread that read them."""
        fetched = _Fetched(length, use)
        with translate_driver_errors():
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
            except DomainError as error:  # not for the driver to handle
                self.error = error
