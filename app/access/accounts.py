"""Who a request is from: access keys with their accounts, cached under the index's generation (law 7)."""

from __future__ import annotations

import time

from app.index.base import Index
from app.index.rows import AccessKey

MAX_AGE = 2.0
"""Seconds after which an entry is read again even if no generation changed."""
MAX_ENTRIES = 10_000


class Accounts:
    """Looks up access keys. A change in any process bumps the generation and so empties this cache at once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._emptied = 0.0
        self._keys: dict[str, AccessKey] = {}

    async def lookup(self, access_key: str) -> AccessKey | None:
        """The key with its secret and account, or None when there is no such key."""
        generation = self._index.generation
        now = time.monotonic()
        if generation != self._generation or now - self._emptied > MAX_AGE or len(self._keys) > MAX_ENTRIES:
            self._keys = {}
            self._generation = generation
            self._emptied = now
        found = self._keys.get(access_key)
        if found is None:
            found = await self._index.access_key(access_key)
            if found is not None:
                self._keys[access_key] = found
        return found
