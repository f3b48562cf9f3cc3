"""Lists of buckets, and single buckets, with contents, quota and badges in one answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Literal, cast

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request

from sluice_s3.app.access.bucket_access import ENCRYPTION, access_of
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.counts import BucketCounts, Counted
from sluice_s3.app.admin.buckets.models import BucketDetail, BucketPage, ContentsOut, Limits, ListedBucket
from sluice_s3.app.admin.buckets.rights import BucketRights, find_bucket
from sluice_s3.app.admin.models import BucketOut
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.object_lock.protection import SETTING as LOCK
from sluice_s3.app.index.schema.tables import ENABLED, SUSPENDED
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.quotas import quota_of
from sluice_s3.app.store.regions import Regions
from sluice_s3.app.store.store import Store

router = APIRouter(route_class=StrictRoute)

PAGE, MAX_PAGE = 200, 1000
STRETCH_SECONDS = 0.005
"""Seconds that the decisions about a page may keep the event loop at a stretch."""
VERSIONING: dict[int, Literal["enabled", "suspended"]] = {ENABLED: "enabled", SUSPENDED: "suspended"}
WEBSITE = "website"
"""Name of the bucket's setting of websites."""


@router.get("/buckets")
async def list_buckets(
    request: Request,
    caller: Annotated[Caller, Depends(require())],
    prefix: Annotated[str, Query(max_length=63)] = "",
    after: Annotated[str, Query(max_length=63)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = PAGE,
) -> BucketPage:
    """Return a page of the caller's buckets: those that ListBuckets lists for it (`s3:ListAllMyBuckets`).

    What the caller may not read of a bucket is null.
    """
    rights = BucketRights(caller, request)
    rights.require("s3:ListAllMyBuckets")
    index: Index = request.app.state.index
    settings: Settings = request.app.state.settings
    found = await index.buckets(caller.account_id, prefix, after, limit + 1)
    page = found[:limit]
    seen = [bucket async for bucket in _unhurried(page) if rights.may_see(bucket)]
    counted = await _counts(request).find(seen)
    regions = Regions(settings.region)
    visible = {bucket.id for bucket in seen}
    listed = [
        _row(bucket, rights, regions, counted.get(bucket.id), bucket.id in visible) async for bucket in _unhurried(page)
    ]
    following = page[-1].name if len(found) > limit else None
    return BucketPage(buckets=listed, next=following, counting=len(counted) < len(seen))


async def _unhurried(buckets: Sequence[Bucket]) -> AsyncIterator[Bucket]:
    """Yield buckets, and let others have the event loop in between: their policies may take long to decide."""
    paused = time.monotonic()
    for bucket in buckets:
        if time.monotonic() - paused > STRETCH_SECONDS:
            await asyncio.sleep(0)
            paused = time.monotonic()
        yield bucket


def _row(bucket: Bucket, rights: BucketRights, regions: Regions, counted: Counted | None, seen: bool) -> ListedBucket:
    settings = orjson.loads(bucket.settings or "{}")
    default = settings.get(ENCRYPTION) or [""]
    may = {action: rights.may(f"s3:{action}", bucket) for action in _BADGES}
    return ListedBucket(
        name=bucket.name,
        region=regions.of(bucket),
        created=bucket.created,
        store=bucket.store if seen else None,
        moving_from=(bucket.source or None) if seen else None,
        contents=to_contents(counted),
        quota=to_limits(bucket) if seen else None,
        versioning=VERSIONING.get(bucket.versioning, "off") if may["GetBucketVersioning"] else None,
        object_lock=LOCK in settings if may["GetBucketObjectLockConfiguration"] else None,
        public=is_open(bucket) if may["GetBucketPolicyStatus"] else None,
        encryption=str(default[0]) if may["GetEncryptionConfiguration"] else None,
    )


_BADGES = (
    "GetBucketVersioning",
    "GetBucketObjectLockConfiguration",
    "GetBucketPolicyStatus",
    "GetEncryptionConfiguration",
)


def is_open(bucket: Bucket) -> bool:
    """Return whether a bucket's policy or ACL lets everybody in, as the public access block leaves it."""
    access = access_of(bucket)
    if access.closed:
        return False
    by_policy = access.public and not access.block.restrict
    by_acl = access.has_acls and not access.block.ignore_acls and any(grant.public for grant in access.acl or ())
    return by_policy or by_acl


@router.get("/buckets/{name}")
async def get_bucket(request: Request, name: str, caller: Annotated[Caller, Depends(require())]) -> BucketDetail:
    """Return a bucket (`s3:ListBucket` on it, or `sluice:ListBuckets`; then its contents need `sluice:GetQuota`)."""
    bucket, rights = await seen_bucket(request, name, caller)
    settings: Settings = request.app.state.settings
    store: Store = request.app.state.store
    may_count = rights.may("s3:ListBucket", bucket) or caller.may("sluice:GetQuota")
    counted = (await _counts(request).find([bucket])).get(bucket.id) if may_count else None
    configured = settings.named_stores.get(bucket.store)
    return BucketDetail(
        **BucketOut.of(bucket).model_dump(),
        owned=bucket.owner_id == caller.account_id,
        signing_region=Regions(settings.region).of(bucket),
        contents=to_contents(counted),
        quota=to_limits(bucket) if may_count else None,
        plain_files=configured is not None and configured.layout == "tree",
        encryption_available=bool(await store.index.note(KEYRING)),
        storage_classes=sorted(settings.class_stores),
        archives=bool(store.archives),
        website=_website(bucket, settings, rights),
        may_move=caller.may("sluice:MoveBucket"),
        may_set_quota=caller.may("sluice:ManageQuota"),
    )


async def seen_bucket(request: Request, name: str, caller: Caller) -> tuple[Bucket, BucketRights]:
    """Return a bucket that the caller may see, and its rights. Raises HTTPException (403, 404)."""
    bucket = await find_bucket(request.app.state.index, name)
    rights = BucketRights(caller, request)
    if not rights.may_see(bucket):
        raise HTTPException(403, f"You need the permission s3:ListBucket on the bucket {name} for this. Ask its owner.")
    return bucket, rights


def _website(bucket: Bucket, settings: Settings, rights: BucketRights) -> str | None:
    """Return the host of a bucket's website; None without one."""
    if WEBSITE not in orjson.loads(bucket.settings or "{}") or not rights.may("s3:GetBucketWebsite", bucket):
        return None
    if settings.website_domains:
        return f"{bucket.name}.{settings.website_domains[0]}"
    return None


def to_contents(counted: Counted | None) -> ContentsOut | None:
    """Return the model of a count."""
    if counted is None:
        return None
    totals = counted.totals
    return ContentsOut(
        objects=totals.objects,
        bytes=totals.bytes,
        older_versions=totals.older_versions,
        older_bytes=totals.older_bytes,
        delete_markers=totals.delete_markers,
        uploads=totals.uploads,
        upload_bytes=totals.upload_bytes,
        counted=int(counted.at * 1000),
    )


def to_limits(bucket: Bucket) -> Limits | None:
    """Return the model of a bucket's quota; None without one."""
    quota = quota_of(bucket)
    return None if quota is None else Limits(bytes=quota.bytes, objects=quota.objects)


def _counts(request: Request) -> BucketCounts:
    return cast(BucketCounts, request.app.state.bucket_counts)
