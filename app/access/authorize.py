"""The one place that says yes or no. Everything not said yes to here is refused."""

from __future__ import annotations

from app.index.rows import Bucket

SERVICE_ACTIONS = frozenset({"s3:ListAllMyBuckets", "s3:CreateBucket"})


def authorize(account_id: str | None, action: str, bucket: Bucket | None) -> bool:
    """Whether an account (None: anonymous) may do `action`, on `bucket` if the action is on one.

    A bucket and all that is in it belong to one account, and nobody else may do anything with it.
    """
    if account_id is None:
        return False
    if bucket is None:
        return action in SERVICE_ACTIONS
    return bucket.owner_id == account_id
