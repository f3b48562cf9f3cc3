"""The preview of lifecycle rules in the admin API."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.access.authorize import Verdict, authorize
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.lifecycle.models import PreviewIn, PreviewOut
from sluice_s3.app.admin.lifecycle.preview import LifecyclePreview
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.lifecycle.rules import parse_rules
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.lifecycle.calendar import LAST_DAY, LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import Rules, rules_of
from sluice_s3.app.store.store import Store

router = APIRouter(tags=["lifecycle"], route_class=StrictRoute)
NEEDED = ("s3:GetLifecycleConfiguration", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads")
MAX_AT_ONCE = 2
_running = asyncio.Semaphore(MAX_AT_ONCE)


@router.post("/buckets/{name}/lifecycle/preview")
async def preview_lifecycle(
    request: Request, name: str, body: PreviewIn, caller: Annotated[Caller, Depends(require())]
) -> PreviewOut:
    """Say what the next run of the lifecycle job would delete and move, by rule. Changes nothing.

    It looks for at most 5 seconds and at 250,000 versions, and says where it stopped. It needs
    `s3:GetLifecycleConfiguration`, `s3:ListBucketVersions` and `s3:ListBucketMultipartUploads`.
    """
    index: Index = request.app.state.index
    store: Store = request.app.state.store
    settings: Settings = request.app.state.settings
    bucket = await _find_bucket(index, caller, name)
    rules = _rules(bucket, body, store)
    day = LifecycleCalendar(settings.lifecycle_day_seconds)
    if store.of(bucket.store).tree is not None:
        raise HTTPException(409, "The bucket holds plain files: lifecycle rules do not apply to them.")
    if _running.locked():
        raise HTTPException(429, "Other previews are running. Try again in a few seconds.", {"retry-after": "5"})
    async with _running:
        preview = LifecyclePreview(index, bucket, rules, day, _time_of(body, day), store.classes)
        return await preview.run(_notes(rules, store))


async def _find_bucket(index: Index, caller: Caller, name: str) -> Bucket:
    bucket = await index.bucket(name)
    if bucket is None:
        raise HTTPException(404, "There is no such bucket.")
    for action in () if caller.root else NEEDED:
        verdict = authorize(caller.account_id, action, bucket, None, caller.values, principal=caller.principal)
        if verdict is not Verdict.YES:
            raise HTTPException(403, f"You need {action} for this bucket to preview its lifecycle rules.")
    return bucket


def _rules(bucket: Bucket, body: PreviewIn, store: Store) -> Rules:
    if body.draft is None:
        return rules_of(bucket)
    try:
        return parse_rules(body.draft.encode("utf-8"), body.minimum, store.classes)
    except S3Error as error:
        raise HTTPException(422, f"S3 would refuse these rules: {error.code}: {error.text}") from None


def _time_of(body: PreviewIn, day: LifecycleCalendar) -> int:
    """Return when the rules are applied next: new ones at once, stored ones after the next midnight UTC."""
    now = clock.now_ms()
    first = now if body.draft is not None else (now // day.period + 1) * day.period
    return min(first + body.days_ahead * day.seconds * 1000, LAST_DAY)


def _notes(rules: Rules, store: Store) -> list[str]:
    moves = (move for rule in rules.enabled for move in rule.transitions + rule.older_transitions)
    missing = sorted({move.storage_class for move in moves} - set(store.classes))
    return [f"Nothing moves to {name}: the class has no store any more." for name in missing]
