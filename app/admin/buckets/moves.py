"""Moves of buckets to another store: begun, watched and cancelled here, made by the jobs of the gateway."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.listing import seen_bucket
from sluice_s3.app.admin.buckets.models import MoveIn, MoveOut
from sluice_s3.app.admin.buckets.rights import NO_BUCKET, find_bucket
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.errors import BucketBusy, NoSuchBucket
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.relocation.rows import progress_note
from sluice_s3.app.settings import Settings

router = APIRouter(route_class=StrictRoute)

Mover = Annotated[Caller, Depends(require("sluice:MoveBucket"))]
TREE = "tree"
"""The layout of plain files, from and to which no bucket is moved."""


@router.get("/buckets/{name}/move")
async def get_move(request: Request, name: str, caller: Annotated[Caller, Depends(require())]) -> MoveOut:
    """Return the progress of a bucket's move (`s3:ListBucket` on it, or `sluice:ListBuckets`)."""
    bucket, _ = await seen_bucket(request, name, caller)
    return await _state(request.app.state.index, bucket)


@router.post("/buckets/{name}/move", status_code=202)
async def start_move(request: Request, name: str, body: MoveIn, _: Mover) -> MoveOut:
    """Begin to move a bucket to another store, while it is used. 409 while it cannot be moved."""
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    _check(request.app.state.settings, bucket.store, "lies on")
    _check(request.app.state.settings, body.store, "is to go to")
    if body.store not in await index.identities():
        raise HTTPException(409, f"The store {body.store} was never used. Start the gateway with it, then try again.")
    if body.store == bucket.store and not bucket.source:
        raise HTTPException(409, f"The bucket lies on the store {body.store} already.")
    return await _change(index, name, index.begin_move(name, body.store))


@router.delete("/buckets/{name}/move", status_code=202)
async def cancel_move(request: Request, name: str, _: Mover) -> MoveOut:
    """Turn a move back: new data goes to the old store again, and what was moved comes back."""
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    if bucket.source:
        _check(request.app.state.settings, bucket.source, "comes from")
    return await _change(index, name, index.turn_back(name))


async def _change(index: Index, name: str, change: Awaitable[Bucket]) -> MoveOut:
    try:
        bucket = await change
    except NoSuchBucket:
        raise HTTPException(404, NO_BUCKET) from None
    except BucketBusy as error:
        raise HTTPException(409, f"The bucket cannot be moved now: {error.detail['reason']}.") from None
    await index.set_note(progress_note(bucket.id), "")
    return await _state(index, bucket)


async def _state(index: Index, bucket: Bucket) -> MoveOut:
    if not bucket.source:
        return MoveOut(moving=False, store=bucket.store)
    noted = orjson.loads(await index.note(progress_note(bucket.id)) or "{}")
    return MoveOut(
        moving=True,
        store=bucket.store,
        source=bucket.source,
        rows=noted.get("rows", 0),
        total_rows=noted.get("of", 0),
        bytes=noted.get("bytes", 0),
        stuck=noted.get("stuck", 0),
    )


def _check(settings: Settings, store: str, where: str) -> None:
    """Raise HTTPException unless a bucket can move from and to a store."""
    if store not in settings.named_stores:
        raise HTTPException(409, f"The store {store} that the bucket {where} is not in the gateway's settings.")
    if settings.named_stores[store].layout == TREE:
        raise HTTPException(409, f"The store {store} that the bucket {where} holds plain files, which cannot be moved.")
