"""Comparison of index and store in both directions. Reads everything.

`repair` changes three things only. It puts blobs without a row into quarantine, from which they are removed after
QUARANTINE_DAYS. It corrects the dead bytes of packs. It corrects which version of a key is the newest. Blobs that a
journal names, or that are newer than the index, stay: in those cases the index is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.jobs.journals.live_blobs import find_id, find_journaled
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.errors import BlobMissing, DriverError

ROWS_PER_BATCH = 1000
QUARANTINE_DAYS = 7
"""Days that orphans found by `repair` stay on the disk, where `sluice rebuild` still finds them."""
DAY_MS = 86_400_000


@dataclass(slots=True)
class Report:
    """The findings of fsck.

    `missing` and `short` are integrity alarms: only a backup can repair them.
    """

    rows: int = 0
    blobs: int = 0
    bytes: int = 0
    missing: list[dict[str, object]] = field(default_factory=list)
    short: list[dict[str, object]] = field(default_factory=list)
    miscounted: list[dict[str, object]] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    unaccounted: list[str] = field(default_factory=list)
    """Blobs without a row that a journal names, or whose id the index never drew."""
    repaired: int = 0
    """Orphans that are in quarantine now."""
    dead_bytes: int = 0
    """Bytes of pack records without a row; compaction frees them."""
    uncounted: int = 0
    """Bytes of sealed packs without a row that are not counted dead: written when a process died."""
    overcounted: list[dict[str, int]] = field(default_factory=list)
    """Packs with fewer dead bytes than counted: compaction would delete live records there."""
    newest: list[dict[str, object]] = field(default_factory=list)
    """Keys with no newest version, several, or one that was not created last."""
    recounted: int = 0
    """Packs whose count of dead bytes was corrected."""
    reordered: int = 0
    """Keys whose newest version was corrected."""

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong; orphans in quarantine count as repaired."""
        return not self.damaged and len(self.orphans) == self.repaired

    @property
    def damaged(self) -> bool:
        """Whether something is wrong that removing orphans does not repair."""
        wrong = (self.missing, self.short, self.miscounted, self.overcounted, self.newest, self.unaccounted)
        return any(wrong)

    def add(self, other: Report) -> None:
        """Add the findings of another store."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


async def fsck(store: Store, *, repair: bool, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Compare all rows that name a blob of the store with all its blobs.

    Ids that a live writer has reserved are ignored, so this may run beside a server. `progress` is called with what was
    counted so far, after each thousand blobs and rows.
    """
    report = Report()
    sizes: dict[str, int] = {}
    with translate_driver_errors():
        async for locator, size in store.driver.walk():
            sizes[locator] = size
            report.blobs += 1
            report.bytes += size
            if report.blobs % ROWS_PER_BATCH == 0:
                progress(report)
    progress(report)
    reserved = [ids for writer in await store.index.writers() for ids in await store.index.ranges(writer.incarnation)]
    referenced = await _check_rows(store, sizes, report, progress)
    progress(report)
    for body, stored, true in await store.index.miscounted():
        if (store_of_locator(body) if not body.startswith(PIECES) else next(iter(store.all))) != store.name:
            continue
        report.miscounted.append({"body": body, "kept": stored, "true": true})
    await _check_newest(store, report, repair=repair)
    await _check_packs(store, report, repair=repair)
    for locator in sorted(sizes.keys() - referenced):
        packed = store.driver.packed(locator)
        if packed is not None:  # dead records are no orphans: their space is freed with their pack
            report.dead_bytes += packed[1]
            continue
        blob_id = store.driver.blob_id(locator)
        if any(ids.first <= blob_id <= ids.last for ids in reserved):
            continue
        report.orphans.append(locator)
    report.orphans += await _packs_without_row(store)
    found = await _drop_referenced(store, report.orphans)
    unaccounted = await _unaccounted(store, found)
    report.unaccounted = [locator for locator in found if locator in unaccounted]
    report.orphans = [locator for locator in found if locator not in unaccounted]
    if repair and report.orphans:
        until_ms = clock.now_ms() + QUARANTINE_DAYS * DAY_MS
        for first in range(0, len(report.orphans), ROWS_PER_BATCH):
            await store.index.quarantine_orphans(report.orphans[first : first + ROWS_PER_BATCH], until_ms)
        report.repaired = len(report.orphans)
    return report


async def _unaccounted(store: Store, orphans: list[str]) -> set[str]:
    """Return orphans that a journal names as live or whose id was never drawn."""
    if not orphans:
        return set()
    position = await store.index.position()
    named = await find_journaled(store, orphans)
    return named | {locator for locator in orphans if find_id(store, locator) > position}


async def _check_rows(
    store: Store, sizes: dict[str, int], report: Report, progress: Callable[[Report], None]
) -> set[str]:
    """Return all referenced locators; report those that are missing or short.

    References are those of rows and of the discard queue.
    """
    referenced: set[str] = set()
    async for reference in store.index.references():
        if store_of_locator(reference.locator) != store.name or is_plain_file(reference.locator):
            continue  # an external change of a plain file is no damage: the next scan corrects its row
        referenced.add(reference.locator)
        if reference.kind == "discard":
            continue
        report.rows += 1
        if report.rows % ROWS_PER_BATCH == 0:
            progress(report)
        size = sizes.get(reference.locator, 0)
        if reference.locator in sizes and size >= reference.end:
            continue
        error = await _error(store, reference.locator, reference.end)
        # The blob was written, moved by compaction, or deleted during the walk: in the queue it may be removed already.
        if error is None or not await store.index.find_referenced([reference.locator], queued=False):
            continue
        fact: dict[str, object] = {
            "locator": reference.locator,
            "kind": reference.kind,
            "bucket": reference.bucket,
            "key": reference.key,
        }
        if isinstance(error, BlobMissing):
            report.missing.append(fact)
        else:  # or its pack exists, but does not contain it completely
            report.short.append({**fact, "size": size, "needed": reference.end})
    return referenced


async def _check_newest(store: Store, report: Report, *, repair: bool) -> None:
    """Check that each key of the store's buckets has one newest version: the last created."""
    for bucket_id, key, bucket, name in await store.index.newest_wrong():
        if name != store.name:
            continue
        if repair:
            await store.index.mend_newest(bucket_id, key)
            report.reordered += 1
        else:
            report.newest.append({"bucket": bucket, "key": key})


async def _check_packs(store: Store, report: Report, *, repair: bool) -> None:
    """Compare the counted dead bytes of sealed packs with the unreferenced bytes."""
    overhead = store.driver.capabilities.pack_overhead
    for pack, live in await store.index.live_bytes(store.driver.packed):
        if pack.store != store.name:
            continue
        true = max(pack.size - overhead, 0) - live
        if pack.dead == true:
            continue
        if repair and true >= 0 and await store.index.correct_dead(pack.id, pack.dead, true):
            report.recounted += 1
        elif pack.dead > true:
            report.overcounted.append({"pack": pack.id, "counted": pack.dead, "true": true})
        report.uncounted += max(true - pack.dead, 0)


async def _packs_without_row(store: Store) -> list[str]:
    """Return packs without a row.

    A row exists before its file and is deleted after it.
    """
    with translate_driver_errors():
        found = [pack_id async for pack_id in store.driver.packs()]
    known = {pack.id for pack in await store.index.packs()} if found else set()
    return [store.driver.pack_locator(pack_id) for pack_id in found if pack_id not in known]


async def _drop_referenced(store: Store, orphans: list[str]) -> list[str]:
    """Return the blobs that are still orphans.

    Since the walk a row may have been written, or the garbage collector may have run. The collector removes the blob
    before its queue entry, so a blob without either that still exists is an orphan.
    """
    referenced: set[str] = set()
    for first in range(0, len(orphans), ROWS_PER_BATCH):
        referenced |= await store.index.find_referenced(orphans[first : first + ROWS_PER_BATCH])
    return [
        locator
        for locator in orphans
        if locator not in referenced and not isinstance(await _error(store, locator), BlobMissing)
    ]


async def _error(store: Store, locator: str, end: int = 0) -> DriverError | None:
    """Return the driver's error when the last of a blob's `end` bytes is read, or None.

    With 0 the blob is opened only. A record is read whole.
    """
    last = max(end - 1, 0)
    try:
        opened = await store.driver.read(locator, last, end - last)
        if isinstance(opened, FileSlice):
            opened.release()
    except DriverError as error:
        return error
    return None
