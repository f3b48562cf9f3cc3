"""Notification targets of a bucket: the last delivery, the last error, and test messages."""

from __future__ import annotations

import secrets
import time
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.access.account import account_number
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.models import BucketTarget, QueuedMessage, TestMessage
from sluice_s3.app.admin.buckets.rights import NO_BUCKET, BucketRights, find_bucket
from sluice_s3.app.admin.notifications import TargetOut, targets
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.errors import NoSuchBucket
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.notifications.rows import delivered_note
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.notifications import SETTING, EventContext, Rule, rules_of, test_event

router = APIRouter(route_class=StrictRoute)

SEE_ERRORS = "sluice:ListNotificationTargets"
"""The right to read errors whole: they may name hosts."""
PLAIN_ERRORS = ("TargetError", "MessageRefused")
"""Errors that say what the target answered, and nothing about the network."""
PAUSE_SECONDS = 2.0
"""Seconds between two test messages to one target."""
MAX_WAITING = 1000
"""A target with more messages than this gets no test message: it would wait behind them."""


@router.get("/buckets/{name}/notification-targets")
async def list_targets(
    request: Request, name: str, caller: Annotated[Caller, Depends(require())]
) -> list[BucketTarget]:
    """Return the targets that a bucket's notifications can name (`s3:GetBucketNotification`).

    How a target fares is shown only where a rule of the bucket names it.
    """
    index: Index = request.app.state.index
    settings: Settings = request.app.state.settings
    bucket = await find_bucket(index, name)
    BucketRights(caller, request).require("s3:GetBucketNotification", bucket)
    used = {rule.target for rule in rules_of(bucket)}
    found = {one.name: one for one in await targets(index, settings)} if used else {}
    return [
        await _render(index, settings, bucket, target, found.get(target) if target in used else None, caller)
        for target in sorted({*settings.notify_targets, *used})
    ]


async def _render(
    index: Index, settings: Settings, bucket: Bucket, name: str, state: TargetOut | None, caller: Caller
) -> BucketTarget:
    configured = settings.notify_targets.get(name)
    arn = f"arn:aws:sqs:{bucket.region}:{account_number(bucket.owner_id)}:{name}"
    kind = None if configured is None else configured.kind
    if state is None:
        return BucketTarget(name=name, kind=kind, arn=arn, used=name in {rule.target for rule in rules_of(bucket)})
    delivered = orjson.loads(await index.note(delivered_note(name)) or "{}")
    error = state.error
    if error and not caller.may(SEE_ERRORS) and not error.startswith(PLAIN_ERRORS):
        error = error.partition(":")[0]
    return BucketTarget(
        name=name,
        kind=kind,
        arn=arn,
        used=True,
        backlog=state.backlog,
        oldest_seconds=state.oldest_seconds,
        delivered=delivered.get("at"),
        error=error,
        failing_since=state.failing_since,
        refused=state.refused,
        expired=state.expired,
    )


@router.post("/buckets/{name}/notification-targets/test", status_code=202)
async def send_test(
    request: Request, name: str, body: TestMessage, caller: Annotated[Caller, Depends(require())]
) -> QueuedMessage:
    """Send a test message (`s3:TestEvent`) to a target that a rule of the bucket names (`s3:PutBucketNotification`).

    429 when the last one was just sent, or when many messages wait for the target.
    """
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    BucketRights(caller, request).require("s3:PutBucketNotification", bucket)
    rule = next((rule for rule in rules_of(bucket) if rule.target == body.target), None)
    if rule is None:
        raise HTTPException(409, "No rule of the bucket names this target. Save the rule first.")
    if body.target not in request.app.state.settings.notify_targets:
        raise HTTPException(409, "The gateway's settings do not name this target any more.")
    _check_pace(request, body.target)
    if len(await index.messages(body.target, MAX_WAITING)) >= MAX_WAITING:
        raise HTTPException(429, "Many messages wait for this target. Look at its last error first.")
    return await _queue(index, bucket, rule, caller)


async def _queue(index: Index, bucket: Bucket, rule: Rule, caller: Caller) -> QueuedMessage:
    who = f"AWS:{caller.principal.user_id}" if caller.principal is not None else caller.account_id
    message = test_event(bucket, rule, EventContext("", who, caller.address, secrets.token_hex(8).upper()))
    queued = int(time.time() * 1000)
    try:
        await index.configure_messages(bucket.id, SETTING, lambda rules: rules, [message])
    except NoSuchBucket:
        raise HTTPException(404, NO_BUCKET) from None
    return QueuedMessage(queued=queued)


def _check_pace(request: Request, target: str) -> None:
    """Raise HTTPException (429) when the last test to a target was just sent."""
    sent: dict[str, float] = request.app.state.tests_sent
    now = time.monotonic()
    if now - sent.get(target, now - PAUSE_SECONDS) < PAUSE_SECONDS:
        raise HTTPException(429, "A test was just sent to this target. Wait a moment.", {"retry-after": "2"})
    sent[target] = now
