"""Quotas of buckets: MinIO's is one of bytes; one of objects, set elsewhere, stays as it is."""

from __future__ import annotations

from pydantic import Field

from sluice_s3.app.access.authorize import resource_of
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.minio.call import AdminCall, Fields, done, plain
from sluice_s3.app.s3.minio.errors import not_here
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.store.quotas import MAX_QUOTA, SETTING, Quota, quota_of, to_setting

HARD = "hard"


class BucketQuota(Fields):
    """The body of set-bucket-quota. `quota` is the older name of `size`, and comes with it."""

    quota: int = Field(0, ge=0, le=MAX_QUOTA)
    size: int = Field(0, ge=0, le=MAX_QUOTA)
    rate: int = 0
    requests: int = 0
    type: str = Field("", alias="quotatype")


async def _bucket(call: AdminCall, action: str) -> Bucket:
    """Return the bucket of the query; the caller must be allowed `action` on it."""
    name = call.parameter("bucket")
    await call.require_operator(action, resource_of(None, None, name))
    return await call.services.bucket(name)


@route("GET", "get-bucket-quota")
async def get_bucket_quota(call: AdminCall) -> Response:
    """Return the quota of a bucket; 0 bytes: it has none."""
    limit = (quota_of(await _bucket(call, "admin:GetBucketQuota")) or Quota()).bytes
    found: dict[str, int | str] = {"quota": limit or 0, "size": limit or 0, "rate": 0, "requests": 0}
    return plain(found if limit is None else {**found, "quotatype": HARD})


@route("PUT", "set-bucket-quota")
async def set_bucket_quota(call: AdminCall) -> Response:
    """Set the quota of a bucket; 0 bytes take it away."""
    bucket = await _bucket(call, "admin:SetBucketQuota")
    body = await call.read(BucketQuota, encrypted=False)
    if body.rate or body.requests:
        raise not_here("a quota of requests or bandwidth")
    if body.type not in ("", HARD):
        raise not_here(f"a quota of the type {body.type[:64]!r}")
    quota = Quota(body.size or body.quota or None, (quota_of(bucket) or Quota()).objects)
    await call.services.index.configure_bucket(bucket.id, SETTING, to_setting(quota))
    return done()
