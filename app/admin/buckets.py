"""Buckets over the admin API: which store one is on, and its quota."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request

from app.admin.bodies import StrictRoute
from app.admin.models import BucketOut, QuotaIn, QuotaOut
from app.index import Index
from app.index.rows import Bucket
from app.store.quotas import SETTING, Quota, quota_of, to_setting

router = APIRouter(tags=["buckets"], route_class=StrictRoute)


def _index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


async def _bucket(request: Request, name: str) -> Bucket:
    bucket = await _index(request).bucket(name)
    if bucket is None:
        raise HTTPException(404, "no such bucket")
    return bucket


@router.get("/buckets/{name}")
async def get_bucket(request: Request, name: str) -> BucketOut:
    """One bucket, with the store that it is on."""
    return BucketOut.of(await _bucket(request, name))


@router.get("/buckets/{name}/quota")
async def get_quota(request: Request, name: str) -> QuotaOut:
    """What a bucket may hold, and what it holds."""
    bucket = await _bucket(request, name)
    used = await _index(request).bucket_usage(bucket.id)
    quota = quota_of(bucket) or Quota()
    return QuotaOut(**quota._asdict(), used_bytes=used.bytes, used_objects=used.objects)


@router.put("/buckets/{name}/quota", status_code=204)
async def put_quota(request: Request, name: str, body: QuotaIn) -> None:
    """Say what a bucket may hold; without both it may hold all that there is room for."""
    bucket = await _bucket(request, name)
    quota = Quota(body.bytes, body.objects)
    await _index(request).configure_bucket(bucket.id, SETTING, to_setting(quota))
