"""Access keys and buckets that requests name again and again, cached under the index's generation (law 7)."""

from __future__ import annotations

from time import monotonic
from typing import Any, TypeVar

from app.index.base import Index
from app.index.rows import AccessKey, Bucket

MAX_AGE = 2.0
"""Seconds after which an entry is read again even if no generation changed."""
MAX_ENTRIES = 10_000
KEYS, BUCKETS = 0, 1

T = TypeVar("T")


class Known:
    """Looks up access keys and buckets. A change in any process bumps the generation and so empties both caches.

    Entries go into the dictionary that was current before they were read, which nobody asks any more if the
    generation changed meanwhile. What is not there is never remembered.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._stale = 0.0
        self._entries: tuple[dict[str, AccessKey], dict[str, Bucket]] = ({}, {})

    def _fresh(self, kind: int) -> dict[str, Any]:
        generation = self._index.generation
        now = monotonic()
        if generation != self._generation or now > self._stale:
            self._entries = ({}, {})
            self._generation = generation
            self._stale = now + MAX_AGE
        return self._entries[kind]

    async def key(self, access_key: str) -> AccessKey | None:
        """The key with its secret and account, or None when there is no such key."""
        keys = self._fresh(KEYS)
        return keys.get(access_key) or _keep(keys, access_key, await self._index.access_key(access_key))

    def key_now(self, access_key: str) -> AccessKey | None:
        """The same without an await. Raises NotNow."""
        keys = self._fresh(KEYS)
        return keys.get(access_key) or _keep(keys, access_key, self._index.access_key_now(access_key))

    async def bucket(self, name: str) -> Bucket | None:
        """The bucket of that name, or None when there is none."""
        buckets = self._fresh(BUCKETS)
        return buckets.get(name) or _keep(buckets, name, await self._index.bucket(name))

    def bucket_now(self, name: str) -> Bucket | None:
        """The same without an await. Raises NotNow."""
        buckets = self._fresh(BUCKETS)
        return buckets.get(name) or _keep(buckets, name, self._index.bucket_now(name))


def _keep(entries: dict[str, T], name: str, found: T | None) -> T | None:
    if found is not None and len(entries) < MAX_ENTRIES:
        entries[name] = found
    return found
