"""The setting of a bucket with object lock."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluice_s3.app.errors import InvalidBucketState, NoSuchBucket
from sluice_s3.app.index.buckets.statements import SET_SETTINGS
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.versioning.statements import VERSIONING


def set_object_lock(bucket_id: int, default: Sequence[object]) -> Transaction[None]:
    """Enable object lock permanently, or set its default retention; see `object_lock.SETTING`.

    Raises NoSuchBucket, and InvalidBucketState in a bucket without versioning.
    """
    rows = yield VERSIONING, (bucket_id,)
    if not rows:
        raise NoSuchBucket()
    versioning, _, settings = rows[0]
    if versioning != ENABLED:
        raise InvalidBucketState()
    changed = {**orjson.loads(settings or "{}"), object_lock.SETTING: list(default)}
    yield SET_SETTINGS, (orjson.dumps(changed).decode(), bucket_id)
