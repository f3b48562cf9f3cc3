"""What locks an object is beside its data before it is acknowledged (DESIGN §4): the journals are waited for."""

from __future__ import annotations

import asyncio
import time

from app.errors import StoreUnavailable
from app.index import locks
from app.index.rows import Bucket, Committed, Version
from app.store.store import Store

PATIENCE = 30.0
"""Seconds: journals are written when the bell is rung, else every second or so, if the store can be written at all."""
FIRST_LOOK, LAST_LOOK = 0.005, 0.2
"""Seconds between looks, at first and at last."""


async def written_down(
    store: Store, bucket: Bucket, key: str, done: Committed | Version, headers: str, patience: float = PATIENCE
) -> None:
    """Return once the journals of a bucket's store tell of the version of `key` that is `done`, if it is locked.

    `store` is the one that the request found; when a move began since, those of the new one soon count alone.
    Raises StoreUnavailable when they do not in time. Then the version is there with its lock, but the index alone knows
    of that.
    """
    if locks.LOCKED not in headers or locks.of(headers) is locks.NONE:
        return
    until = time.monotonic() + patience
    told, seq = 0, done.seq
    while told < seq:
        await _told(store, seq, until)
        found = await store.index.bucket(bucket.name)
        if found is not None and found.store != store.name:
            await _told(store.of(found.store), seq, until)
        # who gave it a newer number meanwhile, with a tag or another class, had the journals pass over it
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
