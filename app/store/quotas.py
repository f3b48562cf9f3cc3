"""Quotas of buckets: how many bytes and objects one may hold.

What a bucket holds is counted by each worker for itself, from the index, and what the worker lets in is added until it
counts again. So a quota is passed at most by what other workers let in between two of its counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import orjson

from app.errors import QuotaExceeded
from app.index.base import Index
from app.index.rows import Bucket
from app.index.usage import Usage

SETTING = "quota"
"""Name of the bucket's setting."""
FRESH = 1.0
"""Seconds that a count is good for, and longer when it takes long."""
SHARE = 20
"""Counting is not repeated before this many times its own duration have passed: 5 % of one thread."""
MAX_ENTRIES = 10_000
NOTHING = Usage(0, 0)


class Quota(NamedTuple):
    """What a bucket may hold; None: as much as there is room for."""

    bytes: int | None = None
    objects: int | None = None


def quota_of(bucket: Bucket) -> Quota | None:
    """The quota of a bucket, if it has one."""
    return _parsed(bucket.settings) if bucket.settings else None


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> Quota | None:
    found = orjson.loads(settings).get(SETTING)
    return None if found is None else Quota(**found)


def to_setting(quota: Quota) -> dict[str, int | None] | None:
    """A quota as it is stored; None for one that says nothing."""
    return None if quota == Quota() else quota._asdict()


class _Count:
    """What a bucket held when it was counted, what came since, and what is on its way."""

    def __init__(self) -> None:
        self.usage = NOTHING
        self.coming = NOTHING
        self.since = NOTHING
        """What came while it was counted, and so may be in the count or not."""
        self.next = self.stale = 0.0
        self.lock = asyncio.Lock()

    def has_room(self, quota: Quota, more: Usage) -> bool:
        """Whether so much more is within the quota. What adds none of a kind is, however much there is."""
        used = _plus(self.usage, self.coming)
        return (not more.bytes or quota.bytes is None or used.bytes + more.bytes <= quota.bytes) and (
            not more.objects or quota.objects is None or used.objects + more.objects <= quota.objects
        )


class Quotas:
    """The counts of one worker."""

    def __init__(self, index: Index, now: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._now = now
        self._counts: dict[int, _Count] = {}

    def room(self, bucket: Bucket) -> Room:
        """Room in a bucket, for one write that is made while it is held."""
        quota = quota_of(bucket)
        if quota is None:
            return Room(None)
        if len(self._counts) >= MAX_ENTRIES:
            self._counts.clear()
        return Room(_Of(self, bucket, quota, self._counts.setdefault(bucket.id, _Count())))

    async def admit(self, bucket: Bucket, quota: Quota, count: _Count, more: Usage) -> None:
        """Let something come. Raises QuotaExceeded."""
        async with count.lock:
            counted = self._now() >= count.stale
            if counted:
                await self._count(count, bucket)
            if not counted and not count.has_room(quota, more) and self._now() >= count.next:
                await self._count(count, bucket)  # something may have been deleted
            if not count.has_room(quota, more):
                raise QuotaExceeded(bucket=bucket.name)
            count.coming = _plus(count.coming, more)

    async def _count(self, count: _Count, bucket: Bucket) -> None:
        began = self._now()
        count.since = NOTHING
        found = await self._index.bucket_usage(bucket.id)
        count.usage = _plus(found, count.since)
        count.next = began + SHARE * (self._now() - began)
        count.stale = max(count.next, began + FRESH)


class _Of(NamedTuple):
    quotas: Quotas
    bucket: Bucket
    quota: Quota
    counted: _Count


class Room:
    """Room in a bucket for one write. Entered around the write: what it takes counts as coming until it is left."""

    def __init__(self, of: _Of | None) -> None:
        self._of = of
        self._taken = NOTHING

    async def take(self, size: int | None, objects: int = 1) -> None:
        """Take room for so many bytes (None: nobody knows how many) and objects, instead of what was taken before.

        Raises QuotaExceeded.
        """
        if self._of is None:
            return
        self._give_back(self._of.counted)
        wanted = Usage(1 if size is None else size, objects)
        await self._of.quotas.admit(self._of.bucket, self._of.quota, self._of.counted, wanted)
        self._taken = wanted

    def _give_back(self, count: _Count) -> None:
        count.coming = _plus(count.coming, self._taken, -1)
        self._taken = NOTHING

    async def __aenter__(self) -> Room:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if self._of is None:
            return
        count, taken = self._of.counted, self._taken
        self._give_back(count)
        if error is None:
            count.usage = _plus(count.usage, taken)
            count.since = _plus(count.since, taken)


def _plus(one: Usage, other: Usage, sign: int = 1) -> Usage:
    return Usage(one.bytes + sign * other.bytes, one.objects + sign * other.objects)
