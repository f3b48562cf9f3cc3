"""The wait for journals with an object's lock, before it is acknowledged."""

from __future__ import annotations

import asyncio
import time

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index import object_lock
from sluice_s3.app.index.rows import Bucket, CommitResult, Version
from sluice_s3.app.store.store import Store

WAIT_SECONDS = 30.0
"""Seconds. A wakeup makes the writer write at once; without one it writes about every second."""
FIRST_LOOK, LAST_LOOK = 0.005, 0.2
"""Seconds between checks, at first and at last."""


async def wait_until_journaled(
    store: Store, bucket: Bucket, key: str, done: CommitResult | Version, headers: str, patience: float = WAIT_SECONDS
) -> None:
    """Wait until the store's journals contain the version `done` of `key`, if it is locked.

    `store` is the one that the request found; if a move began since, only the journals of the new store will count.
    Raises StoreUnavailable after the patience. Then the version exists with its lock, but only the index records that.
    """
    if object_lock.LOCKED not in headers or object_lock.lock_of(headers) is object_lock.NONE:
        return
    until = time.monotonic() + patience
    told, seq = 0, done.seq
    while told < seq:
        await _told(store, seq, until)
        found = await store.index.bucket(bucket.name)
        if found is not None and found.store != store.name:
            await _told(store.of(found.store), seq, until)
        # A change of tags or storage class gave the version a newer number, so the journal writer passed over it.
        version = await store.index.version(bucket.id, key, done.version_id)
        told, seq = seq, version.seq if version is not None else 0


async def _told(store: Store, seq: int, until: float) -> None:
    pause = FIRST_LOOK
    while await store.index.watermark(store.name) < seq:
        if store.bell is not None:
            store.bell.ring()
        if time.monotonic() > until:
            raise StoreUnavailable(reason="the lock is not written down beside the data")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LAST_LOOK)
