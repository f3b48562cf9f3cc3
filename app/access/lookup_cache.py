"""Lookup cache of access keys and buckets, valid for one epoch (law 7)."""

from __future__ import annotations

from time import monotonic
from typing import TypeVar

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import AccessKey
from sluice_s3.app.index.interface import Index

MAX_AGE_SECONDS = 2.0
"""Seconds after which an entry is read again even in the same epoch."""
MAX_ENTRIES = 10_000

T = TypeVar("T")


class LookupCache:
    """Looks up access keys and buckets. A change in any process starts a new epoch, which empties both caches.

    An entry is stored in the dictionary of the epoch at which its read began. If the epoch changes during the read,
    that dictionary is no longer used, so that no stale value is served. Misses are not cached.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._stale = 0.0
        self._entries: tuple[dict[str, AccessKey], dict[str, Bucket]] = ({}, {})

    def entries(self) -> tuple[dict[str, AccessKey], dict[str, Bucket]]:
        """Return the cached keys and buckets of the present epoch."""
        generation = self._index.generation
        now = monotonic()
        if generation != self._generation or now > self._stale:
            self._entries = ({}, {})
            self._generation = generation
            self._stale = now + MAX_AGE_SECONDS
        return self._entries

    async def key(self, access_key: str) -> AccessKey | None:
        """Return the key with its secret and account; None if there is no such key."""
        keys, _ = self.entries()
        return keys.get(access_key) or _keep(keys, access_key, await self._index.access_key(access_key))

    async def bucket(self, name: str) -> Bucket | None:
        """Return the bucket of that name; None if there is none."""
        _, buckets = self.entries()
        return buckets.get(name) or _keep(buckets, name, await self._index.bucket(name))


def _keep(entries: dict[str, T], name: str, found: T | None) -> T | None:
    if found is not None and len(entries) < MAX_ENTRIES:
        entries[name] = found
    return found
