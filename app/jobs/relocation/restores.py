"""Restores of archived versions: temporary copies on the bucket's store, removed when they expire.

A restored version is read on the bucket's store, its class is still an archive, and its archived blobs stay referenced
(`app.index.relocation.body_relocation`). After expiry it uses those again. It is copied only if that is impossible,
because its class has another store by now or a blob was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sluice_s3.app.errors import DomainError, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.relocation.rows import EITHER, MetaUpdate
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.index.restore.state import DueRestore, RestoreState, restore_meta_value
from sluice_s3.app.jobs.pacing import Pacer, never_busy
from sluice_s3.app.jobs.relocation.versions import Relocation, SettingsChanged, VersionRelocator
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.notifications import MARK, RESTORED, EventContext, S3EventBuilder
from sluice_s3.app.store.store import Store

CONCURRENCY = 8
ROWS_PER_BATCH = 1000
RETRY_MS = 30_000
"""Milliseconds until a version is tried again whose restore or expiry failed."""


class RestoreRunner:
    """The restore job.

    `day` is the length of a day, `pace` limits the bytes copied each second. `busy` says whether requests are being
    answered.
    """

    def __init__(
        self,
        store: Store,
        day: LifecycleCalendar,
        pace: int,
        now: Callable[[], int] = clock.now_ms,
        busy: Callable[[], bool] = never_busy,
    ) -> None:
        self._store = store
        self._index = store.index
        self._day = day
        self._now = now
        self._pacer = Pacer(busy, pace)

    async def run_once(self) -> bool:
        """Handle all versions that are due, and return whether any was. Raises the first error."""
        found = await self._index.restores_due(self._now(), ROWS_PER_BATCH)
        failed: list[DomainError] = []
        for first in range(0, len(found), CONCURRENCY):
            batch = found[first : first + CONCURRENCY]
            for outcome in await asyncio.gather(*map(self._check, batch), return_exceptions=True):
                if isinstance(outcome, DomainError):
                    failed.append(outcome)
                elif outcome is not None:
                    raise outcome
        if failed:
            raise failed[0]
        return bool(found)

    async def _check(self, pending: DueRestore) -> None:
        try:
            await self._do(pending)
        except DomainError:
            await self._index.look_later(pending, restore_meta_value(self._now() + RETRY_MS))
            raise

    async def _do(self, pending: DueRestore) -> None:
        bucket = await self._index.bucket_of(pending.bucket_id)
        version = bucket and await self._index.version(bucket.id, pending.key, pending.version_id)
        restore = restore_state.restore_state(version.headers) if version else None
        if not bucket or not version or restore is None:
            await self._index.look_later(pending, "")  # it is gone or replaced
        elif not restore.until:
            await self._restore(pending, bucket, version, restore)
        elif restore.until <= self._now():
            await self._expire(pending, bucket, version)
        else:
            await self._index.look_later(pending, restore_meta_value(restore.until))

    async def _restore(self, pending: DueRestore, bucket: Bucket, version: Version, restore: RestoreState) -> None:
        target = self._store.of(bucket.store)
        if target.tree is not None:
            raise StoreUnavailable(reason="the bucket is made of plain files by now")
        until = self._day.after(restore.asked, restore.days)
        if until <= self._now():
            until = self._day.after(self._now(), restore.days)
        ends = datetime.fromtimestamp(until // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        restore_data = {"lifecycleRestorationExpiryTime": ends, "lifecycleRestoreStorageClass": version.storage_class}
        event = {"glacierEventData": {"restoreEventData": restore_data}}
        await self._relocate(pending, bucket, version, target, restore._replace(until=until), event)

    async def _expire(self, pending: DueRestore, bucket: Bucket, version: Version) -> None:
        name = self._store.classes.get(version.storage_class, bucket.store)
        await self._relocate(pending, bucket, version, self._store.of(name), None, {})

    async def _relocate(
        self,
        pending: DueRestore,
        bucket: Bucket,
        version: Version,
        target: Store,
        restore: RestoreState | None,
        event: Mapping[str, object],
    ) -> None:
        headers = restore_state.with_restore(version.headers, restore)
        note = MetaUpdate(pending.name, pending.value, "" if restore is None else restore_meta_value(restore.until))
        cause = EventContext(RESTORED[restore is not None], more=event)
        event_builder = S3EventBuilder(bucket, cause, version) if MARK in bucket.settings else None
        relocator = VersionRelocator(self._store, bucket, target, self._pacer, event_builder=event_builder)
        version_fields = (version.key, version.version_id, version.seq, EITHER, version.storage_class)
        relocation = Relocation(*version_fields, headers, note, keeps_archive=restore is not None)
        try:
            new_seqs = await relocator.relocate([relocation])
        except SettingsChanged:  # the bucket's store changes: it will be copied there
            new_seqs = {}
        if not new_seqs:  # it changed meanwhile, or cannot be read
            await self._index.look_later(pending, restore_meta_value(self._now() + RETRY_MS // 10))
