"""Moves the data of buckets to another store, while they are read and written (`sluice bucket move`).

What is written since the bucket changed its store lies there already. Every other blob that its rows hold is copied,
and the rows take the copy in one transaction, which queues the old one for discard as ever. Nothing is kept between two
runs: after a crash the rows say what is left. A move ends when a look at all rows, begun when no request from before
the change ran any more, finds nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import orjson

from app.crash import crash_point
from app.errors import CommitUnknown, DomainError
from app.index.moving import Body, Held
from app.index.rows import PIECES, Bucket, Holder, Swap, is_tree
from app.store import claims
from app.store.calls import driver_calls, translated
from app.store.place import owner
from app.store.store import Kept, Store
from storage_drivers.base import Buffer
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError

logger = logging.getLogger("sluice.jobs")

RECORDS = 64
"""Blobs whose rows are rewritten in one transaction."""
FILES = 4
"""Larger ones that are copied at a time."""
REMEMBERED = 100_000
"""Bodies that several rows hold, of which it is known where their copies are."""
PATIENCE = 30.0
"""Seconds until blobs that cannot be read are tried again."""
TOLD = 1.0
"""Seconds between two notes of how far a move has come."""


T = TypeVar("T")


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

    def __init__(self, pieces: Sequence[Buffer], rest: AsyncIterator[int] | None, arrived: list[Buffer]) -> None:
        self._pieces = list(pieces)
        self._rest = rest
        self._arrived = arrived
        self.size: int | None = None if rest is not None else sum(map(len, pieces))
        self.count = 0
        """Bytes that were written."""

    async def read(self) -> Buffer:
        """The next piece."""
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


def note_of(bucket_id: int) -> str:
    """Name of the note of the index that says how far a move has come: rows, of how many, bytes, blobs stuck."""
    return f"move:{bucket_id}"


async def _all(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of them, also when one fails; then raise what the first one did."""
    for done in await asyncio.gather(*calls, return_exceptions=True):
        if done is not None:
            raise done


class Mover:
    """Moves all buckets that are to be moved. `oldest` and `now` are as `Garbage` takes them."""

    def __init__(self, store: Store, oldest: Callable[[], int], now: Callable[[], int]) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._moves: dict[tuple[int, int], Move] = {}

    async def run_once(self) -> None:
        """Go on with every move. Raises DomainError when one could not; it is tried again."""
        buckets = await self._store.index.moving()
        known, self._moves = self._moves, {}
        for bucket in buckets:
            name = bucket.id, bucket.moved
            self._moves[name] = known.get(name) or Move(self._store, bucket, self._now())
        await _all(move.run_once(self._oldest()) for move in self._moves.values())


class Move:
    """The move of one bucket, first seen at `seen`."""

    def __init__(self, store: Store, bucket: Bucket, seen: int) -> None:
        self._store = store
        self._index = store.index
        self._bucket = bucket
        self._target = store.of(bucket.store)
        self._seen = seen
        self._clean = False
        """The last pass found nothing that is left."""
        self._over = False
        """Nothing can be left."""
        self._twins: dict[str, tuple[str, Holder]] = {}
        self._stuck: set[str] = set()
        self._told = 0.0
        self._rows = self._bytes = self._of = 0

    async def run_once(self, oldest: int) -> None:
        """A pass over all rows, and the end of the move when it was the last."""
        if self._over:
            await self._end()
            return
        last = self._seen < oldest
        if self._clean and not last:
            return  # only requests that began before the bucket changed can still leave something
        if self._stuck and time.monotonic() < self._told + PATIENCE:
            return
        self._rows, (self._of, _) = 0, await self._index.bucket_size(self._bucket.id)
        self._stuck.clear()
        self._clean = await self._pass()
        await self._tell(always=True)
        self._over = self._clean and last
        if self._over:
            await self._end()

    async def _end(self) -> None:
        await self._index.make_durable()
        if await self._index.end_move(self._bucket):
            crash_point("move.ended")
            logger.info("bucket %s: all of it is on store %s", self._bucket.name, self._bucket.store)

    async def _pass(self) -> bool:
        """Move what lies elsewhere; True when there was nothing."""
        # a younger row is told of by the journals of neither store yet: its blob's claim may be needed
        until = await self._index.watermark(self._target.name)
        clean = True
        after = 0
        while rows := await self._index.bodies(self._bucket.id, after):
            after = rows[-1].seq
            wants = []
            for row in rows:
                if row.body.startswith(PIECES):
                    there = await self._move_pieces(row, young=row.seq > until)
                    clean = clean and there
                elif self._is_elsewhere(row.body):
                    clean = False
                    if row.seq <= until:
                        wants.append(Want(Holder("version", row.seq), row.body, row.key, 0, 0, row.holders > 1))
            await self._move_all(wants)
            self._rows += len(rows)
            await self._tell()
        wants = [
            Want(Holder("part", held.first, held.second), held.locator, key, held.first, held.second, held.holders > 1)
            for key, held in await self._index.held_by_parts(self._bucket.id)
            if self._is_elsewhere(held.locator)
        ]
        await self._move_all(wants)
        return clean and not wants

    def _is_elsewhere(self, body: str) -> bool:
        return not is_tree(body) and owner(body) != self._target.name

    # multipart objects
    async def _move_pieces(self, row: Body, *, young: bool) -> bool:
        """Move what a multipart object is made of; True when nothing of it lies elsewhere."""
        seq, key, body, _, holders = row
        upload = int(body.removeprefix(PIECES))
        held = await self._index.held_by_pieces(upload)
        wants = [
            Want(Holder("piece", upload, one.first, one.second), one.locator, key, upload, one.second, one.holders > 1)
            for one in held
            if self._is_elsewhere(one.locator)
        ]
        if not wants:
            return True
        if young:
            return False
        if holders == 1:
            await self._move_all(wants)
        elif (twin := self._twins.get(body)) is not None:
            await self._index.swap([Swap(Holder("version", seq), body, *twin)])
        else:
            await self._split(seq, key, body, held)
        return False

    async def _split(self, seq: int, key: str, body: str, held: Sequence[Held]) -> None:
        """Others hold the same pieces, maybe in buckets that stay: this version gets its own."""
        upload = int(body.removeprefix(PIECES))
        wants = {one.locator: Want(Holder("version", seq), one.locator, key, upload, one.second, False) for one in held}
        kept = await self._copy(list(wants.values()))
        new = None
        if len(kept) == len(wants):
            places = {locator: copy.locator for locator, copy in kept.items()}
            new = await self._commit(self._index.split(seq, self._bucket.id, key, body, places), kept)
            crash_point("move.swapped")
        await self._settle(kept, set(kept) if new else set())
        if new:
            self._remember(body, new, Holder("version", seq))

    # blobs
    async def _move_all(self, wants: Sequence[Want]) -> None:
        for first in range(0, len(wants), RECORDS):
            await self._move_some(wants[first : first + RECORDS])

    async def _move_some(self, wants: Sequence[Want]) -> None:
        kept = await self._copy(list({want.body: want for want in wants if want.body not in self._twins}.values()))
        crash_point("move.copied")
        swaps: list[Swap] = []
        first: dict[str, Holder] = {}
        for want in wants:
            if want.body in kept:
                twin = first.get(want.body)
                first.setdefault(want.body, want.holder)
                swaps.append(Swap(want.holder, want.body, kept[want.body].locator, twin))
            elif want.body in self._twins:
                swaps.append(Swap(want.holder, want.body, *self._twins[want.body]))
        if not swaps:
            return
        done = await self._commit(self._index.swap(swaps), kept)
        crash_point("move.swapped")
        shared = {want.body for want in wants if want.shared}
        for swap, moved in zip(swaps, done, strict=True):
            if moved and swap.old in shared:
                self._remember(swap.old, swap.new, swap.holder)
            elif not moved:
                self._twins.pop(swap.old, None)
        await self._settle(kept, {swap.old for swap, moved in zip(swaps, done, strict=True) if moved})

    def _remember(self, old: str, new: str, holder: Holder) -> None:
        if len(self._twins) < REMEMBERED:
            self._twins[old] = new, holder

    async def _commit(self, change: Awaitable[T], kept: dict[str, Kept]) -> T:
        try:
            return await change
        except CommitUnknown:
            raise  # the sweep asks the index what became of them
        except DomainError:
            await self._settle(kept, set())
            raise

    async def _settle(self, kept: dict[str, Kept], held: set[str]) -> None:
        for old, copy in kept.items():
            if old in held:
                await self._target.settle(copy)
            else:
                await self._target.drop(copy)

    # copying
    async def _copy(self, wants: Sequence[Want]) -> dict[str, Kept]:
        """Copies of the blobs, by where they were; those that cannot be read are left out. Raises DomainError."""
        kept: dict[str, Kept] = {}
        try:
            packed: list[Want] = []
            files: list[Want] = []
            for want in wants:
                source = self._store.at(want.body)
                (files if source.driver.packed(want.body) is None else packed).append(want)
            for name, some in groupby(sorted(packed, key=lambda want: want.body), lambda want: owner(want.body)):
                await self._copy_records(self._store.of(name), list(some), kept)
            for first in range(0, len(files), FILES):
                await _all(self._copy_file(want, kept) for want in files[first : first + FILES])
        except BaseException:
            await self._settle(kept, set())
            raise
        return kept

    async def _copy_records(self, source: Store, wants: Sequence[Want], kept: dict[str, Kept]) -> None:
        bodies: dict[int, bytes] = {}
        with driver_calls():
            errors = await source.driver.reread_records(
                [want.body for want in wants], lambda number, body: bodies.update({number: bytes(body)})
            )
        for number, error in errors.items():
            self._set_aside(wants[number], error)
        await _all(
            self._keep(wants[number], Taken([body], None, []), kept)
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
            await self._keep(want, Taken(begin, pieces if len(begin) > 1 else None, arrived), kept)
        except DriverError as error:
            self._set_aside(want, error)
        except Unreadable as unreadable:
            self._set_aside(want, unreadable.error)

    async def _keep(self, want: Want, source: Taken, kept: dict[str, Kept]) -> None:
        old = self._store.at(want.body).driver.blob_id(want.body)
        claim = claims.of_moved(self._bucket.id, want.key, want.upload, want.part, old)
        kept[want.body] = await self._target.keep(source, lambda: claim)
        self._bytes += source.count

    def _set_aside(self, want: Want, error: DriverError) -> None:
        """A blob that cannot be read stays where it is, and its bucket on its way. Raises what is not the blob's."""
        if not isinstance(error, BlobMissing | BlobDamaged):
            raise translated(error) from error
        logger.error("bucket %s: %s of %s cannot be moved: %s", self._bucket.name, want.body, want.key, error)
        self._stuck.add(want.body)

    async def _tell(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or now >= self._told + TOLD:
            self._told = now
            told = {"rows": self._rows, "of": self._of, "bytes": self._bytes, "stuck": len(self._stuck)}
            await self._index.set_note(note_of(self._bucket.id), orjson.dumps(told).decode())
