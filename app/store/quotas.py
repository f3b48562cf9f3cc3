"""Quotas of buckets: how many bytes and objects one may hold.

What a bucket holds is counted by each worker for itself, from the index, and what the worker lets in is added until it
counts again; so is what the other workers of its gateway let in, which they tell it (`Shares`). So a quota is passed by
what two workers let in within the same microseconds, and by what other gateways let in between two counts: each at most
what was left of the quota then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

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
MOST = 2**64 - 1
"""That a quota can say: what JSON holds as a whole number everywhere."""
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


class Shares(Protocol):
    """What the workers of a gateway tell each other."""

    def tell(self, bucket_id: int, coming: Usage, came: Usage) -> None:
        """So much more is on its way into a bucket in this worker (less, where negative), and so much more came."""
        ...

    def others(self, bucket_id: int) -> tuple[Usage, Usage]:
        """What is on its way in the other workers, and what came there since the gateway started."""
        ...


class Alone:
    """The shares of a process that has no others."""

    def tell(self, bucket_id: int, coming: Usage, came: Usage) -> None:
        """Nobody listens."""

    def others(self, bucket_id: int) -> tuple[Usage, Usage]:
        """Nothing."""
        return NOTHING, NOTHING


class _Count:
    """What a bucket held when it was counted, what came since, and what is on its way."""

    def __init__(self) -> None:
        self.usage = NOTHING
        self.coming = NOTHING
        self.since = NOTHING
        """What came while it was counted, and so may be in the count or not."""
        self.elsewhere = NOTHING
        """What had come in other workers when it was counted."""
        self.next = self.stale = 0.0
        self.lock = asyncio.Lock()

    def has_room(self, quota: Quota, more: Usage, others: tuple[Usage, Usage]) -> bool:
        """Whether so much more is within the quota. What adds none of a kind is, however much there is."""
        coming, came = others
        used = _plus(_plus(self.usage, self.coming), _plus(coming, _plus(came, self.elsewhere, -1)))
        return (not more.bytes or quota.bytes is None or used.bytes + more.bytes <= quota.bytes) and (
            not more.objects or quota.objects is None or used.objects + more.objects <= quota.objects
        )


class Quotas:
    """The counts of one worker."""

    def __init__(self, index: Index, now: Callable[[], float] = time.monotonic, shares: Shares | None = None) -> None:
        self._index = index
        self._now = now
        self.shares = shares or Alone()
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
            others = self.shares.others(bucket.id)
            if not counted and not count.has_room(quota, more, others) and self._now() >= count.next:
                await self._count(count, bucket)  # something may have been deleted
                others = self.shares.others(bucket.id)
            if not count.has_room(quota, more, others):
                raise QuotaExceeded(bucket=bucket.name)
            count.coming = _plus(count.coming, more)
            self.shares.tell(bucket.id, more, NOTHING)

    async def _count(self, count: _Count, bucket: Bucket) -> None:
        began = self._now()
        count.since = NOTHING
        _, came = self.shares.others(bucket.id)  # before the look, which may see what comes meanwhile
        found = await self._index.bucket_usage(bucket.id)
        count.usage = _plus(found, count.since)
        count.elsewhere = came
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
        """Take room for so many bytes (None: nobody knows how many yet) and objects, instead of what was taken before.

        What is of unknown size takes its room while it comes. Raises QuotaExceeded.
        """
        if self._of is None:
            return
        self._give_back(self._of, NOTHING)
        wanted = Usage(1 if size is None else size, objects)
        await self._of.quotas.admit(self._of.bucket, self._of.quota, self._of.counted, wanted)
        self._taken = wanted

    def _give_back(self, of: _Of, came: Usage) -> None:
        """What was taken is on its way no more; what of it came is to be seen before that is told."""
        of.counted.coming = _plus(of.counted.coming, self._taken, -1)
        if self._taken != NOTHING:
            of.quotas.shares.tell(of.bucket.id, _plus(NOTHING, self._taken, -1), came)
        self._taken = NOTHING

    async def __aenter__(self) -> Room:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if self._of is None:
            return
        count, taken = self._of.counted, self._taken
        self._give_back(self._of, taken if error is None else NOTHING)
        if error is None:
            count.usage = _plus(count.usage, taken)
            count.since = _plus(count.since, taken)


def _plus(one: Usage, other: Usage, sign: int = 1) -> Usage:
    return Usage(one.bytes + sign * other.bytes, one.objects + sign * other.objects)
