"""Notifications over the admin API and in the metrics: what waits for whom, and what was taken amiss."""

from __future__ import annotations

import time
from collections.abc import Mapping

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from app.index import Index
from app.index.deliveries import Backlog, note_of
from app.settings import Settings

router = APIRouter(tags=["notifications"])

HELP = {
    "sluice_notification_backlog": "Messages that wait for the target.",
    "sluice_notification_oldest_seconds": "Age of the oldest message that waits for the target.",
    "sluice_notification_failing": "Whether the target did not take what it was sent last.",
}
"""All are gauges, with the label `target`."""


class TargetOut(BaseModel):
    """Somebody who is told of changes."""

    name: str
    kind: str | None = Field(None, description="Null: the settings do not name it any more, and its messages wait.")
    backlog: int = Field(description="Messages that wait.")
    oldest_seconds: float = Field(description="Age of the oldest one.")
    error: str | None = Field(None, description="Why it did not take what it was sent last; null when it did.")
    failing_since: int | None = Field(None, description="Milliseconds since the epoch.")


async def targets(index: Index, settings: Settings) -> list[TargetOut]:
    """All that the settings name, or that something waits for."""
    waiting = {one.target: one for one in await index.backlog()}
    return [await _shown(index, settings, waiting, name) for name in sorted({*settings.notify_targets, *waiting})]


async def _shown(index: Index, settings: Settings, waiting: Mapping[str, Backlog], name: str) -> TargetOut:
    known, found = settings.notify_targets.get(name), waiting.get(name)
    noted = orjson.loads(await index.note(note_of(name)) or "{}") if known is not None else {}
    return TargetOut(
        name=name,
        kind=None if known is None else known.kind,
        backlog=0 if found is None else found.messages,
        oldest_seconds=0.0 if found is None else max(round(time.time() - found.oldest / 1000, 3), 0.0),
        error=noted.get("error"),
        failing_since=noted.get("at"),
    )


@router.get("/notifications")
async def get_notifications(request: Request) -> list[TargetOut]:
    """Whom notifications go to, what waits for them, and what they took amiss."""
    return await targets(request.app.state.index, request.app.state.settings)


async def of_targets(index: Index, settings: Settings) -> bytes:
    """The gauges of all targets in the text format of Prometheus; nothing where there are none."""
    found = await targets(index, settings)
    if not found:
        return b""
    values: dict[str, list[tuple[str, float]]] = {
        "sluice_notification_backlog": [(one.name, one.backlog) for one in found],
        "sluice_notification_oldest_seconds": [(one.name, one.oldest_seconds) for one in found],
        "sluice_notification_failing": [(one.name, int(one.error is not None)) for one in found],
    }
    return "".join(
        f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n"
        + "".join(f'{name}{{target="{target}"}} {value:.10g}\n' for target, value in values[name])
        for name in HELP
    ).encode()
