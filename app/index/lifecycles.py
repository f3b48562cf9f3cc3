"""The part of the index seam that lifecycle rules are run by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.index.lifecycle import Expired, Place
from app.index.restores import Pending, Restore
from app.index.rows import Bucket
from app.index.steps import Row
from app.index.transitions import Reclassed


class Lifecycles(Protocol):
    """See `app.index.base.Index`, which this is a part of."""

    async def lifecycle_buckets(self) -> list[Bucket]:
        """Buckets that have lifecycle rules."""
        ...

    async def lifecycle_page(
        self, bucket_id: int, place: Place, end: str, *, tags: bool
    ) -> tuple[list[Row], Place | None]:
        """Versions from a place on and before the key `end`; see `app.index.lifecycle.page`."""
        ...

    async def expire(self, bucket_id: int, settings: str, entries: Sequence[Expired]) -> list[bool] | None:
        """Take away versions that are still what they were judged to be; see `app.index.transactions.expiry`.

        At most 100 entries.
        """
        ...

    async def expire_uploads(self, bucket_id: int, settings: str, numbers: Sequence[int]) -> int | None:
        """End those of these uploads that are open, at most 100; how many, or None as `expire`."""
        ...

    async def reclass(self, bucket: Bucket, settings: str | None, entries: Sequence[Reclassed]) -> list[int] | None:
        """Give versions another storage class and other places; see `app.index.transactions.transitions`."""
        ...

    async def ask_restore(
        self, bucket_id: int, key: str, version_id: str, seq: int, headers: str, restore: Restore
    ) -> int:
        """Give an archived version another state; see `app.index.transactions.restores`."""
        ...

    async def restores_due(self, now: int, limit: int) -> list[Pending]:
        """Archived versions that are to be looked at by now."""
        ...

    async def bucket_of(self, bucket_id: int) -> Bucket | None:
        """The bucket of that number."""
        ...

    async def look_later(self, pending: Pending, value: str) -> None:
        """Look at an archived version again at the time of that note, never when it is empty."""
        ...
