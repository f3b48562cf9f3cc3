"""Runs lifecycle rules: goes through the buckets that have some, and takes away or moves what is due
(`app.store.lifecycle`).

A bucket is gone through once after each midnight (UTC), and when its rules changed. Whoever is at it notes now and then
how far it came, and whoever goes on after it was killed begins there; what was judged twice is gone already. Each
version goes in a transaction that finds it as it was judged and the bucket's settings as they were, and does what a
DELETE would: nothing that was written meanwhile is lost, and what is locked stays.

Time is the one by which retentions are judged: a wall clock that jumps ahead ends nothing before its time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import orjson
from xxhash import xxh3_64_hexdigest

from app.crash import crash_point
from app.errors import DomainError
from app.index.lifecycle import LONE, OBJECT, OLDER, Expired, Place, begin
from app.index.listing import successor
from app.index.lock_clock import clock
from app.index.rows import Bucket
from app.index.schema import CURRENT, ENABLED, MARKER, OLD_MARKER
from app.index.telling import telling
from app.jobs import transitions
from app.jobs.placing import Pacer, Settled
from app.store import lifecycle
from app.store.events import LIFECYCLE, MARK, Cause, Messages
from app.store.lifecycle import Day, Due, Judge, Rules, Stored
from app.store.store import Store

logger = logging.getLogger("sluice.jobs")

AT_ONCE = 100
"""Versions that go in one transaction."""
UPLOADS = 1000
NOTED = 5.0
"""Seconds between two notes of how far it came."""
STATES = {lifecycle.OBJECT: OBJECT, lifecycle.OLDER: OLDER, lifecycle.MARKER: LONE}
UPLOAD, TRANSITION = "upload", "transition"
KINDS = (*STATES, UPLOAD, TRANSITION)
"""What is counted."""

Counted = Callable[[str, int], None]


UNLIMITED = 1 << 50
PATIENCE = 30.0
"""Seconds until a bucket is looked at again from which something could not be moved."""


class Changed(Exception):
    """The bucket's settings are others by now, or the store that it is on."""


class Postponed(Exception):
    """All was done but what could not be moved; the cause is why."""

    def __init__(self, cause: DomainError) -> None:
        super().__init__()
        self.cause = cause


class Note(NamedTuple):
    """How far the look at a bucket came that was begun in a period."""

    period: int = -1
    rules: str = ""
    """Hash of the rules that it was begun with."""
    key: str | None = None
    """All before it is done; None when everything is."""


def note_of(bucket_id: int) -> str:
    """Name of the note of the index."""
    return f"lifecycle:{bucket_id}"


class Lifecycle:
    """`rate` is how many versions and uploads go in a second at most, `counted` is told of each kind how many went.

    `pace` is how many bytes a second are moved at most to the stores of other storage classes.
    """

    def __init__(
        self,
        store: Store,
        day: Day,
        rate: int,
        counted: Counted,
        now: Callable[[], int] = clock.now_ms,
        pace: int = UNLIMITED,
    ) -> None:
        self.store = store
        self.index = store.index
        self.day = day
        self.now = now
        self._rate = rate
        self._counted = counted
        self.pacer = Pacer(pace)
        self.seen = -1
        """The generation that the buckets were read at."""
        self._buckets: list[tuple[Bucket, Rules, str]] = []
        """Those with rules that hold, and the hash of their rules."""
        self._later: dict[int, float] = {}
        """When buckets are looked at again from which something could not be moved."""
        self._told: set[tuple[int, str]] = set()
        self._done: dict[int, Note] = {}
        """The last whole looks of this process, so that the index need not be asked for them again and again."""

    async def run_once(self) -> None:
        """Go through the buckets that are due. Raises what the first one raised that could not be gone through."""
        failed: DomainError | None = None
        generation = self.index.generation
        if generation != self.seen:
            found = [(bucket, lifecycle.rules_of(bucket)) for bucket in await self.index.lifecycle_buckets()]
            self._buckets = [(bucket, rules, _hash(rules)) for bucket, rules in found if rules.enabled]
            self.seen = generation
            self._tell_idle()
        for bucket, rules, digest in self._buckets:
            wanted = Note(self.now() // self.day.period, digest)
            if self._done.get(bucket.id) == wanted or self._later.get(bucket.id, 0.0) > time.monotonic():
                continue
            if self.store.of(bucket.store).tree is not None:
                continue  # it was moved there with its rules, which are not for plain files
            try:
                await Look(self, bucket, rules, wanted).run()
            except Changed:
                self.seen = -1
            except Postponed as error:
                self._later[bucket.id] = time.monotonic() + PATIENCE
                failed = failed or error.cause
            except DomainError as error:  # the others must not wait for it
                failed = failed or error
            else:
                self._done[bucket.id] = wanted
        if failed is not None:
            raise failed

    def _tell_idle(self) -> None:
        """Tell the operator of transitions to a class that had a store when they were configured."""
        for bucket, rules, _ in self._buckets:
            for rule in rules.enabled:
                for name in {one.storage_class for one in rule.transitions + rule.older_transitions}:
                    if name not in self.store.classes and (bucket.id, name) not in self._told:
                        self._told.add((bucket.id, name))
                        logger.warning("bucket %s: nothing moves to %s, which has no store any more", bucket.name, name)

    async def went(self, kind: str, number: int) -> None:
        """So many of a kind went; wait until more may."""
        if number:
            self._counted(kind, number)
            await asyncio.sleep(number / self._rate)


class Look:
    """One look at all of a bucket."""

    def __init__(self, job: Lifecycle, bucket: Bucket, rules: Rules, wanted: Note) -> None:
        self._job = job
        self._index = job.index
        self._bucket = bucket
        self._rules = rules
        self._wanted = wanted
        self._noted = time.monotonic()
        self._gone = 0
        self._failed: DomainError | None = None
        """Why something could not be moved: a store may be down, for which nothing else must wait."""

    async def run(self) -> None:
        """Raises Changed, Postponed, DomainError."""
        found = await self._index.note(note_of(self._bucket.id))
        note = Note(*orjson.loads(found)) if found else Note()
        if note == self._wanted:
            return  # by another process
        first = note.key if note[:2] == self._wanted[:2] and note.key is not None else ""
        for prefix in lifecycle.ranges(rule for rule in self._rules.enabled if rule.of_versions):
            if (end := successor(prefix)) > first:
                await self._go_through(begin(max(prefix, first)), end)
        for prefix in lifecycle.ranges(rule for rule in self._rules.enabled if rule.abort_days is not None):
            await self._end_uploads(prefix)
        if self._failed is None:
            await self._note(self._wanted)
        if self._gone:
            logger.info(
                "bucket %s: lifecycle rules took away or moved %d versions and uploads", self._bucket.name, self._gone
            )
        if self._failed is not None:
            raise Postponed(self._failed)

    async def _note(self, note: Note) -> None:
        await self._index.set_note(note_of(self._bucket.id), orjson.dumps(tuple(note)).decode())
        self._noted = time.monotonic()
        crash_point("lifecycle.noted")

    async def _go_through(self, place: Place | None, end: str) -> None:
        """All versions from a place on and before the key `end`."""
        keeps = self._bucket.versioning == ENABLED
        judge = Judge(self._rules, self._job.day, self._job.now(), self._job.store.classes, keeps=keeps)
        due: list[Due] = []
        while place is not None:
            rows, place = await self._index.lifecycle_page(self._bucket.id, place, end, tags=self._rules.need_tags)
            for row in rows:
                version = Stored(*row)
                newest, marker = version.state in (CURRENT, MARKER), version.state in (MARKER, OLD_MARKER)
                due += judge.take(version, newest=newest, marker=marker)
            if place is None:
                due += judge.end()
            if due:
                await self._take_away(await self._move(due))
                due = []
            if place is not None and self._failed is None and time.monotonic() > self._noted + NOTED:
                await self._note(self._wanted._replace(key=place[0]))

    async def _move(self, due: list[Due]) -> list[Due]:
        """Move what is due to move; the others, as they are then."""
        moves = [one for one in due if one.storage_class]
        if not moves:
            return due
        tell = Messages(self._bucket, Cause(LIFECYCLE)) if MARK in self._bucket.settings else None
        try:
            moved = await transitions.move(self._job.store, self._bucket, moves, self._job.pacer, tell)
        except Settled:
            raise Changed from None
        except DomainError as error:
            self._failed = self._failed or error
            return [one for one in due if not one.storage_class]
        await self._went(TRANSITION, len(moved))
        return [one._replace(seq=moved.get(one.seq, one.seq)) for one in due if not one.storage_class]

    async def _take_away(self, due: list[Due]) -> None:
        for first in range(0, len(due), AT_ONCE):
            some = due[first : first + AT_ONCE]
            entries = [Expired(one.key, one.version_id, one.seq, STATES[one.kind]) for one in some]
            with telling(Messages(self._bucket, Cause(LIFECYCLE)) if MARK in self._bucket.settings else None):
                done = await self._index.expire(self._bucket.id, self._bucket.settings, entries)
            crash_point("lifecycle.expired")
            if done is None:
                raise Changed
            kinds = sorted(one.kind for one, went in zip(some, done, strict=True) if went)
            for kind, group in groupby(kinds):
                await self._went(kind, len(list(group)))

    async def _went(self, kind: str, number: int) -> None:
        self._gone += number
        await self._job.went(kind, number)

    async def _end_uploads(self, prefix: str) -> None:
        key = upload_id = ""
        more = True
        now = self._job.now()
        while more:
            uploads, _, more = await self._index.uploads(self._bucket.id, prefix, "", key, upload_id, UPLOADS)
            due = []
            for upload in uploads:
                key, upload_id = upload.key, upload.upload_id
                found = lifecycle.abort(self._rules.enabled, self._job.day, upload.key, upload.initiated)
                if found is not None and found[0] <= now:
                    due.append(upload.id)
            for first in range(0, len(due), AT_ONCE):
                some = due[first : first + AT_ONCE]
                ended = await self._index.expire_uploads(self._bucket.id, self._bucket.settings, some)
                if ended is None:
                    raise Changed
                await self._went(UPLOAD, ended)


def _hash(rules: Rules) -> str:
    return xxh3_64_hexdigest(orjson.dumps(lifecycle.to_setting(rules)))
