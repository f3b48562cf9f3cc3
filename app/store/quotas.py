"""Quotas: how many bytes and objects a bucket may hold.

Each worker counts a bucket in the index, and adds what it admits until the next count. It also adds what the other
workers of its gateway admit, which they publish (`PeerUsage`). So two workers can exceed a quota within the same
microseconds, and other gateways between two counts: each by at most what was left of the quota then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

import orjson

from sluice_s3.app.errors import QuotaExceeded
from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.interface import Index

SETTING = "quota"
"""Name of the bucket's setting."""
FRESH_SECONDS = 1.0
"""Seconds that a count is valid; longer when counting takes long."""
COUNT_PAUSE_FACTOR = 20
"""A count is repeated only after this many times its own duration: 5 % of one thread."""
MAX_ENTRIES = 10_000
MAX_QUOTA = 2**64 - 1
"""The largest quota: a whole number that JSON holds everywhere."""
NO_USAGE = Usage(0, 0)


class Quota(NamedTuple):
    """The limits of a bucket; None means unlimited."""

    bytes: int | None = None
    objects: int | None = None


def quota_of(bucket: Bucket) -> Quota | None:
    """Return the quota of a bucket, or None."""
    return _parsed(bucket.settings) if bucket.settings else None


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> Quota | None:
    found = orjson.loads(settings).get(SETTING)
    return None if found is None else Quota(**found)


def to_setting(quota: Quota) -> dict[str, int | None] | None:
    """Return the stored form of a quota; None for one without limits."""
    return None if quota == Quota() else quota._asdict()


class PeerUsage(Protocol):
    """Usage that the workers of a gateway publish to each other."""

    def report(self, bucket_id: int, pending: Usage, stored: Usage) -> None:
        """Publish that this worker admitted more bytes (fewer if negative), and that more arrived."""
        ...

    def find_peer_usage(self, bucket_id: int) -> tuple[Usage, Usage]:
        """Return what the other workers have under way, and what arrived there since the start."""
        ...


class NoPeers:
    """The peer usage of a process without other workers."""

    def report(self, bucket_id: int, pending: Usage, stored: Usage) -> None:
        """Do nothing."""

    def find_peer_usage(self, bucket_id: int) -> tuple[Usage, Usage]:
        """Return no usage."""
        return NO_USAGE, NO_USAGE


class _Count:
    """A bucket's usage when it was counted, its arrivals since, and its usage under way."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.pending = NO_USAGE
        self.stored_since = NO_USAGE
        """What arrived during the count, and so may or may not be in it."""
        self.peer_stored = NO_USAGE
        """What had arrived in other workers when it was counted."""
        self.next = self.stale = 0.0
        self.lock = asyncio.Lock()

    def has_room(self, quota: Quota, more: Usage, peer_usage: tuple[Usage, Usage]) -> bool:
        """Return whether `more` fits into the quota. Adding nothing of a kind always fits."""
        pending, stored = peer_usage
        used = _plus(_plus(self.usage, self.pending), _plus(pending, _plus(stored, self.peer_stored, -1)))
        return (not more.bytes or quota.bytes is None or used.bytes + more.bytes <= quota.bytes) and (
            not more.objects or quota.objects is None or used.objects + more.objects <= quota.objects
        )


class Quotas:
    """The counts of one worker."""

    def __init__(
        self, index: Index, now: Callable[[], float] = time.monotonic, shares: PeerUsage | None = None
    ) -> None:
        self._index = index
        self._now = now
        self.shares = shares or NoPeers()
        self._counts: dict[int, _Count] = {}

    def room(self, bucket: Bucket) -> QuotaReservation:
        """Reserve room in a bucket for one write, while the reservation is held."""
        quota = quota_of(bucket)
        if quota is None:
            return QuotaReservation(None)
        if len(self._counts) >= MAX_ENTRIES:
            self._counts.clear()
        return QuotaReservation(_Of(self, bucket, quota, self._counts.setdefault(bucket.id, _Count())))

    async def admit(self, bucket: Bucket, quota: Quota, count: _Count, more: Usage) -> None:
        """Admit a write. Raises QuotaExceeded."""
        async with count.lock:
            counted = self._now() >= count.stale
            if counted:
                await self._count(count, bucket)
            peer_usage = self.shares.find_peer_usage(bucket.id)
            if not counted and not count.has_room(quota, more, peer_usage) and self._now() >= count.next:
                await self._count(count, bucket)  # objects may have been deleted
                peer_usage = self.shares.find_peer_usage(bucket.id)
            if not count.has_room(quota, more, peer_usage):
                raise QuotaExceeded(bucket=bucket.name)
            count.pending = _plus(count.pending, more)
            self.shares.report(bucket.id, more, NO_USAGE)

    async def _count(self, count: _Count, bucket: Bucket) -> None:
        began = self._now()
        count.stored_since = NO_USAGE
        _, stored = self.shares.find_peer_usage(bucket.id)  # before the check, which may see what arrives meanwhile
        found = await self._index.bucket_usage(bucket.id)
        count.usage = _plus(found, count.stored_since)
        count.peer_stored = stored
        count.next = began + COUNT_PAUSE_FACTOR * (self._now() - began)
        count.stale = max(count.next, began + FRESH_SECONDS)


class _Of(NamedTuple):
    quotas: Quotas
    bucket: Bucket
    quota: Quota
    counted: _Count


class QuotaReservation:
    """Room in a bucket for one write.

    A context manager around the write: what it takes counts as under way until it exits.
    """

    def __init__(self, of: _Of | None) -> None:
        self._bucket_quota = of
        self._reserved = NO_USAGE

    async def take(self, size: int | None, objects: int = 1) -> None:
        """Reserve bytes (None: unknown size) and objects, instead of what was reserved before.

        A write of unknown size takes its room as it arrives. Raises QuotaExceeded.
        """
        if self._bucket_quota is None:
            return
        self._release(self._bucket_quota, NO_USAGE)
        usage = Usage(1 if size is None else size, objects)
        await self._bucket_quota.quotas.admit(
            self._bucket_quota.bucket, self._bucket_quota.quota, self._bucket_quota.counted, usage
        )
        self._reserved = usage

    def _release(self, of: _Of, stored: Usage) -> None:
        """Release what was reserved. What arrived must be visible before that is published."""
        of.counted.pending = _plus(of.counted.pending, self._reserved, -1)
        if self._reserved != NO_USAGE:
            of.quotas.shares.report(of.bucket.id, _plus(NO_USAGE, self._reserved, -1), stored)
        self._reserved = NO_USAGE

    async def __aenter__(self) -> QuotaReservation:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if self._bucket_quota is None:
            return
        count, reserved = self._bucket_quota.counted, self._reserved
        self._release(self._bucket_quota, reserved if error is None else NO_USAGE)
        if error is None:
            count.usage = _plus(count.usage, reserved)
            count.stored_since = _plus(count.stored_since, reserved)


def _plus(usage: Usage, other: Usage, sign: int = 1) -> Usage:
    return Usage(usage.bytes + sign * other.bytes, usage.objects + sign * other.objects)
