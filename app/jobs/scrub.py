"""Reads everything that rows hold again, compares it with its checks and with the row, and reports what is damaged.

A damaged blob goes into quarantine: its readers get 503 at once. It leaves quarantine when it is found whole again, or
when no row holds it any more.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import orjson

from app.errors import DomainError
from app.index.decisions import FIRST, Place
from app.index.rows import is_tree
from app.index.schema import DEFAULT
from app.index.scrubbing import KINDS, Live
from app.store.calls import driver_calls, translated
from app.store.place import owner
from app.store.store import Store
from storage_drivers.base import Buffer
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError

logger = logging.getLogger("sluice.jobs")

REMEMBERED = 10_000
"""Blobs that are not read again for the next row that holds them."""
AT_ONCE = 64
"""Records read in one hop."""
LEAST = 16 << 10
"""Bytes that a blob counts for at least: a record costs more time than its bytes do."""
IDLE = 60.0
"""Seconds before the first pass, and after an error."""
PASS_MS = 24 * 3600 * 1000
"""A pass begins this long after the last one did, or when that has ended."""
NOTE = "scrub"
"""Name of the note that says how far the pass has come."""


@dataclass(slots=True)
class Report:
    """What a pass found."""

    rows: int = 0
    blobs: int = 0
    bytes: int = 0
    damaged: list[dict[str, object]] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)
    """Blobs that left quarantine."""
    damaged_journals: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing is damaged."""
        return not self.damaged and not self.damaged_journals

    def add(self, other: Report) -> None:
        """What was found on another store, too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Scrubber:
    """Passes over one store at `rate` bytes a second (0: as fast as it goes). `renew` is called for a bad journal."""

    def __init__(self, store: Store, rate: int, renew: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._rate = rate
        self._renew = renew
        self._note = NOTE if store.name == DEFAULT else f"{NOTE}:{store.name}"
        self._due = 0.0
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._quarantined: set[str] = set()

    async def run(self) -> None:
        """Pass after pass, each from where the last process ended, until cancelled."""
        while True:
            await asyncio.sleep(IDLE)
            try:
                await self.go_on()
            except DomainError as error:
                logger.warning("scrub: %s, to be tried again", type(error).__name__)
            except Exception:
                logger.exception("scrub failed, to be tried again")

    async def go_on(self) -> Report | None:
        """The rest of the pass that is under way, or a new one when it is time; None when it is not."""
        note = orjson.loads(await self._store.index.note(self._note) or b"[0]")
        now = time.time_ns() // 1_000_000
        if len(note) > 1:
            began, kind, *place = note
            return await self.run_once(kind, (place[0], place[1], place[2]), began=began)
        if now < note[0] + PASS_MS:
            return None
        return await self.run_once(began=now)

    async def run_once(
        self,
        kind: str = KINDS[0],
        after: Place = FIRST,
        *,
        began: int = 0,
        progress: Callable[[Report], None] = lambda _: None,
    ) -> Report:
        """Read everything from a place on; with `began` (milliseconds) how far it came is noted in the index."""
        report = Report()
        self._seen.clear()
        await self._check_quarantined(report)
        await self._check_journals(report)
        for which in KINDS[KINDS.index(kind) :]:
            place: Place | None = after if which == kind else FIRST
            while place is not None:
                rows, place = await self._store.index.live(which, place)
                await self._check_rows(rows, report)
                progress(report)
                if began and place is not None:
                    await self._store.index.set_note(self._note, orjson.dumps([began, which, *place]).decode())
        if began:
            await self._store.index.set_note(self._note, orjson.dumps([began]).decode())
        if report.damaged:
            logger.error("scrub: %d damaged blobs of %d", len(report.damaged), report.blobs)
        return report

    async def _check_rows(self, rows: Sequence[Live], report: Report) -> None:
        # a plain file has no checks of its own, and others may change it: see app/jobs/tree.py
        rows = [row for row in rows if owner(row.locator) == self._store.name and not is_tree(row.locator)]
        report.rows += len(rows)
        unseen = {row.locator: row for row in rows if row.locator not in self._seen}
        records = []
        for locator, row in unseen.items():
            if self._store.driver.packed(locator) is not None:
                records.append(row)
            else:
                await self._judge(row, await self._read_file(row, report), report)
        for first in range(0, len(records), AT_ONCE):
            some = records[first : first + AT_ONCE]
            for row, reason in zip(some, await self._read_records(some, report), strict=True):
                await self._judge(row, reason, report)

    async def _judge(self, row: Live, reason: str, report: Report) -> None:
        report.blobs += 1
        if not reason:
            if row.locator in self._quarantined:
                await self._release(row.locator, report)
            self._seen[row.locator] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            return
        if not await self._store.index.holds(row):
            return  # discarded, or moved by compaction, while it was read
        report.damaged.append(
            {"locator": row.locator, "bucket": row.bucket, "key": row.key, "size": row.size, "reason": reason}
        )
        logger.error("integrity alarm: %s of %s/%s: %s", row.locator, row.bucket, row.key, reason)
        if row.locator not in self._quarantined:
            self._quarantined.add(row.locator)
            await self._store.index.add_quarantine(row.locator, reason)

    async def _read_file(self, row: Live, report: Report) -> str:
        """What is wrong with a file, empty when nothing is."""
        md5 = hashlib.md5(usedforsecurity=False)
        size = 0
        try:
            async for count in self._store.driver.reread(row.locator, md5.update if row.etag else None):
                size += count
                report.bytes += count
                await self._pace(count)
        except DriverError as error:
            return _reason(error)
        return _compare(row, size, md5.hexdigest())

    async def _read_records(self, rows: Sequence[Live], report: Report) -> list[str]:
        """What is wrong with each of some records."""
        found = [(0, "")] * len(rows)

        def take(number: int, body: Buffer) -> None:
            digest = hashlib.md5(body, usedforsecurity=False).hexdigest() if rows[number].etag else ""
            found[number] = len(body), digest

        with driver_calls():
            errors = await self._store.driver.reread_records([row.locator for row in rows], take)
        report.bytes += sum(size for size, _ in found)
        await self._pace(sum(max(size, LEAST) for size, _ in found))
        return [
            _reason(errors[number]) if number in errors else _compare(row, *found[number])
            for number, row in enumerate(rows)
        ]

    async def _pace(self, count: int) -> None:
        if not self._rate:
            return
        now = time.monotonic()
        self._due = max(self._due, now - 1.0) + count / self._rate
        if self._due > now:
            await asyncio.sleep(self._due - now)

    async def _check_quarantined(self, report: Report) -> None:
        """Let go of what nobody holds any more."""
        found = await self._store.index.quarantine()
        known = [locator for locator, _, _ in found if owner(locator) == self._store.name]
        held = await self._store.index.held(known) if known else set()
        self._quarantined = set(known)
        for locator in known:
            if locator not in held:
                await self._release(locator, report)

    async def _release(self, locator: str, report: Report) -> None:
        logger.warning("scrub: %s leaves quarantine", locator)
        self._quarantined.discard(locator)
        report.healed.append(locator)
        await self._store.index.remove_quarantine([locator])

    async def _check_journals(self, report: Report) -> None:
        for journal in await self._store.index.journals(self._store.name):
            with driver_calls():
                if await self._store.driver.check_journal(journal.id):
                    continue
            if journal.id not in [known.id for known in await self._store.index.journals(self._store.name)]:
                continue
            report.damaged_journals.append(f"{journal.id:016x}")
            logger.error("integrity alarm: journal %x is damaged", journal.id)
        if report.damaged_journals:
            self._renew()


def _reason(error: DriverError) -> str:
    """What an error says of a blob. Raises what says nothing of it."""
    if isinstance(error, BlobMissing):
        return "missing"
    if isinstance(error, BlobDamaged):
        return str(error)
    raise translated(error) from error


def _compare(row: Live, size: int, md5: str) -> str:
    """What differs between a blob and its row."""
    if size < row.offset + row.size or (row.etag and size != row.size):
        return f"{size} bytes, where the row says {row.offset + row.size}"
    if row.etag and md5 != row.etag:
        return "its MD5 is not the ETag"
    return ""
