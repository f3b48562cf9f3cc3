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
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import WHOLE
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.index.relocation.queries import BlobRow, BodyRow
from sluice_s3.app.index.relocation.rows import ReferenceSwap, progress_note
from sluice_s3.app.jobs.pacing import Pacer, never_busy
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


class BucketMigrator:
    """Mover of all buckets with a pending move.

    `oldest` and `now` are as in `GarbageCollector`. `stale` is how many milliseconds a request may use a bucket's old
    store. `busy` says whether requests are being answered.
    """

    def __init__(
        self,
        store: Store,
        oldest: Callable[[], int],
        now: Callable[[], int],
        stale: int = 0,
        busy: Callable[[], bool] = never_busy,
    ) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._stale = stale
        self._pacer = Pacer(busy)
        self._moves: dict[tuple[int, int], BucketMigration] = {}

    async def run_once(self) -> bool:
        """Continue every move, and return whether there is one. Raises DomainError when one fails."""
        buckets = await self._store.index.moving()
        previous, self._moves = self._moves, {}
        for bucket in buckets:
            move_id = bucket.id, bucket.moved
            self._moves[move_id] = previous.get(move_id) or BucketMigration(
                self._store, bucket, self._now() + self._stale, self._pacer
            )
        await gather_all(move.run_once(self._oldest()) for move in self._moves.values())
        return bool(buckets)


class BucketMigration:
    """The move of one bucket, known to every request that begins after `visible_since`."""

    def __init__(self, store: Store, bucket: Bucket, visible_since: int, pacer: Pacer) -> None:
        self._store = store
        self._index = store.index
        self._bucket = bucket
        self._target = store.of(bucket.store)
        self._visible_since = visible_since
        self._is_journaled = False
        """The target's journals contain the bucket as it was when the move began, or later. No pass of an earlier move
        changes it by then, since its swaps are refused."""
        self._found_nothing = False
        """The last pass found nothing left."""
        self._is_finished = False
        """Nothing can be left."""
        self._cached_copies: dict[str, tuple[str, BlobReference]] = {}
        self._copier = BlobCopier(store, bucket, self._target, pacer)
        self._reported_at = 0.0
        self._rows = self._total_rows = 0

    async def run_once(self, oldest: int) -> None:
        """Make a pass over all rows, and end the move if it was the last."""
        if self._is_finished:
            await self._finish()
            return
        # The header of a copy names only the blob that it replaces, and that one may be a copy of a cancelled move: a
        # journal must name it before it goes.
        self._is_journaled = self._is_journaled or await self._has_snapshot()
        if not self._is_journaled:
            await self._record_progress()  # that of an earlier move is over
            return
        is_last = self._visible_since < oldest
        if self._found_nothing and not is_last:
            return  # only requests that began before the change can still leave something
        if self._copier.stuck and time.monotonic() < self._reported_at + RETRY_SECONDS:
            return
        self._rows, (self._total_rows, _) = 0, await self._index.bucket_size(self._bucket.id)
        self._copier.stuck.clear()
        self._found_nothing = await self._scan_rows()
        await self._record_progress(always=True)
        self._is_finished = self._found_nothing and is_last
        if self._is_finished:
            await self._finish()

    async def _has_snapshot(self) -> bool:
        """Return whether the target's journals have a complete snapshot that began after the move."""
        journals = await self._index.journals(self._target.name)
        return any(journal.snapshot == WHOLE and journal.id > self._bucket.moved for journal in journals)

    async def _finish(self) -> None:
        await self._index.make_durable()
        if await self._index.end_move(self._bucket):
            crash_point("move.ended")
            logger.info("bucket %s: all of it is on store %s", self._bucket.name, self._bucket.store)

    async def _scan_rows(self) -> bool:
        """Move blobs that are on other stores; return whether there were none."""
        # The journals of neither store have a newer row yet, so its blob's recovery header may be needed.
        journaled_until = await self._index.watermark(self._target.name)
        # parts before versions, the direction in which blobs pass: an upload may be completed at any time
        requests = [
            CopyRequest(
                BlobReference("part", blob.first, blob.second),
                blob.locator,
                key,
                blob.first,
                blob.second,
                blob.holders > 1,
            )
            for key, blob in await self._index.find_part_blobs(self._bucket.id)
            if self._is_elsewhere(blob.locator, blob.storage_class)
        ]
        await self._move_all(requests)
        nothing_left = not requests
        after = 0
        while rows := await self._index.bodies(self._bucket.id, after):
            if await self._is_cancelled():
                return False
            after = rows[-1].seq
            requests = []
            for row in rows:
                if row.body.startswith(PIECES):
                    is_complete = await self._move_pieces(row, unjournaled=row.seq > journaled_until)
                    nothing_left = nothing_left and is_complete
                elif self._is_elsewhere(row.body, row.storage_class):
                    nothing_left = False
                    if row.seq <= journaled_until:
                        requests.append(
                            CopyRequest(BlobReference("version", row.seq), row.body, row.key, 0, 0, row.holders > 1)
                        )
            await self._move_all(requests)
            self._rows += len(rows)
            await self._record_progress()
        return nothing_left

    async def _is_cancelled(self) -> bool:
        found = await self._index.bucket_of(self._bucket.id)
        return found is None or found.moved != self._bucket.moved

    def _is_elsewhere(self, body: str, storage_class: str) -> bool:
        """Return whether a body must move.

        It stays if it lies on the store of its storage class.
        """
        name = store_of_locator(body)
        return name != self._target.name and name != self._store.classes.get(storage_class) and not is_plain_file(body)

    # multipart objects
    async def _move_pieces(self, row: BodyRow, *, unjournaled: bool) -> bool:
        """Move the pieces of a multipart object; return whether none is on another store."""
        seq, key, body, _, holders, storage_class = row
        upload = int(body.removeprefix(PIECES))
        blobs = await self._index.find_piece_blobs(upload)
        requests = [
            CopyRequest(
                BlobReference("piece", upload, blob.first, blob.second),
                blob.locator,
                key,
                upload,
                blob.second,
                blob.holders > 1,
            )
            for blob in blobs
            if self._is_elsewhere(blob.locator, storage_class)
        ]
        if not requests:
            return True
        if unjournaled:
            return False
        if holders == 1:
            await self._move_all(requests)
        elif (copy := self._cached_copies.get(body)) is not None:
            await self._index.swap(self._bucket, [ReferenceSwap(BlobReference("version", seq), body, *copy)])
        else:
            await self._unshare(seq, key, body, blobs)
        return False

    async def _unshare(self, seq: int, key: str, body: str, blobs: Sequence[BlobRow]) -> None:
        """Make copies of pieces for this version alone.

        Other versions with the same pieces may be in buckets that stay.
        """
        upload = int(body.removeprefix(PIECES))
        requests = {
            blob.locator: CopyRequest(BlobReference("version", seq), blob.locator, key, upload, blob.second, False)
            for blob in blobs
        }
        copies = await self._copier.copy(list(requests.values()))
        new = None
        if len(copies) == len(requests):
            locators = {locator: copy.locator for locator, copy in copies.items()}
            new = await self._commit(self._index.split(self._bucket, seq, key, body, locators), copies)
            crash_point("move.swapped")
        await self._copier.discard_unused(copies, set(copies) if new else set())
        if new:
            self._cache_copy(body, new, BlobReference("version", seq))

    # blobs
    async def _move_all(self, requests: Sequence[CopyRequest]) -> None:
        for first in range(0, len(requests), RECORDS_PER_BATCH):
            await self._move_batch(requests[first : first + RECORDS_PER_BATCH])

    async def _move_batch(self, requests: Sequence[CopyRequest]) -> None:
        to_copy = {request.body: request for request in requests if request.body not in self._cached_copies}
        copies = await self._copier.copy(list(to_copy.values()))
        crash_point("move.copied")
        swaps: list[ReferenceSwap] = []
        first_holder: dict[str, BlobReference] = {}
        for request in requests:
            if request.body in copies:
                existing_copy = first_holder.get(request.body)
                first_holder.setdefault(request.body, request.holder)
                swaps.append(ReferenceSwap(request.holder, request.body, copies[request.body].locator, existing_copy))
            elif request.body in self._cached_copies:
                swaps.append(ReferenceSwap(request.holder, request.body, *self._cached_copies[request.body]))
        if not swaps:
            return
        moved_flags = await self._commit(self._index.swap(self._bucket, swaps), copies)
        crash_point("move.swapped")
        shared = {request.body for request in requests if request.shared}
        for swap, moved in zip(swaps, moved_flags, strict=True):
            if moved and swap.old in shared:
                self._cache_copy(swap.old, swap.new, swap.holder)
            elif not moved:
                self._cached_copies.pop(swap.old, None)
        await self._copier.discard_unused(
            copies, {swap.old for swap, moved in zip(swaps, moved_flags, strict=True) if moved}
        )

    def _cache_copy(self, old: str, new: str, holder: BlobReference) -> None:
        if len(self._cached_copies) < MAX_CACHED:
            self._cached_copies[old] = new, holder

    async def _commit(self, change: Awaitable[T], copies: dict[str, StoredBlob]) -> T:
        try:
            return await change
        except CommitUnknown:
            raise  # the orphan sweeper asks the index for the outcome
        except DomainError:
            await self._copier.discard_unused(copies, set())
            raise

    async def _record_progress(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or now >= self._reported_at + REPORT_SECONDS:
            self._reported_at = now
            progress = {
                "rows": self._rows,
                "of": self._total_rows,
                "bytes": self._copier.bytes,
                "stuck": len(self._copier.stuck),
            }
            await self._index.set_note(progress_note(self._bucket.id), orjson.dumps(progress).decode())
