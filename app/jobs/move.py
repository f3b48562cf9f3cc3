"""Moves the data of buckets to another store, while they are read and written (`sluice bucket move`).

What is written since the bucket changed its store lies there already. Every other blob that its rows hold is copied,
but for those that lie on the store of their storage class, and the rows take the copy in one transaction, which queues
the old one for discard as ever. Nothing is kept between two runs: after a crash the rows say what is left. A move ends
when a look at all rows, begun when no request from before the change ran any more, finds nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import orjson

from app.crash import crash_point
from app.errors import CommitUnknown, DomainError
from app.index.moving import Body, Held
from app.index.rows import PIECES, Bucket, Holder, Swap, is_tree
from app.jobs.copying import RECORDS, Copier, Want, all_of
from app.store.place import owner
from app.store.store import Kept, Store

logger = logging.getLogger("sluice.jobs")

REMEMBERED = 100_000
"""Bodies that several rows hold, of which it is known where their copies are."""
PATIENCE = 30.0
"""Seconds until blobs that cannot be read are tried again."""
TOLD = 1.0
"""Seconds between two notes of how far a move has come."""


T = TypeVar("T")


def note_of(bucket_id: int) -> str:
    """Name of the note of the index that says how far a move has come: rows, of how many, bytes, blobs stuck."""
    return f"move:{bucket_id}"


class Mover:
    """Moves all buckets that are to be moved. `oldest` and `now` are as `Garbage` takes them.

    `stale` is how many milliseconds a request may believe that a bucket is where it was.
    """

    def __init__(self, store: Store, oldest: Callable[[], int], now: Callable[[], int], stale: int = 0) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._stale = stale
        self._moves: dict[tuple[int, int], Move] = {}

    async def run_once(self) -> None:
        """Go on with every move. Raises DomainError when one could not; it is tried again."""
        buckets = await self._store.index.moving()
        known, self._moves = self._moves, {}
        for bucket in buckets:
            name = bucket.id, bucket.moved
            self._moves[name] = known.get(name) or Move(self._store, bucket, self._now() + self._stale)
        await all_of(move.run_once(self._oldest()) for move in self._moves.values())


class Move:
    """The move of one bucket, which every request knows of that begins after `seen`."""

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
        self._copier = Copier(store, bucket, self._target)
        self._told = 0.0
        self._rows = self._of = 0

    async def run_once(self, oldest: int) -> None:
        """A pass over all rows, and the end of the move when it was the last."""
        if self._over:
            await self._end()
            return
        last = self._seen < oldest
        if self._clean and not last:
            return  # only requests that began before the bucket changed can still leave something
        if self._copier.stuck and time.monotonic() < self._told + PATIENCE:
            return
        self._rows, (self._of, _) = 0, await self._index.bucket_size(self._bucket.id)
        self._copier.stuck.clear()
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
        # parts before versions, as blobs are handed on: an upload may be completed at any time
        wants = [
            Want(Holder("part", held.first, held.second), held.locator, key, held.first, held.second, held.holders > 1)
            for key, held in await self._index.held_by_parts(self._bucket.id)
            if self._is_elsewhere(held.locator, held.storage_class)
        ]
        await self._move_all(wants)
        clean = not wants
        after = 0
        while rows := await self._index.bodies(self._bucket.id, after):
            after = rows[-1].seq
            wants = []
            for row in rows:
                if row.body.startswith(PIECES):
                    there = await self._move_pieces(row, young=row.seq > until)
                    clean = clean and there
                elif self._is_elsewhere(row.body, row.storage_class):
                    clean = False
                    if row.seq <= until:
                        wants.append(Want(Holder("version", row.seq), row.body, row.key, 0, 0, row.holders > 1))
            await self._move_all(wants)
            self._rows += len(rows)
            await self._tell()
        return clean

    def _is_elsewhere(self, body: str, storage_class: str) -> bool:
        """It is to be moved; not when it lies where its storage class has its store."""
        name = owner(body)
        return name != self._target.name and name != self._store.classes.get(storage_class) and not is_tree(body)

    # multipart objects
    async def _move_pieces(self, row: Body, *, young: bool) -> bool:
        """Move what a multipart object is made of; True when nothing of it lies elsewhere."""
        seq, key, body, _, holders, storage_class = row
        upload = int(body.removeprefix(PIECES))
        held = await self._index.held_by_pieces(upload)
        wants = [
            Want(Holder("piece", upload, one.first, one.second), one.locator, key, upload, one.second, one.holders > 1)
            for one in held
            if self._is_elsewhere(one.locator, storage_class)
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
        kept = await self._copier.copy(list(wants.values()))
        new = None
        if len(kept) == len(wants):
            places = {locator: copy.locator for locator, copy in kept.items()}
            new = await self._commit(self._index.split(seq, self._bucket.id, key, body, places), kept)
            crash_point("move.swapped")
        await self._copier.settle(kept, set(kept) if new else set())
        if new:
            self._remember(body, new, Holder("version", seq))

    # blobs
    async def _move_all(self, wants: Sequence[Want]) -> None:
        for first in range(0, len(wants), RECORDS):
            await self._move_some(wants[first : first + RECORDS])

    async def _move_some(self, wants: Sequence[Want]) -> None:
        copied = {want.body: want for want in wants if want.body not in self._twins}
        kept = await self._copier.copy(list(copied.values()))
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
        await self._copier.settle(kept, {swap.old for swap, moved in zip(swaps, done, strict=True) if moved})

    def _remember(self, old: str, new: str, holder: Holder) -> None:
        if len(self._twins) < REMEMBERED:
            self._twins[old] = new, holder

    async def _commit(self, change: Awaitable[T], kept: dict[str, Kept]) -> T:
        try:
            return await change
        except CommitUnknown:
            raise  # the sweep asks the index what became of them
        except DomainError:
            await self._copier.settle(kept, set())
            raise

    async def _tell(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or now >= self._told + TOLD:
            self._told = now
            told = {"rows": self._rows, "of": self._of, "bytes": self._copier.bytes, "stuck": len(self._copier.stuck)}
            await self._index.set_note(note_of(self._bucket.id), orjson.dumps(told).decode())
