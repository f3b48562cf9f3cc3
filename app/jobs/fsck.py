"""Reconciles index and store both ways. Reads everything.

Changes only what `repair` may: it takes away blobs that no row holds, and sets right how dead packs are counted and
which version of a key is the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from app.index.rows import PIECES, is_tree
from app.store.calls import driver_calls
from app.store.place import owner
from app.store.store import Store
from storage_drivers.base import FileSlice
from storage_drivers.errors import BlobMissing, DriverError

BATCH = 1000


@dataclass(slots=True)
class Report:
    """What fsck found. `missing` and `short` are integrity alarms: nothing mends them but a backup."""

    rows: int = 0
    blobs: int = 0
    bytes: int = 0
    missing: list[dict[str, object]] = field(default_factory=list)
    short: list[dict[str, object]] = field(default_factory=list)
    miscounted: list[dict[str, object]] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    repaired: int = 0
    dead_bytes: int = 0
    """Bytes of records in packs that no row holds; compaction gives them back."""
    uncounted: int = 0
    """Bytes of sealed packs that no row holds and that are not counted dead: what was written when a process died."""
    overcounted: list[dict[str, int]] = field(default_factory=list)
    """Packs with fewer dead bytes than are counted: compaction would throw away what lives there."""
    newest: list[dict[str, object]] = field(default_factory=list)
    """Keys that have no newest version, or several, or not the one that was made last."""
    recounted: int = 0
    """Packs whose count was set right."""
    reordered: int = 0
    """Keys whose newest version was set right."""

    @property
    def clean(self) -> bool:
        """Nothing is wrong (orphans that were taken away count as mended)."""
        damaged = self.missing or self.short or self.miscounted or self.overcounted or self.newest
        return not damaged and len(self.orphans) == self.repaired

    def add(self, other: Report) -> None:
        """What was found on another store, too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


async def fsck(store: Store, *, repair: bool) -> Report:
    """Compare every row that names a blob of the store with it, and every blob of the store with the rows.

    Ids that a live writer has reserved are left alone, so this may run beside a server.
    """
    report = Report()
    sizes: dict[str, int] = {}
    with driver_calls():
        async for locator, size in store.driver.walk():
            sizes[locator] = size
            report.blobs += 1
            report.bytes += size
    reserved = [ids for writer in await store.index.writers() for ids in await store.index.ranges(writer.incarnation)]
    held = await _check_rows(store, sizes, report)
    for body, kept, true in await store.index.miscounted():
        if (owner(body) if not body.startswith(PIECES) else next(iter(store.all))) != store.name:
            continue
        report.miscounted.append({"body": body, "kept": kept, "true": true})
    await _check_newest(store, report, repair=repair)
    await _check_packs(store, report, repair=repair)
    for locator in sorted(sizes.keys() - held):
        packed = store.driver.packed(locator)
        if packed is not None:  # dead records are no orphans: their space comes back with their pack's
            report.dead_bytes += packed[1]
            continue
        blob_id = store.driver.blob_id(locator)
        if any(ids.first <= blob_id <= ids.last for ids in reserved):
            continue
        report.orphans.append(locator)
    report.orphans += await _packs_without_row(store)
    report.orphans = await _certain(store, report.orphans)
    if repair and report.orphans:
        with driver_calls():
            await store.driver.discard_many(report.orphans)
        report.repaired = len(report.orphans)
    return report


async def _check_rows(store: Store, sizes: dict[str, int], report: Report) -> set[str]:
    """Every locator that a row or the discard queue holds; what is missing or short goes into the report."""
    held: set[str] = set()
    async for reference in store.index.references():
        if owner(reference.locator) != store.name or is_tree(reference.locator):
            continue  # what others did to a plain file is no damage: the next look makes its row what it is
        held.add(reference.locator)
        if reference.kind == "discard":
            continue
        report.rows += 1
        size = sizes.get(reference.locator)
        fact: dict[str, object] = {
            "locator": reference.locator,
            "kind": reference.kind,
            "bucket": reference.bucket,
            "key": reference.key,
        }
        if size is None:
            error = await _error(store, reference.locator)
            # written, or moved by compaction, or deleted while we walked
            if error is None or not await store.index.held([reference.locator]):
                continue
            if isinstance(error, BlobMissing):
                report.missing.append(fact)
            else:  # its pack is there, and it is not whole in it
                report.short.append({**fact, "size": 0, "needed": reference.end})
        elif size < reference.end:
            report.short.append({**fact, "size": size, "needed": reference.end})
    return held


async def _check_newest(store: Store, report: Report, *, repair: bool) -> None:
    """Each key of the store's buckets has one newest version: the one that was made last."""
    for bucket_id, key, bucket, name in await store.index.newest_wrong():
        if name != store.name:
            continue
        if repair:
            await store.index.mend_newest(bucket_id, key)
            report.reordered += 1
        else:
            report.newest.append({"bucket": bucket, "key": key})


async def _check_packs(store: Store, report: Report, *, repair: bool) -> None:
    """Compare how many bytes of each sealed pack are counted dead with the truth: all that nothing holds."""
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
    """Packs that nothing knows: a row is there before the file, and goes after it."""
    with driver_calls():
        found = [pack_id async for pack_id in store.driver.packs()]
    known = {pack.id for pack in await store.index.packs()} if found else set()
    return [store.driver.pack_locator(pack_id) for pack_id in found if pack_id not in known]


async def _certain(store: Store, orphans: list[str]) -> list[str]:
    """Those that are orphans still: since the walk a row may have come, or the collector of garbage been there.

    It takes the blob away before it forgets the entry that held it, so what is not held and still there is nobody's.
    """
    held: set[str] = set()
    for first in range(0, len(orphans), BATCH):
        held |= await store.index.held(orphans[first : first + BATCH])
    return [
        locator
        for locator in orphans
        if locator not in held and not isinstance(await _error(store, locator), BlobMissing)
    ]


async def _error(store: Store, locator: str) -> DriverError | None:
    """What the driver says when a blob is opened; a record is read whole."""
    try:
        opened = await store.driver.read(locator, 0, 0)
        if isinstance(opened, FileSlice):
            opened.release()
    except DriverError as error:
        return error
    return None
