"""Notifications in the admin API and in the metrics: targets, their queues and errors."""

from __future__ import annotations

import time
from collections.abc import Mapping

import orjson
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.index import Index
from sluice_s3.app.index.notifications.rows import EXPIRED, REASONS, REFUSED, Backlog, given_up_note, note_of
from sluice_s3.app.settings import Settings

router = APIRouter(tags=["notifications"])

HELP = {
    "sluice_notification_backlog": "Messages that wait for the target.",
    "sluice_notification_oldest_seconds": "Age of the oldest message that waits for the target.",
    "sluice_notification_failing": "Whether the target did not take what it was sent last.",
}
"""All are gauges, with the label `target`."""
GIVEN_UP = "sluice_notification_given_up_total"
GIVEN_UP_HELP = "Messages that were given up: refused by the target for good, or too old."
"""A counter, with the labels `target` and `reason`."""


class TargetOut(BaseModel):
    """A target of event notifications."""

    name: str
    kind: str | None = Field(None, description="Null: the settings do not name it any more, and its messages wait.")
    backlog: int = Field(description="Messages that wait.")
    oldest_seconds: float = Field(description="Age of the oldest one.")
    error: str | None = Field(None, description="Why it did not take what it was sent last; null when it did.")
    failing_since: int | None = Field(None, description="Milliseconds since the epoch.")
    refused: int = Field(0, description="Messages given up because the target refused them for good.")
    expired: int = Field(0, description="Messages given up because they were too old.")


async def targets(index: Index, settings: Settings) -> list[TargetOut]:
    """Return all targets that are configured or have queued messages."""
    waiting = {one.target: one for one in await index.backlog()}
    return [
        await _render_target(index, settings, waiting, name) for name in sorted({*settings.notify_targets, *waiting})
    ]


async def _render_target(index: Index, settings: Settings, waiting: Mapping[str, Backlog], name: str) -> TargetOut:
    target, found = settings.notify_targets.get(name), waiting.get(name)
    noted = orjson.loads(await index.note(note_of(name)) or "{}") if target is not None else {}
    dropped = orjson.loads(await index.note(given_up_note(name)) or "{}")
    return TargetOut(
        name=name,
        kind=None if target is None else target.kind,
        backlog=0 if found is None else found.messages,
        oldest_seconds=0.0 if found is None else max(round(time.time() - found.oldest / 1000, 3), 0.0),
        error=noted.get("error"),
        failing_since=noted.get("at"),
        refused=dropped.get(REFUSED, 0),
        expired=dropped.get(EXPIRED, 0),
    )


@router.get("/notifications", dependencies=[Depends(require("sluice:ListNotificationTargets"))])
async def get_notifications(request: Request) -> list[TargetOut]:
    """Return the targets of notifications, with their queues and last errors."""
    return await targets(request.app.state.index, request.app.state.settings)


async def target_samples(index: Index, settings: Settings) -> bytes:
    """Return the gauges of all targets in the text format of Prometheus; empty without targets."""
    found = await targets(index, settings)
    if not found:
        return b""
    values: dict[str, list[tuple[str, float]]] = {
        "sluice_notification_backlog": [(one.name, one.backlog) for one in found],
        "sluice_notification_oldest_seconds": [(one.name, one.oldest_seconds) for one in found],
        "sluice_notification_failing": [(one.name, int(one.error is not None)) for one in found],
    }
    counters = [
        f'{GIVEN_UP}{{target="{one.name}",reason="{reason}"}} {getattr(one, reason)}\n'
        for one in found
        for reason in REASONS
    ]
    gauges = "".join(
        f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n"
        + "".join(f'{name}{{target="{target}"}} {value:.10g}\n' for target, value in values[name])
        for name in HELP
    )
    return (gauges + f"# HELP {GIVEN_UP} {GIVEN_UP_HELP}\n# TYPE {GIVEN_UP} counter\n" + "".join(counters)).encode()
