"""Moves of buckets to another store, while they are read and written (`sluice bucket move`).

Writes after the change of the bucket's store go to the new store. Every other referenced blob is copied, unless it lies
on the store of its storage class. One transaction switches the rows to the copy and queues the old blob for discard.
Nothing is stored between two runs: after a crash the rows show what is left. A move ends when a scan of all rows finds
nothing, provided that no request from before the change ran at its start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import orjson

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DomainError
from sluice_s3.app.index.move_queries import BlobRow, BodyRow
from sluice_s3.app.index.rows import PIECES, Bucket, is_plain_file
from sluice_s3.app.index.upkeep_rows import BlobReference, ReferenceSwap
from sluice_s3.app.jobs.relocation.blob_copier import RECORDS_PER_BATCH, BlobCopier, CopyRequest, gather_all
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store, StoredBlob

logger = logging.getLogger("sluice.jobs")

MAX_CACHED = 100_000
"""Bodies with several references whose copies are cached."""
RETRY_SECONDS = 30.0
"""Seconds until unreadable blobs are tried again."""
REPORT_SECONDS = 1.0
"""Seconds between two notes of a move's progress."""


T = TypeVar("T")


def note_of(bucket_id: int) -> str:
    """Return the name of a move's note: rows, of how many, bytes, stuck blobs."""
    return f"move:{bucket_id}"


class BucketMigrator:
    """Mover of all buckets with a pending move.

    `oldest` and `now` are as in `GarbageCollector`. `stale` is how many milliseconds a request may use a bucket's old
    store.
    """

    def __init__(self, store: Store, oldest: Callable[[], int], now: Callable[[], int], stale: int = 0) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._stale = stale
        self._moves: dict[tuple[int, int], BucketMigration] = {}

    async def run_once(self) -> None:
        """Continue every move. Raises DomainError when one fails; it is tried again."""
        buckets = await self._store.index.moving()
        known, self._moves = self._moves, {}
        for bucket in buckets:
            name = bucket.id, bucket.moved
            self._moves[name] = known.get(name) or BucketMigration(self._store, bucket, self._now() + self._stale)
        await gather_all(move.run_once(self._oldest()) for move in self._moves.values())


class BucketMigration:
    """The move of one bucket, known to every request that begins after `seen`."""

    def __init__(self, store: Store, bucket: Bucket, seen: int) -> None:
        self._store = store
        self._index = store.index
        self._bucket = bucket
        self._target = store.of(bucket.store)
        self._seen = seen
        self._clean = False
        """The last pass found nothing left."""
        self._over = False
        """Nothing can be left."""
        self._twins: dict[str, tuple[str, BlobReference]] = {}
        self._copier = BlobCopier(store, bucket, self._target)
        self._reported_at = 0.0
        self._rows = self._of = 0

    async def run_once(self, oldest: int) -> None:
        """Make a pass over all rows, and end the move if it was the last."""
        if self._over:
            await self._end()
            return
        last = self._seen < oldest
        if self._clean and not last:
            return  # only requests that began before the change can still leave something
        if self._copier.stuck and time.monotonic() < self._reported_at + RETRY_SECONDS:
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
        """Move blobs that are on other stores; return whether there were none."""
        # The journals of neither store have a newer row yet, so its blob's recovery header may be needed.
        until = await self._index.watermark(self._target.name)
        # parts before versions, the direction in which blobs pass: an upload may be completed at any time
        wants = [
            CopyRequest(
                BlobReference("part", held.first, held.second),
                held.locator,
                key,
                held.first,
                held.second,
                held.holders > 1,
            )
            for key, held in await self._index.find_part_blobs(self._bucket.id)
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
                        wants.append(
                            CopyRequest(BlobReference("version", row.seq), row.body, row.key, 0, 0, row.holders > 1)
                        )
            await self._move_all(wants)
            self._rows += len(rows)
            await self._tell()
        return clean

    def _is_elsewhere(self, body: str, storage_class: str) -> bool:
        """Return whether a body must move.

        It stays if it lies on the store of its storage class.
        """
        name = store_of_locator(body)
        return name != self._target.name and name != self._store.classes.get(storage_class) and not is_plain_file(body)

    # multipart objects
    async def _move_pieces(self, row: BodyRow, *, young: bool) -> bool:
        """Move the pieces of a multipart object; return whether none is on another store."""
        seq, key, body, _, holders, storage_class = row
        upload = int(body.removeprefix(PIECES))
        held = await self._index.find_piece_blobs(upload)
        wants = [
            CopyRequest(
                BlobReference("piece", upload, one.first, one.second),
                one.locator,
                key,
                upload,
                one.second,
                one.holders > 1,
            )
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
            await self._index.swap([ReferenceSwap(BlobReference("version", seq), body, *twin)])
        else:
            await self._split(seq, key, body, held)
        return False

    async def _split(self, seq: int, key: str, body: str, held: Sequence[BlobRow]) -> None:
        """Make copies of pieces for this version alone.

        Other versions with the same pieces may be in buckets that stay.
        """
        upload = int(body.removeprefix(PIECES))
        wants = {
            one.locator: CopyRequest(BlobReference("version", seq), one.locator, key, upload, one.second, False)
            for one in held
        }
        kept = await self._copier.copy(list(wants.values()))
        new = None
        if len(kept) == len(wants):
            places = {locator: copy.locator for locator, copy in kept.items()}
            new = await self._commit(self._index.split(seq, self._bucket.id, key, body, places), kept)
            crash_point("move.swapped")
        await self._copier.settle(kept, set(kept) if new else set())
        if new:
            self._remember(body, new, BlobReference("version", seq))

    # blobs
    async def _move_all(self, wants: Sequence[CopyRequest]) -> None:
        for first in range(0, len(wants), RECORDS_PER_BATCH):
            await self._move_some(wants[first : first + RECORDS_PER_BATCH])

    async def _move_some(self, wants: Sequence[CopyRequest]) -> None:
        copied = {want.body: want for want in wants if want.body not in self._twins}
        kept = await self._copier.copy(list(copied.values()))
        crash_point("move.copied")
        swaps: list[ReferenceSwap] = []
        first: dict[str, BlobReference] = {}
        for want in wants:
            if want.body in kept:
                twin = first.get(want.body)
                first.setdefault(want.body, want.holder)
                swaps.append(ReferenceSwap(want.holder, want.body, kept[want.body].locator, twin))
            elif want.body in self._twins:
                swaps.append(ReferenceSwap(want.holder, want.body, *self._twins[want.body]))
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

    def _remember(self, old: str, new: str, holder: BlobReference) -> None:
        if len(self._twins) < MAX_CACHED:
            self._twins[old] = new, holder

    async def _commit(self, change: Awaitable[T], kept: dict[str, StoredBlob]) -> T:
        try:
            return await change
        except CommitUnknown:
            raise  # the orphan sweeper asks the index for the outcome
        except DomainError:
            await self._copier.settle(kept, set())
            raise

    async def _tell(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or now >= self._reported_at + REPORT_SECONDS:
            self._reported_at = now
            progress = {
                "rows": self._rows,
                "of": self._of,
                "bytes": self._copier.bytes,
                "stuck": len(self._copier.stuck),
            }
            await self._index.set_note(note_of(self._bucket.id), orjson.dumps(progress).decode())
