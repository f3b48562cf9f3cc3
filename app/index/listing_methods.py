"""The listings of `app.index.base.Index`, the same for every engine."""

from __future__ import annotations

from typing import TypeVar

from app.index import listing, listing_versions
from app.index.rows import Page
from app.index.steps import Transaction
from app.index.version_rows import VersionsPage

T = TypeVar("T")


class ListingMethods:
    """A part of `app.index.methods.Methods`."""

    async def _read(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def _read_together(self, transaction: Transaction[T]) -> T:
        raise NotImplementedError

    async def list_versions(
        self,
        bucket_id: int,
        prefix: str,
        delimiter: str,
        key_marker: str,
        version_id: str,
        limit: int,
        *,
        headers: bool = False,
    ) -> VersionsPage:
        marker = (key_marker, version_id)
        return await self._read_together(
            listing_versions.page(bucket_id, prefix, delimiter, marker, limit, headers=headers)
        )

    async def list_current(
        self, bucket_id: int, prefix: str, delimiter: str, after: str, limit: int, *, headers: bool = False
    ) -> Page:
        read = self._read_together if delimiter else self._read
        return await read(listing.list_current(bucket_id, prefix, delimiter, after, limit, headers=headers))
