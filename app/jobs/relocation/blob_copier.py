"""Copies of blobs to another store, before rows reference them: for moves and transitions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.jobs.pacing import Pacer
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.driver_errors import to_domain_error, translate_driver_errors
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store, StoredBlob
from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError

logger = logging.getLogger("sluice.jobs")

RECORDS_PER_BATCH = 64
"""Blobs whose rows are rewritten in one transaction, and records that are read at a time."""
BYTES_PER_BATCH = 4 << 20
"""Bytes of records in memory at a time: an object may have 10,000 parts of some 100 KiB."""
FILES_AT_ONCE = 4
"""Larger blobs that are copied at a time."""


class Unreadable(Exception):
    """A blob is unreadable on its current store."""

    def __init__(self, error: DriverError) -> None:
        super().__init__()
        self.error = error


class CopyRequest(NamedTuple):
    """A row that references a blob on another store."""

    holder: BlobReference
    body: str
    key: str
    upload: int
    part: int
    shared: bool

    @property
    def held(self) -> str:
        """The body in the holder's row: the blob, or the pieces among which it is."""
        return f"{PIECES}{self.upload}" if self.holder.kind == "version" and self.upload else self.body


class StreamedSource:
    """A source of bytes from another store; `size` is known when they are few."""

    def __init__(
        self,
        pieces: Sequence[Buffer],
        rest: AsyncIterator[int] | None,
        arrived: list[Buffer],
        pacer: Pacer | None = None,
    ) -> None:
        self._pieces = list(pieces)
        self._rest = rest
        self._arrived = arrived
        self._pacer = pacer or Pacer()
        self._started = time.monotonic()
        """When the work on a piece began: its reading, and the writing of the one before."""
        self.size: int | None = None if rest is not None else sum(map(len, pieces))
        self.count = 0
        """Bytes that were written."""

    async def read(self) -> Buffer:
        """Return the next piece."""
        piece = await self._next()
        if piece:
            await self._pacer.wait(time.monotonic() - self._started, len(piece))
            self._started = time.monotonic()
        return piece

    async def _next(self) -> Buffer:
        if self._pieces:
            return self._pieces.pop(0)
        try:
            if self._rest is None or await anext(self._rest, None) is None:
                return b""
        except DriverError as error:
            raise Unreadable(error) from error
        return self._arrived.pop()

    def digest(self, piece: Buffer) -> None:
        """Do nothing: the read verified the bytes."""
        self.count += len(piece)

    def verify(self) -> None:
        """Do nothing: see `digest`."""


async def gather_all(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all calls, even if one fails; then raise the first error."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if outcome is not None:
            raise outcome


def _groups(source: Store, requests: Iterable[CopyRequest]) -> Iterator[list[CopyRequest]]:
    """Yield records that fit into memory together; a larger blob alone."""
    group: list[CopyRequest] = []
    size = 0
    for request in requests:
        packed = source.driver.packed(request.body)
        total = packed[1] if packed is not None else 0
        if group and (len(group) >= RECORDS_PER_BATCH or size + total > BYTES_PER_BATCH):
            yield group
            group, size = [], 0
        group.append(request)
        size += total
    if group:
        yield group


class BlobCopier:
    """Copier of one bucket's blobs to the store `target`."""

    def __init__(self, store: Store, bucket: Bucket, target: Store, pacer: Pacer | None = None) -> None:
        self._store = store
        self._bucket = bucket
        self._target = target
        self._pacer = pacer
        self.stuck: set[str] = set()
        """Locators of blobs that could not be read."""
        self.bytes = 0
        """Bytes that were copied."""

    async def copy(self, requests: Sequence[CopyRequest]) -> dict[str, StoredBlob]:
        """Copy the blobs; return the copies by old locator, without unreadable blobs.

        The caller must call `discard_unused`. Raises DomainError.
        """
        copies: dict[str, StoredBlob] = {}
        try:
            packed: list[CopyRequest] = []
            files: list[CopyRequest] = []
            for request in requests:
                source = self._store.at(request.body)
                (files if source.driver.packed(request.body) is None else packed).append(request)
            for name, run in groupby(
                sorted(packed, key=lambda request: request.body), lambda request: store_of_locator(request.body)
            ):
                for group in _groups(self._store.of(name), run):
                    await self._copy_records(self._store.of(name), group, copies)
            for first in range(0, len(files), FILES_AT_ONCE):
                await gather_all(self._copy_file(request, copies) for request in files[first : first + FILES_AT_ONCE])
        except BaseException:
            await self.discard_unused(copies, set())
            raise
        return copies

    async def discard_unused(self, copies: dict[str, StoredBlob], referenced: set[str]) -> None:
        """Note that rows reference the copies of `referenced`, and never will the others."""
        for old, copy in copies.items():
            if old in referenced:
                await self._target.confirm_blob(copy)
            else:
                await self._target.discard_blob(copy)

    async def _copy_records(
        self, source: Store, requests: Sequence[CopyRequest], copies: dict[str, StoredBlob]
    ) -> None:
        bodies: dict[int, bytes] = {}
        with translate_driver_errors():
            errors = await source.driver.reread_records(
                [request.body for request in requests], lambda number, body: bodies.update({number: bytes(body)})
            )
        for number, error in errors.items():
            await self._set_aside(requests[number], error)
        await gather_all(
            self._keep(requests[number], StreamedSource([body], None, [], self._pacer), copies)
            for number, body in bodies.items()
            if number not in errors
        )

    async def _copy_file(self, request: CopyRequest, copies: dict[str, StoredBlob]) -> None:
        arrived: list[Buffer] = []
        pieces = self._store.at(request.body).driver.reread(request.body, lambda piece: arrived.append(bytes(piece)))
        try:
            begin = []
            for _ in range(2):
                if await anext(pieces, None) is not None:
                    begin.append(arrived.pop())
            source = StreamedSource(begin, pieces if len(begin) > 1 else None, arrived, self._pacer)
            await self._keep(request, source, copies)
        except DriverError as error:
            await self._set_aside(request, error)
        except Unreadable as unreadable:
            await self._set_aside(request, unreadable.error)

    async def _keep(self, request: CopyRequest, source: StreamedSource, copies: dict[str, StoredBlob]) -> None:
        old = self._store.at(request.body).driver.blob_id(request.body)
        header = recovery_headers.moved_header(self._bucket.id, request.key, request.upload, request.part, old)
        copies[request.body] = await self._target.write_blob(source, lambda: header)
        self.bytes += source.count

    async def _set_aside(self, request: CopyRequest, error: DriverError) -> None:
        """Note an unreadable blob, which stays where it is, unless its row holds another by now.

        Its row is not moved yet. Raises errors that do not concern the blob.
        """
        if not isinstance(error, BlobMissing | BlobDamaged):
            raise to_domain_error(error) from error
        if not await self._store.index.holds(request.holder, request.held):
            return  # replaced or deleted, and removed during the copy
        logger.error("bucket %s: %s of %s cannot be moved: %s", self._bucket.name, request.body, request.key, error)
        self.stuck.add(request.body)
