"""Buckets and their settings."""

from __future__ import annotations

from typing import Any

import orjson

from sluice_s3.app.errors import (
    BucketAlreadyExists,
    BucketAlreadyOwnedByYou,
    BucketNotEmpty,
    NoSuchBucket,
    TooManyBuckets,
)
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.buckets.statements import (
    ADD_BUCKET,
    ANY_CURRENT,
    ANY_OTHER,
    BUCKET,
    BUCKET_ID,
    BUCKETS,
    COUNT_BUCKETS,
    REMOVE_BUCKET,
    SET_SETTINGS,
    SETTINGS,
    STORES_IN_USE,
)
from sluice_s3.app.index.multipart.statements import OPEN_UPLOADS
from sluice_s3.app.index.multipart.transactions import abort
from sluice_s3.app.index.objects.listing import successor
from sluice_s3.app.index.plain_files.statements import ANY_INTENT
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms


def bucket(name: str) -> Transaction[Bucket | None]:
    """Return a bucket by its name."""
    rows = yield BUCKET, (name,)
    return Bucket._make(rows[0]) if rows else None


def buckets(owner_id: str, prefix: str, after: str, limit: int) -> Transaction[list[Bucket]]:
    """Return the buckets of an owner, ordered by name.

    Their names start with `prefix` and are greater than `after`.
    """
    rows = yield BUCKETS, (owner_id, max(prefix, after + "\0" if after else ""), successor(prefix), limit)
    return [Bucket._make(row) for row in rows]


def create_bucket(
    name: str, owner_id: str, region: str, maximum: int, store: str = DEFAULT, settings: str = "", versioning: int = 0
) -> Transaction[Bucket]:
    """Create a bucket with an id that is never reused.

    Raises BucketAlreadyExists, BucketAlreadyOwnedByYou or TooManyBuckets (over `maximum` for the owner).
    """
    rows = yield BUCKET, (name,)
    if rows:
        existing = Bucket._make(rows[0])
        raise BucketAlreadyOwnedByYou() if existing.owner_id == owner_id else BucketAlreadyExists()
    rows = yield COUNT_BUCKETS, (owner_id,)
    if rows[0][0] >= maximum:
        raise TooManyBuckets(maximum=maximum)
    bucket_id = yield DRAW
    bucket = Bucket(bucket_id, name, owner_id, region, now_ms(), store, settings=settings, versioning=versioning)
    yield ADD_BUCKET, bucket
    return bucket


def configure_bucket(bucket_id: int, name: str, value: Any) -> Transaction[None]:
    """Set one setting of a bucket to a JSON value; None removes it.

    Raises NoSuchBucket. `value` may be a function that computes the new value from the current one. It may be called
    more than once.
    """
    rows = yield SETTINGS, (bucket_id,)
    if not rows:
        raise NoSuchBucket()
    settings = orjson.loads(rows[0][0] or "{}")
    current = settings.pop(name, None)
    if callable(value):  # in the transaction, because others may change another part of it at the same time
        value = value(current)
    if value is not None:
        settings[name] = value
    yield SET_SETTINGS, (orjson.dumps(settings).decode() if settings else "", bucket_id)


def stores_in_use() -> Transaction[dict[str, int]]:
    """Return the number of buckets with data on each store.

    A bucket that is being moved counts for both stores.
    """
    used: dict[str, int] = {}
    for store, source, count in (yield STORES_IN_USE, ()):
        for name in filter(None, (store, source)):
            used[name] = used.get(name, 0) + count
    return used


def delete_bucket(bucket_id: int) -> Transaction[None]:
    """Remove an empty bucket and abort its open uploads.

    Raises NoSuchBucket, or BucketNotEmpty when a version or write intent is left.
    """
    if not (yield BUCKET_ID, (bucket_id,)):
        raise NoSuchBucket()
    rows = (yield ANY_CURRENT, (bucket_id,)) or (yield ANY_OTHER, (bucket_id,)) or (yield ANY_INTENT, (bucket_id,))
    if rows:
        raise BucketNotEmpty()
    for (number,) in (yield OPEN_UPLOADS, (bucket_id,)):
        yield from abort(number)
    yield REMOVE_BUCKET, (bucket_id,)
