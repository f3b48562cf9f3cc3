"""The wait for journals with an object's lock, before it is acknowledged."""

from __future__ import annotations

import asyncio
import time

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.objects.rows import CommitResult, Version
from sluice_s3.app.store.store import Store

WAIT_SECONDS = 30.0
"""Seconds. A wakeup makes the writer write at once; without one it writes about every second."""
FIRST_LOOK, LAST_LOOK = 0.005, 0.2
"""Seconds between checks, at first and at last."""


async def wait_until_journaled(
    store: Store,
    bucket: Bucket,
    key: str,
    committed: CommitResult | Version,
    headers: str,
    timeout: float = WAIT_SECONDS,
) -> None:
    """Wait until the store's journals contain the version `committed` of `key`, if it is locked.

    `store` is the one that the request found; if a move began since, only the journals of the new store will count.
    Raises StoreUnavailable after the timeout. Then the version exists with its lock, but only the index records that.
    """
    if object_lock.LOCKED not in headers or object_lock.lock_of(headers) is object_lock.NONE:
        return
    deadline = time.monotonic() + timeout
    journaled, seq = 0, committed.seq
    while journaled < seq:
        await _wait_for_watermark(store, seq, deadline)
        found = await store.index.bucket(bucket.name)
        if found is not None and found.store != store.name:
            await _wait_for_watermark(store.of(found.store), seq, deadline)
        # A change of tags or storage class gave the version a newer number, so the journal writer passed over it.
        version = await store.index.version(bucket.id, key, committed.version_id)
        journaled, seq = seq, version.seq if version is not None else 0


async def _wait_for_watermark(store: Store, seq: int, deadline: float) -> None:
    pause = FIRST_LOOK
    while await store.index.watermark(store.name) < seq:
        if store.journal_wakeup is not None:
            store.journal_wakeup.wake()
        if time.monotonic() > deadline:
            raise StoreUnavailable(reason="the lock is not written down beside the data")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LAST_LOOK)
