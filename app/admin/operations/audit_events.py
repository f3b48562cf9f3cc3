"""The log of administrative changes: who changed what, from where, and what it was before."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime, BaseModel, Field

from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.index import Index
from sluice_s3.app.index.audit.rows import AuditEvent, AuditFilter, Position, render_event

router = APIRouter(tags=["operations"])

MAX_PAGE = 500
MAX_PATTERN = 512
EXPORTED_PAGE = 500
_POSITION = re.compile(r"([0-9]{1,16})\.([0-9]{1,19})")
Pattern = Annotated[
    str, Query(max_length=MAX_PATTERN, description="With `*` and `?`; case does not matter. `!` before it: all others.")
]


class AuditEventOut(BaseModel):
    """An administrative change, or a refused one."""

    id: int
    time: datetime
    principal: str = Field(description="ARN of the caller, or `admin-token`, `command:USER`, `init-file`.")
    account_id: str
    access_key: str
    address: str = Field(description="Of the client; empty for a command on the host.")
    source: str = Field(description="`s3`, `iam`, `sts`, `minio`, `admin`, `console` or `command`.")
    action: str
    resource: str
    outcome: str = Field(description="`Success`, or the code of the error.")
    request_id: str
    before: Any = Field(None, description="What was changed, before; null: nothing was there, or it is not recorded.")
    after: Any = None

    @classmethod
    def of(cls, event: AuditEvent) -> AuditEventOut:
        """Return the model of an event's row."""
        return cls(**render_event(event))


class AuditPageOut(BaseModel):
    """Events, newest first."""

    events: list[AuditEventOut]
    next: str | None = Field(description="`after` of the next page; null after the last one. A page may be empty.")
    retention_days: int = Field(description="Days for which events are kept, unless there are too many.")


def _wanted(
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    principal: Pattern = "",
    access_key: Pattern = "",
    action: Pattern = "",
    resource: Pattern = "",
    outcome: Pattern = "",
) -> AuditFilter:
    """Return the filter of a query."""
    bounds = AuditFilter()
    return AuditFilter(
        bounds.since if since is None else max(int(since.timestamp() * 1000), 0),
        bounds.until if until is None else max(int(until.timestamp() * 1000), 0),
        principal,
        access_key,
        action,
        resource,
        outcome,
    )


@router.get("/audit-events", response_model=AuditPageOut, dependencies=[Depends(require("sluice:ListAuditEvents"))])
async def list_audit_events(
    request: Request,
    wanted: Annotated[AuditFilter, Depends(_wanted)],
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
    format: Literal["json", "jsonl"] = "json",
) -> AuditPageOut | Response:
    """Return administrative changes, newest first; as `jsonl` all of them, one a line."""
    index: Index = request.app.state.index
    place = _position(after)
    if format == "jsonl":
        return StreamingResponse(
            _export(index, wanted, place),
            media_type="application/x-ndjson",
            headers={"content-disposition": 'attachment; filename="audit-events.jsonl"'},
        )
    page = await index.audit_events(wanted, place, limit)
    place = page.next
    return AuditPageOut(
        events=list(map(AuditEventOut.of, page.events)),
        next=None if place is None else f"{place.at}.{place.id}",
        retention_days=request.app.state.settings.audit_retention_days,
    )


def _position(after: str) -> Position | None:
    if not after:
        return None
    match = _POSITION.fullmatch(after)
    if match is None or int(match[2]) >= 1 << 63:
        raise HTTPException(422, "after: take it from `next` of the page before")
    return Position(int(match[1]), int(match[2]))


async def _export(index: Index, wanted: AuditFilter, place: Position | None) -> AsyncIterator[bytes]:
    """Yield the events of a filter, a page at a time."""
    while True:
        page = await index.audit_events(wanted, place, EXPORTED_PAGE)
        yield b"".join(orjson.dumps(render_event(one), option=orjson.OPT_APPEND_NEWLINE) for one in page.events)
        place = page.next
        if place is None:
            return
