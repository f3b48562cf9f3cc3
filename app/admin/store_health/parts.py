"""Reads the parts of a store that come from its mount or from the index. All raise DomainError."""

from __future__ import annotations

from sluice_s3.app.admin.metrics import JournalLags
from sluice_s3.app.admin.store_health.models import FindingOut, JournalsOut, PacksOut, ScrubOut, SpaceOut
from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index import Index
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.journals.failure_note import read_failure
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.scrub_progress import ScrubProgress, read_progress
from sluice_s3.app.store.store import Store

MAX_FINDINGS = 100
"""Damaged blobs that an answer names."""
MAX_OPEN_PACKS = 64
"""Packs that are being written whose size is asked of the mount."""
USAGE_SECONDS = 10.0
"""Seconds after which a mount's answer is not waited for any more; callers give up before."""
READ_KINDS = {"version": "versions", "piece": "pieces", "part": "parts"}


async def read_space(store: Store) -> SpaceOut:
    """Return the space of a store's file system."""
    usage = await store.usage(USAGE_SECONDS)
    if usage is None:
        raise StoreUnavailable(reason="it does not answer")
    known = store.driver.probe is not None and usage.total < 1 << 62
    return SpaceOut(
        total=usage.total if known else None,
        free=usage.free if known else None,
        inodes=usage.inodes or None,
        free_inodes=usage.free_inodes if usage.inodes else None,
    )


async def read_packs(store: Store, settings: Settings) -> PacksOut:
    """Return the packs of a store, and what compaction may gain."""
    found = [pack for pack in await store.index.packs() if pack.store == store.name]
    overhead = store.driver.capabilities.pack_overhead
    being_written = [pack for pack in found if not pack.sealed]
    size = sum(pack.size for pack in found if pack.sealed)
    for pack in being_written[:MAX_OPEN_PACKS]:
        size += await store.pack_bytes(pack.id)
    dead = sum(pack.dead for pack in found)

    def is_worthwhile(pack: Pack) -> bool:
        return bool(pack.sealed) and pack.size - overhead <= 2 * pack.dead

    return PacksOut(
        open=len(being_written),
        sealed=len(found) - len(being_written),
        live_bytes=max(size - dead, 0),
        dead_bytes=dead,
        worthwhile=sum(map(is_worthwhile, found)),
        compaction_rate=settings.compaction_rate,
    )


async def read_journals(store: Store, lags: JournalLags) -> JournalsOut:
    """Return how far the journals of a store are behind, and what they take."""
    changes, oldest, watermark = await store.index.journal_lag(store.name)
    files = await store.index.journals(store.name)
    failure = await read_failure(store.index, store.name)
    return JournalsOut(
        behind_changes=changes,
        behind_seconds=round(lags.seconds(store.name, changes, oldest, watermark), 3),
        files=len(files),
        bytes=sum(one.bytes for one in files),
        failing=failure and failure.reason,
    )


async def count_scrubbed(index: Index, store: str, progress: ScrubProgress) -> tuple[int, int | None]:
    """Return how many rows a scrubber has read, and of how many; None where that is not known."""
    if progress.position is None or progress.kind != "version":
        return 0, None
    # rows are read in the order of their numbers, and journals know the greatest one
    total = await index.watermark(store)
    return (min(max(progress.position[0], 0), total), total) if total > 0 else (0, None)


async def read_scrub(store: Store, settings: Settings) -> ScrubOut:
    """Return how far the scrubber of a store is, and what is damaged."""
    progress = await read_progress(store.index, store.name)
    damaged = [one for one in await store.index.quarantine() if store_of_locator(one[0]) == store.name]
    damaged.sort(key=lambda one: one[2], reverse=True)
    done, total = await count_scrubbed(store.index, store.name, progress)
    return ScrubOut(
        rate=settings.scrub_rate,
        began=progress.began or None,
        running=progress.position is not None,
        kind=READ_KINDS.get(progress.kind, ""),
        share=done / total if total else None,
        damaged=len(damaged),
        findings=[FindingOut(locator=locator, reason=why, found=at) for locator, why, at in damaged[:MAX_FINDINGS]],
    )
