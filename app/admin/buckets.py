"""Buckets in the admin API: their stores and quotas."""

from __future__ import annotations

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import BucketOut, QuotaIn, QuotaOut
from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.store.quotas import SETTING, Quota, quota_of, to_setting

router = APIRouter(tags=["buckets"], route_class=StrictRoute)


def _index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


async def _bucket(request: Request, name: str) -> Bucket:
    bucket = await _index(request).bucket(name)
    if bucket is None:
        raise HTTPException(404, "no such bucket")
    return bucket


@router.get("/buckets/{name}", dependencies=[Depends(require("sluice:ListBuckets"))])
async def get_bucket(request: Request, name: str) -> BucketOut:
    """Return a bucket with its store."""
    return BucketOut.of(await _bucket(request, name))


@router.get("/buckets/{name}/quota", dependencies=[Depends(require("sluice:GetQuota"))])
async def get_quota(request: Request, name: str) -> QuotaOut:
    """Return the quota of a bucket and its usage."""
    bucket = await _bucket(request, name)
    used = await _index(request).bucket_usage(bucket.id)
    quota = quota_of(bucket) or Quota()
    return QuotaOut(**quota._asdict(), used_bytes=used.bytes, used_objects=used.objects)


@router.put("/buckets/{name}/quota", status_code=204, dependencies=[Depends(require("sluice:ManageQuota"))])
async def put_quota(request: Request, name: str, body: QuotaIn) -> None:
    """Set the quota of a bucket; without both limits it is unlimited."""
    bucket = await _bucket(request, name)
    quota = Quota(body.bytes, body.objects)
    await _index(request).configure_bucket(bucket.id, SETTING, to_setting(quota))
