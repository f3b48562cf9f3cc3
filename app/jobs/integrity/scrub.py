"""The scrubber: it reads all referenced blobs again and compares them with checksums and rows.

A damaged blob goes into quarantine: its readers get 503 at once. It leaves quarantine when a later read finds it
intact, or when no row references it any more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields

from sluice_s3.app.index.integrity.scrub import KINDS, ScrubItem
from sluice_s3.app.index.journals.queries import SCAN_START, ScanPosition
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.jobs.pacing import Pacer, never_busy
from sluice_s3.app.store.driver_errors import to_domain_error, translate_driver_errors
from sluice_s3.app.store.etags import hash_to_check, kind_of
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.scrub_progress import ScrubProgress, progress_note, read_progress, render_progress
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError

logger = logging.getLogger("sluice.jobs")

MAX_REMEMBERED_BLOBS = 10_000
"""Blobs remembered as read, so that the next row with a reference does not read them again."""
ITEMS_PER_BATCH = 64
"""Records read in one call to a thread."""
MIN_READ_BYTES = 16 << 10
"""Minimum bytes that a blob counts for: a record costs more time than its bytes do."""
IDLE_SECONDS = 60.0
"""Seconds before the first pass, and after an error."""
PASS_MS = 24 * 3600 * 1000
"""Milliseconds from the start of a pass to the next one, which also waits for its end."""


@dataclass(slots=True)
class Report:
    """The findings of a pass."""

    rows: int = 0
    blobs: int = 0
    bytes: int = 0
    damaged: list[dict[str, object]] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)
    """Blobs that left quarantine."""
    damaged_journals: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.damaged_journals

    def add(self, other: Report) -> None:
        """Add the findings of another store."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Scrubber:
    """Scrubber of one store at `rate` bytes a second (0: no limit), at the pace of `app.jobs.pacing`.

    `request_snapshot` is called for a damaged journal. `busy` says whether requests are being answered.
    """

    def __init__(
        self,
        store: Store,
        rate: int,
        request_snapshot: Callable[[], None] = lambda: None,
        busy: Callable[[], bool] = never_busy,
    ) -> None:
        self._store = store
        self._pacer = Pacer(busy, rate)
        self._request_snapshot = request_snapshot
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._quarantined: set[str] = set()
        self._again = False
        self._wake = asyncio.Event()

    def run_again(self) -> None:
        """Make the next pass begin at once."""
        self._again = True
        self._wake.set()

    async def wait(self) -> None:
        """Wait before the first pass, after each, and after an error; `run_again` ends it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await self._wake.wait()
        self._wake.clear()

    async def go_on(self) -> Report | None:
        """Continue the current pass or begin one that is due; return None when none is."""
        began, kind, position = await read_progress(self._store.index, self._store.name)
        now = time.time_ns() // 1_000_000
        if position is not None:
            return await self.run_once(kind, position, began=began)
        if now < began + PASS_MS and not self._again:
            return None
        self._again = False
        return await self.run_once(began=now)

    async def run_once(
        self,
        kind: str = KINDS[0],
        after: ScanPosition = SCAN_START,
        *,
        began: int = 0,
        progress: Callable[[Report], None] = lambda _: None,
    ) -> Report:
        """Read everything from a position on.

        With `began` (milliseconds) the progress is noted in the index.
        """
        report = Report()
        self._seen.clear()
        await self._check_quarantined(report)
        await self._check_journals(report)
        for which in KINDS[KINDS.index(kind) :]:
            position: ScanPosition | None = after if which == kind else SCAN_START
            while position is not None:
                rows, position = await self._store.index.live(which, position)
                await self._check_rows(rows, report)
                progress(report)
                if began and position is not None:
                    await self._note(ScrubProgress(began, which, position))
        if began:
            await self._note(ScrubProgress(began))
        if report.damaged:
            logger.error("scrub: %d damaged blobs of %d", len(report.damaged), report.blobs)
        return report

    async def _note(self, progress: ScrubProgress) -> None:
        await self._store.index.set_note(progress_note(self._store.name), render_progress(progress))

    async def _check_rows(self, rows: Sequence[ScrubItem], report: Report) -> None:
        # A plain file has no checks of its own, and others may change it: see app/jobs/plain_files/scan.py.
        rows = [
            row for row in rows if store_of_locator(row.locator) == self._store.name and not is_plain_file(row.locator)
        ]
        report.rows += len(rows)
        unseen = {row.locator: row for row in rows if row.locator not in self._seen}
        records = []
        for locator, row in unseen.items():
            if self._store.driver.packed(locator) is not None:
                records.append(row)
            else:
                await self._judge(row, await self._read_file(row, report), report)
        for first in range(0, len(records), ITEMS_PER_BATCH):
            batch = records[first : first + ITEMS_PER_BATCH]
            for row, reason in zip(batch, await self._read_records(batch, report), strict=True):
                await self._judge(row, reason, report)

    async def _judge(self, row: ScrubItem, reason: str, report: Report) -> None:
        report.blobs += 1
        if not reason:
            if row.locator in self._quarantined:
                await self._release(row.locator, report)
            self._seen[row.locator] = None
            if len(self._seen) > MAX_REMEMBERED_BLOBS:
                self._seen.popitem(last=False)
            return
        if not await self._store.index.holds(BlobReference(row.kind, *row.position), row.locator):
            return  # discarded, or moved by compaction, during the read
        report.damaged.append(
            {"locator": row.locator, "bucket": row.bucket, "key": row.key, "size": row.size, "reason": reason}
        )
        logger.error("integrity alarm: %s of %s/%s: %s", row.locator, row.bucket, row.key, reason)
        if row.locator not in self._quarantined:
            self._quarantined.add(row.locator)
            await self._store.index.add_quarantine(row.locator, reason)

    async def _read_file(self, row: ScrubItem, report: Report) -> str:
        """Return the damage of a file; empty when there is none."""
        hashed = hash_to_check(row.etag)
        size = 0
        started = time.monotonic()
        try:
            async for count in self._store.driver.reread(row.locator, None if hashed is None else hashed.update):
                size += count
                report.bytes += count
                await self._pacer.wait(time.monotonic() - started, count)
                started = time.monotonic()
        except DriverError as error:
            return _reason(error)
        return _compare(row, size, "" if hashed is None else hashed.etag)

    async def _read_records(self, rows: Sequence[ScrubItem], report: Report) -> list[str]:
        """Return the damage of each of some records."""
        found = [(0, "")] * len(rows)

        def take(number: int, body: Buffer) -> None:
            hashed = hash_to_check(rows[number].etag)
            if hashed is not None:
                hashed.update(body)
            found[number] = len(body), "" if hashed is None else hashed.etag

        started = time.monotonic()
        with translate_driver_errors():
            errors = await self._store.driver.reread_records([row.locator for row in rows], take)
        report.bytes += sum(size for size, _ in found)
        await self._pacer.wait(time.monotonic() - started, sum(max(size, MIN_READ_BYTES) for size, _ in found))
        return [
            _reason(errors[number]) if number in errors else _compare(row, *found[number])
            for number, row in enumerate(rows)
        ]

    async def _check_quarantined(self, report: Report) -> None:
        """Release from quarantine what no row references any more."""
        found = await self._store.index.quarantine()
        known = [locator for locator, _, _ in found if store_of_locator(locator) == self._store.name]
        referenced = await self._store.index.find_referenced(known) if known else set()
        self._quarantined = set(known)
        for locator in known:
            if locator not in referenced:
                await self._release(locator, report)

    async def _release(self, locator: str, report: Report) -> None:
        logger.warning("scrub: %s leaves quarantine", locator)
        self._quarantined.discard(locator)
        report.healed.append(locator)
        await self._store.index.remove_quarantine([locator])

    async def _check_journals(self, report: Report) -> None:
        for journal in await self._store.index.journals(self._store.name):
            with translate_driver_errors():
                if await self._store.driver.check_journal(journal.id):
                    continue
            if journal.id not in [known.id for known in await self._store.index.journals(self._store.name)]:
                continue
            report.damaged_journals.append(f"{journal.id:016x}")
            logger.error("integrity alarm: journal %x is damaged", journal.id)
        if report.damaged_journals:
            self._request_snapshot()


def _reason(error: DriverError) -> str:
    """Return the damage that an error shows in a blob. Raises errors that show none."""
    if isinstance(error, BlobMissing):
        return "missing"
    if isinstance(error, BlobDamaged):
        return str(error)
    raise to_domain_error(error) from error


def _compare(row: ScrubItem, size: int, etag: str) -> str:
    """Return the difference between a blob and its row; empty when there is none.

    `etag` is that of the blob's bytes; empty where the row's is no hash of them.
    """
    if size < row.offset + row.size or (etag and size != row.size):
        return f"{size} bytes, where the row says {row.offset + row.size}"
    if etag and etag != row.etag:
        return f"its {kind_of(etag).upper()} is not the ETag"
    return ""
