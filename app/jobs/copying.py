"""Copies blobs to another store, before rows are told to hold the copies: for moves and for transitions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from app.index.rows import Bucket, Holder
from app.store import claims
from app.store.calls import driver_calls, translated
from app.store.place import owner
from app.store.store import Kept, Store
from storage_drivers.base import Buffer
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError

logger = logging.getLogger("sluice.jobs")

RECORDS = 64
"""Blobs whose rows are rewritten in one transaction, and records that are read at a time."""
BYTES = 4 << 20
"""Bytes of records that are held at a time: an object may have 10,000 parts of some 100 KiB."""
FILES = 4
"""Larger ones that are copied at a time."""

Pace = Callable[[int], Awaitable[None]]
"""Told of bytes that were written; returns when more may be."""


class Unreadable(Exception):
    """A blob cannot be read where it lies."""

    def __init__(self, error: DriverError) -> None:
        super().__init__()
        self.error = error


class Want(NamedTuple):
    """A row that holds a blob elsewhere."""

    holder: Holder
    body: str
    key: str
    upload: int
    part: int
    shared: bool


class Taken:
    """A source of bytes that come from another store; `size` is known when they are few."""

    def __init__(
        self,
        pieces: Sequence[Buffer],
        rest: AsyncIterator[int] | None,
        arrived: list[Buffer],
        pace: Pace | None = None,
    ) -> None:
        self._pieces = list(pieces)
        self._rest = rest
        self._arrived = arrived
        self._pace = pace
        self.size: int | None = None if rest is not None else sum(map(len, pieces))
        self.count = 0
        """Bytes that were written."""

    async def read(self) -> Buffer:
        """The next piece."""
        piece = await self._next()
        if self._pace is not None and piece:
            await self._pace(len(piece))
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
        """No hash is needed: it was verified when it was read."""
        self.count += len(piece)

    def verify(self) -> None:
        """See `digest`."""


async def all_of(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of them, also when one fails; then raise what the first one did."""
    for done in await asyncio.gather(*calls, return_exceptions=True):
        if done is not None:
            raise done


def _groups(source: Store, wants: Iterable[Want]) -> Iterator[list[Want]]:
    """Records that are held at a time; a larger one alone."""
    group: list[Want] = []
    size = 0
    for want in wants:
        packed = source.driver.packed(want.body)
        total = packed[1] if packed is not None else 0
        if group and (len(group) >= RECORDS or size + total > BYTES):
            yield group
            group, size = [], 0
        group.append(want)
        size += total
    if group:
        yield group


class Copier:
    """Copies blobs of one bucket's rows to the store `target`."""

    def __init__(self, store: Store, bucket: Bucket, target: Store, pace: Pace | None = None) -> None:
        self._store = store
        self._bucket = bucket
        self._target = target
        self._pace = pace
        self.stuck: set[str] = set()
        """Where blobs are that could not be read."""
        self.bytes = 0
        """How many were copied."""

    async def copy(self, wants: Sequence[Want]) -> dict[str, Kept]:
        """Copies of the blobs, by where they were; those that cannot be read are left out. Raises DomainError.

        Whoever has them calls `settle`.
        """
        kept: dict[str, Kept] = {}
        try:
            packed: list[Want] = []
            files: list[Want] = []
            for want in wants:
                source = self._store.at(want.body)
                (files if source.driver.packed(want.body) is None else packed).append(want)
            for name, some in groupby(sorted(packed, key=lambda want: want.body), lambda want: owner(want.body)):
                for group in _groups(self._store.of(name), some):
                    await self._copy_records(self._store.of(name), group, kept)
            for first in range(0, len(files), FILES):
                await all_of(self._copy_file(want, kept) for want in files[first : first + FILES])
        except BaseException:
            await self.settle(kept, set())
            raise
        return kept

    async def settle(self, kept: dict[str, Kept], held: set[str]) -> None:
        """Rows hold the copies of those at `held`, and none will hold the others."""
        for old, copy in kept.items():
            if old in held:
                await self._target.settle(copy)
            else:
                await self._target.drop(copy)

    async def _copy_records(self, source: Store, wants: Sequence[Want], kept: dict[str, Kept]) -> None:
        bodies: dict[int, bytes] = {}
        with driver_calls():
            errors = await source.driver.reread_records(
                [want.body for want in wants], lambda number, body: bodies.update({number: bytes(body)})
            )
        for number, error in errors.items():
            self._set_aside(wants[number], error)
        await all_of(
            self._keep(wants[number], Taken([body], None, [], self._pace), kept)
            for number, body in bodies.items()
            if number not in errors
        )

    async def _copy_file(self, want: Want, kept: dict[str, Kept]) -> None:
        arrived: list[Buffer] = []
        pieces = self._store.at(want.body).driver.reread(want.body, lambda piece: arrived.append(bytes(piece)))
        try:
            begin = []
            for _ in range(2):
                if await anext(pieces, None) is not None:
                    begin.append(arrived.pop())
            source = Taken(begin, pieces if len(begin) > 1 else None, arrived, self._pace)
            await self._keep(want, source, kept)
        except DriverError as error:
            self._set_aside(want, error)
        except Unreadable as unreadable:
            self._set_aside(want, unreadable.error)

    async def _keep(self, want: Want, source: Taken, kept: dict[str, Kept]) -> None:
        old = self._store.at(want.body).driver.blob_id(want.body)
        claim = claims.of_moved(self._bucket.id, want.key, want.upload, want.part, old)
        kept[want.body] = await self._target.keep(source, lambda: claim)
        self.bytes += source.count

    def _set_aside(self, want: Want, error: DriverError) -> None:
        """A blob that cannot be read stays where it is, and its row on its way. Raises what is not the blob's."""
        if not isinstance(error, BlobMissing | BlobDamaged):
            raise translated(error) from error
        logger.error("bucket %s: %s of %s cannot be moved: %s", self._bucket.name, want.body, want.key, error)
        self.stuck.add(want.body)
