"""The background jobs: what each does, when, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sluice_s3.app.admin.operations.store_check import CHECKS
from sluice_s3.app.settings import Settings

ROUND = "every second"


class CatalogJob(NamedTuple):
    """A job. `name` is that of `app.jobs.board`."""

    name: str
    label: str
    description: str
    schedule: str
    store: str | None = None
    can_run: bool = False
    can_pause: bool = False
    can_cancel: bool = False
    """It is a check in a process of its own: see `store_check`."""


def catalog(settings: Settings) -> Iterator[CatalogJob]:
    """Yield the checks, then the jobs of these settings."""
    for check in CHECKS:
        yield CatalogJob(check.name, check.label, check.description, "only when asked", can_run=True, can_cancel=True)
    days = f"{settings.audit_retention_days} days"
    yield CatalogJob(
        "lifecycle",
        "Lifecycle rules",
        "Deletes and moves versions by the rules of their buckets.",
        "after each midnight (UTC), and when rules change",
        can_run=True,
        can_pause=True,
    )
    yield CatalogJob(
        "moves", "Moves of buckets", "Copies buckets to another store.", "while a bucket moves", can_pause=True
    )
    if settings.class_stores:
        restores = "Restores archived versions, and ends restores that are over."
        yield CatalogJob("restores", "Restores from archives", restores, ROUND, can_pause=True)
    yield CatalogJob(
        "inventories",
        "Inventories",
        "Writes lists of objects where buckets are configured so.",
        "daily or weekly, by inventory",
        can_run=True,
        can_pause=True,
    )
    yield CatalogJob(
        "logs",
        "Access logs of buckets",
        "Writes collected lines into the buckets of logs.",
        f"when the oldest line is {settings.log_interval:g} s old",
        can_run=True,
        can_pause=True,
    )
    yield CatalogJob("events", "Notifications", "Sends messages of changes to their targets.", ROUND, can_pause=True)
    yield CatalogJob("sweep", "Sweep of orphans", "Removes what writers that died never committed.", ROUND)
    pieces = "Splits deleted multipart objects into their blobs, for the removal of garbage."
    yield CatalogJob("pieces", "Pieces of multipart objects", pieces, ROUND, can_pause=True)
    yield CatalogJob("tokens", "Rename tokens", "Removes old tokens of renames.", "every 10 minutes")
    yield CatalogJob(
        "audit", "Retention of the audit log", f"Removes audit events after {days}.", "every 5 minutes", can_run=True
    )
    for name, store in settings.named_stores.items():
        yield from _of_store(settings, name, store.layout == "tree", store.max_bytes is not None)


def _of_store(settings: Settings, store: str, tree: bool, limited: bool) -> Iterator[CatalogJob]:
    if settings.scrub_rate:
        scrub = "Reads all data again, and compares it with checksums and rows."
        schedule = "once a day, or as long as a pass takes"
        yield CatalogJob(f"scrub:{store}", "Scrub", scrub, schedule, store, can_run=True, can_pause=True)
    garbage = "Removes deleted and replaced data that no request reads any more."
    yield CatalogJob(f"garbage:{store}", "Garbage collection", garbage, ROUND, store, can_pause=True)
    compaction = "Moves live records out of packs that are mostly dead."
    yield CatalogJob(f"compaction:{store}", "Compaction", compaction, ROUND, store, can_pause=True)
    if tree:
        files = "Finds plain files that other programs made, changed or removed."
        every = settings.tree_scan_interval
        schedule = f"every {every:g} s" if every else "only when asked"
        yield CatalogJob(f"files:{store}", "Scan of plain files", files, schedule, store, can_run=True, can_pause=True)
    if limited:
        count = "Adds up what the buckets hold, for the limit of the store."
        yield CatalogJob(f"count:{store}", "Count of stored bytes", count, "by how long it takes", store, can_run=True)
