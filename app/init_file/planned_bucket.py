"""A bucket as it would be: what handlers of settings write stays in a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from sluice_s3.app.access.bucket_access import POLICY
from sluice_s3.app.errors import InvalidBucketState
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.object_lock.protection import SETTING as OBJECT_LOCK
from sluice_s3.app.index.schema.tables import ENABLED


class PlannedBucket:
    """An index for the handlers of one bucket: it reads from the real one, and keeps changes of settings in `row`."""

    def __init__(self, index: Index, row: Bucket) -> None:
        self._index = index
        self.row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def configure_bucket(self, _bucket_id: int, name: str, value: Any) -> None:
        """See `Index.configure_bucket`."""
        settings = settings_of(self.row)
        settings.pop(name, None)
        if value is not None:
            settings[name] = value
        self.row = self.row._replace(settings=orjson.dumps(settings).decode())

    async def set_versioning(self, _bucket_id: int, versioning: int) -> None:
        """See `Index.set_versioning`. Raises InvalidBucketState."""
        if versioning != ENABLED and OBJECT_LOCK in settings_of(self.row):
            raise InvalidBucketState()
        self.row = self.row._replace(versioning=versioning)

    async def set_object_lock(self, bucket_id: int, default: Sequence[object]) -> None:
        """See `Index.set_object_lock`. Raises InvalidBucketState."""
        if self.row.versioning != ENABLED:
            raise InvalidBucketState()
        await self.configure_bucket(bucket_id, OBJECT_LOCK, list(default))


def settings_of(row: Bucket) -> dict[str, Any]:
    """Return the settings of a bucket by name."""
    found: dict[str, Any] = orjson.loads(row.settings or "{}")
    return found


def is_same(one: Bucket, other: Bucket) -> bool:
    """Return whether two rows have the same settings, whatever the white space of their policies."""
    return one.versioning == other.versioning and _comparable(one) == _comparable(other)


def _comparable(row: Bucket) -> dict[str, Any]:
    found = settings_of(row)
    if isinstance(found.get(POLICY), str):
        found[POLICY] = orjson.loads(found[POLICY])
    return found
