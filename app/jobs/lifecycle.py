"""The lifecycle job: it deletes or moves the versions that rules make due.

What is due is selected by `app.store.lifecycle.selection`. A bucket is scanned once after each midnight (UTC), and when
its rules change. The scan notes its progress now and then, and after a kill the next one begins there; versions
evaluated twice are gone already. Each version changes in a transaction that finds it and the bucket's settings
unchanged, and that does what a DELETE would: no later write is lost, and locked versions stay.

The clock is the one of retentions: a wall clock that jumps ahead ends nothing early.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import orjson
from xxhash import xxh3_64_hexdigest

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.lifecycle.queries import ScanPosition, scan_start
from sluice_s3.app.index.lifecycle.rows import LONE, OBJECT, OLDER, ExpireEntry
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.objects.listing import successor
from sluice_s3.app.jobs.pacing import Pacer, never_busy
from sluice_s3.app.jobs.relocation import transitions
from sluice_s3.app.jobs.relocation.versions import SettingsChanged
from sluice_s3.app.store.lifecycle import evaluator
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import DueAction, Rules
from sluice_s3.app.store.lifecycle.selection import LifecycleSelection
from sluice_s3.app.store.notifications import LIFECYCLE, MARK, EventContext, S3EventBuilder
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

ENTRIES_PER_BATCH = 100
"""Versions deleted in one transaction."""
NOTE_SECONDS = 5.0
"""Seconds between two notes of the progress."""
STATES = {evaluator.OBJECT: OBJECT, evaluator.OLDER: OLDER, evaluator.MARKER: LONE}
UPLOAD, TRANSITION = "upload", "transition"
KINDS = (*STATES, UPLOAD, TRANSITION)
"""The kinds of actions that are counted."""

Counted = Callable[[str, int], None]
RETRY_SECONDS = 30.0
"""Seconds until a bucket with failed moves is scanned again."""


class RulesChanged(Exception):
    """The settings or the store of the bucket have changed."""


class TransitionsPostponed(Exception):
    """Everything is done except failed moves; the cause has the reason."""

    def __init__(self, cause: DomainError) -> None:
        super().__init__()
        self.cause = cause


class Progress(NamedTuple):
    """The progress of a bucket's scan in a period."""

    period: int = -1
    rules: str = ""
    """Hash of the rules at the start of the scan."""
    key: str | None = None
    """All keys before it are done; None when all keys are."""


def note_of(bucket_id: int) -> str:
    """Return the name of the note in the index."""
    return f"lifecycle:{bucket_id}"


class Lifecycle:
    """The lifecycle job.

    `rate` limits the versions and uploads deleted each second. `counted` is called with each kind and its number.
    `pace` limits the bytes moved each second to the stores of other storage classes. `busy` says whether requests are
    being answered.
    """

    def __init__(
        self,
        store: Store,
        day: LifecycleCalendar,
        rate: int,
        counted: Counted,
        now: Callable[[], int] = clock.now_ms,
        pace: int = 0,
        busy: Callable[[], bool] = never_busy,
    ) -> None:
        self.store = store
        self.index = store.index
        self.day = day
        self.now = now
        self._counted = counted
        self._expiry_pacer = Pacer(busy, rate)
        self.pacer = Pacer(busy, pace)
        self.seen = -1
        """The epoch of the buckets that were read."""
        self._buckets: list[tuple[Bucket, Rules, str]] = []
        """Buckets with enabled rules, each with the hash of its rules."""
        self._retry_at: dict[int, float] = {}
        """When buckets with failed moves are scanned again."""
        self._warned: set[tuple[int, str]] = set()
        self._again: set[int] = set()
        """Buckets that are scanned although they are done."""
        self._complete_scans: dict[int, Progress] = {}
        """The last complete scans of this process, which need no query of the index."""

    def run_again(self) -> None:
        """Make the next run scan all buckets, whether they are due or not."""
        self._complete_scans.clear()
        self._retry_at.clear()
        self._again.update(bucket.id for bucket, _, _ in self._buckets)

    async def run_once(self) -> bool:
        """Scan the buckets that are due, and return whether one was. Raises the first error of a scan."""
        failed: DomainError | None = None
        scanned = False
        generation = self.index.generation
        if generation != self.seen:
            found = [(bucket, evaluator.rules_of(bucket)) for bucket in await self.index.lifecycle_buckets()]
            self._buckets = [(bucket, rules, _hash(rules)) for bucket, rules in found if rules.enabled]
            self.seen = generation
            self._warn_idle()
        for bucket, rules, digest in self._buckets:
            target = Progress(self.now() // self.day.period, digest)
            if self._complete_scans.get(bucket.id) == target or self._retry_at.get(bucket.id, 0.0) > time.monotonic():
                continue
            if self.store.of(bucket.store).tree is not None:
                continue  # it was moved there with its rules, which do not apply to plain files
            again = bucket.id in self._again
            self._again.discard(bucket.id)
            scanned = True
            try:
                await BucketScan(self, bucket, rules, target, again=again).run()
            except RulesChanged:
                self.seen = -1
            except TransitionsPostponed as error:
                self._retry_at[bucket.id] = time.monotonic() + RETRY_SECONDS
                failed = failed or error.cause
            except DomainError as error:  # the others must not wait for it
                failed = failed or error
            else:
                self._complete_scans[bucket.id] = target
        if failed is not None:
            raise failed
        return scanned

    def _warn_idle(self) -> None:
        """Warn of transitions to a class that no longer has a store."""
        for bucket, rules, _ in self._buckets:
            for rule in rules.enabled:
                for name in {transition.storage_class for transition in rule.transitions + rule.older_transitions}:
                    if name not in self.store.classes and (bucket.id, name) not in self._warned:
                        self._warned.add((bucket.id, name))
                        logger.warning("bucket %s: nothing moves to %s, which has no store any more", bucket.name, name)

    async def count(self, kind: str, number: int, seconds: float = 0.0) -> None:
        """Count actions of a kind, which took `seconds`; wait until more are allowed."""
        if number:
            self._counted(kind, number)
            await self._expiry_pacer.wait(seconds, number)


class BucketScan:
    """One scan of a bucket."""

    def __init__(self, job: Lifecycle, bucket: Bucket, rules: Rules, target: Progress, *, again: bool = False) -> None:
        self._job = job
        self._again = again
        self._index = job.index
        self._bucket = bucket
        self._rules = rules
        self._target = target
        self._noted = time.monotonic()
        self._removed = 0
        self._failed: DomainError | None = None
        """The error of a failed move: a store may be down, and nothing else must wait for it."""

    async def run(self) -> None:
        """Run the scan. Raises RulesChanged, TransitionsPostponed, DomainError."""
        found = await self._index.note(note_of(self._bucket.id))
        note = Progress(*orjson.loads(found)) if found else Progress()
        if note == self._target and not self._again:
            return  # by another process
        first = note.key if note[:2] == self._target[:2] and note.key is not None else ""
        for prefix in evaluator.scan_prefixes(rule for rule in self._rules.enabled if rule.of_versions):
            if (end := successor(prefix)) > first:
                await self._scan(scan_start(max(prefix, first)), end)
        for prefix in evaluator.scan_prefixes(rule for rule in self._rules.enabled if rule.abort_days is not None):
            await self._end_uploads(prefix)
        if self._failed is None:
            await self._note(self._target)
        if self._removed:
            logger.info(
                "bucket %s: lifecycle rules took away or moved %d versions and uploads",
                self._bucket.name,
                self._removed,
            )
        if self._failed is not None:
            raise TransitionsPostponed(self._failed)

    def _selection(self) -> LifecycleSelection:
        job = self._job
        return LifecycleSelection(self._index, self._bucket, self._rules, job.day, job.now(), job.store.classes)

    async def _note(self, note: Progress) -> None:
        await self._index.set_note(note_of(self._bucket.id), orjson.dumps(tuple(note)).decode())
        self._noted = time.monotonic()
        crash_point("lifecycle.noted")

    async def _scan(self, position: ScanPosition | None, end: str) -> None:
        """Evaluate all versions from a position on, before the key `end`."""
        async for page in self._selection().due_versions(position, end):
            position = page.position
            if page.due:
                await self._expire(await self._move(page.due))
            if position is not None and self._failed is None and time.monotonic() > self._noted + NOTE_SECONDS:
                await self._note(self._target._replace(key=position[0]))

    async def _move(self, due: list[DueAction]) -> list[DueAction]:
        """Make the transitions that are due; return the other actions, with current numbers."""
        moves = [action for action in due if action.storage_class]
        if not moves:
            return due
        builder = S3EventBuilder(self._bucket, EventContext(LIFECYCLE)) if MARK in self._bucket.settings else None
        try:
            moved = await transitions.transition_versions(
                self._job.store, self._bucket, moves, self._job.pacer, builder
            )
        except SettingsChanged:
            raise RulesChanged from None
        except DomainError as error:
            self._failed = self._failed or error
            return [action for action in due if not action.storage_class]
        await self._count(TRANSITION, len(moved))
        return [action._replace(seq=moved.get(action.seq, action.seq)) for action in due if not action.storage_class]

    async def _expire(self, due: list[DueAction]) -> None:
        for first in range(0, len(due), ENTRIES_PER_BATCH):
            batch = due[first : first + ENTRIES_PER_BATCH]
            entries = [ExpireEntry(action.key, action.version_id, action.seq, STATES[action.kind]) for action in batch]
            started = time.monotonic()
            async with emit_events(
                S3EventBuilder(self._bucket, EventContext(LIFECYCLE)) if MARK in self._bucket.settings else None
            ):
                results = await self._index.expire(self._bucket.id, self._bucket.settings, entries)
            crash_point("lifecycle.expired")
            if results is None:
                raise RulesChanged
            kinds = sorted(action.kind for action, removed in zip(batch, results, strict=True) if removed)
            for kind, group in groupby(kinds):
                await self._count(kind, len(list(group)), time.monotonic() - started)
                started = time.monotonic()

    async def _count(self, kind: str, number: int, seconds: float = 0.0) -> None:
        self._removed += number
        await self._job.count(kind, number, seconds)

    async def _end_uploads(self, prefix: str) -> None:
        async for page in self._selection().due_uploads(prefix):
            due = [upload.id for upload, _ in page]
            for first in range(0, len(due), ENTRIES_PER_BATCH):
                batch = due[first : first + ENTRIES_PER_BATCH]
                ended = await self._index.expire_uploads(self._bucket.id, self._bucket.settings, batch)
                if ended is None:
                    raise RulesChanged
                await self._count(UPLOAD, ended)


def _hash(rules: Rules) -> str:
    return xxh3_64_hexdigest(orjson.dumps(evaluator.to_setting(rules)))
