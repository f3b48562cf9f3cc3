"""Access keys and buckets that requests name again and again, cached under the index's generation (law 7)."""

from __future__ import annotations

import time

from app.index.base import Index
from app.index.rows import AccessKey, Bucket

MAX_AGE = 2.0
"""Seconds after which an entry is read again even if no generation changed."""
MAX_ENTRIES = 10_000


class Known:
    """Looks up access keys and buckets. A change in any process bumps the generation and so empties both caches.

    Entries go into the dictionary that was current before they were read, which nobody asks any more if the
    generation changed meanwhile. What is not there is never remembered.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._stale = 0.0
        self._keys: dict[str, AccessKey] = {}
        self._buckets: dict[str, Bucket] = {}

    def _refresh(self) -> None:
        generation = self._index.generation
        now = time.monotonic()
        if generation != self._generation or now > self._stale:
            self._keys = {}
            self._buckets = {}
            self._generation = generation
            self._stale = now + MAX_AGE

    async def key(self, access_key: str) -> AccessKey | None:
        """The key with its secret and account, or None when there is no such key."""
        self._refresh()
        keys = self._keys
        found = keys.get(access_key)
        if found is None:
            found = await self._index.access_key(access_key)
            if found is not None and len(keys) < MAX_ENTRIES:
                keys[access_key] = found
        return found

    def key_now(self, access_key: str) -> AccessKey | None:
        """The same without an await. Raises NotNow."""
        self._refresh()
        found = self._keys.get(access_key)
        if found is None:
            found = self._index.access_key_now(access_key)
            if found is not None and len(self._keys) < MAX_ENTRIES:
                self._keys[access_key] = found
        return found

    async def bucket(self, name: str) -> Bucket | None:
        """The bucket of that name, or None when there is none."""
        self._refresh()
        buckets = self._buckets
        found = buckets.get(name)
        if found is None:
            found = await self._index.bucket(name)
            if found is not None and len(buckets) < MAX_ENTRIES:
                buckets[name] = found
        return found

    def bucket_now(self, name: str) -> Bucket | None:
        """The same without an await. Raises NotNow."""
        self._refresh()
        found = self._buckets.get(name)
        if found is None:
            found = self._index.bucket_now(name)
            if found is not None and len(self._buckets) < MAX_ENTRIES:
                self._buckets[name] = found
        return found
