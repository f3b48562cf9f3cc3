"""Brings archived versions back to the store of their bucket for as long as somebody asked, and then away again.

While a version is back it is read on the bucket's store, its class still says that it is archived, and what lies in the
archive stays held (`app.index.transactions.placing`). When its time is over, it is that again; it is written anew only
where that cannot be, because the class has another store by now, or a blob was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from app.errors import DomainError, StoreUnavailable
from app.index import restores
from app.index.lock_clock import clock
from app.index.restores import Pending, Restore, note_value
from app.index.rows import Bucket, Version
from app.index.transitions import EITHER, Note
from app.jobs.placing import Pacer, Placer, Settled, Wish
from app.store.events import MARK, RESTORED, Cause, Messages
from app.store.lifecycle import Day
from app.store.store import Store

AT_ONCE = 8
BATCH = 1000
PATIENCE_MS = 30_000
"""Until a version is looked at again that could not be brought back, or away."""


class Restores:
    """`day` is how long a day is, `pace` how many bytes a second are copied at most."""

    def __init__(self, store: Store, day: Day, pace: int, now: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._index = store.index
        self._day = day
        self._now = now
        self._pacer = Pacer(pace)

    async def run_once(self) -> None:
        """Look at all that is to be looked at by now. Raises what the first one raised that could not be done."""
        found = await self._index.restores_due(self._now(), BATCH)
        failed: list[DomainError] = []
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            for done in await asyncio.gather(*map(self._look, some), return_exceptions=True):
                if isinstance(done, DomainError):
                    failed.append(done)
                elif done is not None:
                    raise done
        if failed:
            raise failed[0]

    async def _look(self, pending: Pending) -> None:
        try:
            await self._do(pending)
        except DomainError:
            await self._index.look_later(pending, note_value(self._now() + PATIENCE_MS))
            raise

    async def _do(self, pending: Pending) -> None:
        bucket = await self._index.bucket_of(pending.bucket_id)
        version = bucket and await self._index.version(bucket.id, pending.key, pending.version_id)
        restore = restores.of(version.headers) if version else None
        if not bucket or not version or restore is None:
            await self._index.look_later(pending, "")  # it is gone, or another one by now
        elif not restore.until:
            await self._bring(pending, bucket, version, restore)
        elif restore.until <= self._now():
            await self._take_away(pending, bucket, version)
        else:
            await self._index.look_later(pending, note_value(restore.until))

    async def _bring(self, pending: Pending, bucket: Bucket, version: Version, restore: Restore) -> None:
        target = self._store.of(bucket.store)
        if target.tree is not None:
            raise StoreUnavailable(reason="the bucket is made of plain files by now")
        until = self._day.after(restore.asked, restore.days)
        if until <= self._now():
            until = self._day.after(self._now(), restore.days)
        ends = datetime.fromtimestamp(until // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        told = {"lifecycleRestorationExpiryTime": ends, "lifecycleRestoreStorageClass": version.storage_class}
        event = {"glacierEventData": {"restoreEventData": told}}
        await self._place(pending, bucket, version, target, restore._replace(until=until), event)

    async def _take_away(self, pending: Pending, bucket: Bucket, version: Version) -> None:
        name = self._store.classes.get(version.storage_class, bucket.store)
        await self._place(pending, bucket, version, self._store.of(name), None, {})

    async def _place(
        self,
        pending: Pending,
        bucket: Bucket,
        version: Version,
        target: Store,
        restore: Restore | None,
        event: Mapping[str, object],
    ) -> None:
        headers = restores.with_restore(version.headers, restore)
        note = Note(pending.name, pending.value, "" if restore is None else note_value(restore.until))
        cause = Cause(RESTORED[restore is not None], more=event)
        teller = Messages(bucket, cause, version) if MARK in bucket.settings else None
        placer = Placer(self._store, bucket, target, self._pacer, teller=teller)
        which = (version.key, version.version_id, version.seq, EITHER, version.storage_class)
        wish = Wish(*which, headers, note, keeps=restore is not None)
        try:
            placed = await placer.place([wish])
        except Settled:  # the bucket is to have another store: to be copied there
            placed = {}
        if not placed:  # it changed meanwhile, or cannot be read
            await self._index.look_later(pending, note_value(self._now() + PATIENCE_MS // 10))
