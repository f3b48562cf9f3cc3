"""Quotas of buckets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.rights import NO_BUCKET, BucketRights, find_bucket
from sluice_s3.app.admin.models import QuotaIn, QuotaOut
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.errors import NoSuchBucket
from sluice_s3.app.index import Index
from sluice_s3.app.store.quotas import SETTING, Quota, quota_of, to_setting

router = APIRouter(route_class=StrictRoute)


@router.get("/buckets/{name}/quota")
async def get_quota(request: Request, name: str, caller: Annotated[Caller, Depends(require())]) -> QuotaOut:
    """Return the quota of a bucket and its usage (`s3:ListBucket` on it, or `sluice:GetQuota`).

    Counts the bucket at once, which reads all of its rows.
    """
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    if not (BucketRights(caller, request).may("s3:ListBucket", bucket) or caller.may("sluice:GetQuota")):
        raise HTTPException(403, f"You need the permission s3:ListBucket on the bucket {name} for this. Ask its owner.")
    used = await index.bucket_usage(bucket.id)
    quota = quota_of(bucket) or Quota()
    return QuotaOut(**quota._asdict(), used_bytes=used.bytes, used_objects=used.objects)


@router.put("/buckets/{name}/quota", status_code=204)
async def put_quota(
    request: Request, name: str, body: QuotaIn, _: Annotated[Caller, Depends(require("sluice:ManageQuota"))]
) -> None:
    """Set the quota of a bucket; without both limits it is unlimited."""
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    try:
        await index.configure_bucket(bucket.id, SETTING, to_setting(Quota(body.bytes, body.objects)))
    except NoSuchBucket:
        raise HTTPException(404, NO_BUCKET) from None
