"""Requests as they are answered, from the workers' shared memory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, cast

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from sluice_s3.app.admin.live import LiveResponse, render_event
from sluice_s3.app.admin.operations.request_watch import RequestFilter, RequestWatch
from sluice_s3.app.admin.sessions.guard import Caller, require

router = APIRouter(tags=["operations"])

MAY_WATCH = require("sluice:ListRequests")
NO_SPACE = "There is no space for the shared memory of live requests in the runtime directory."


class LiveRequest(BaseModel):
    """A request that was answered."""

    time: datetime
    request: str = Field(description="Request id.")
    client: str = Field(description="Address of the client.")
    access_key: str | None
    principal: str = Field(description="ARN of the caller; empty for an anonymous one, and until it is looked up.")
    method: str
    operation: str
    bucket: str | None
    key: str | None = Field(description="A long one is cut, and ends with an ellipsis.")
    status: int
    error: str
    bytes_in: int
    bytes_out: int
    ms: float
    phases: dict[str, float] = Field(description="Milliseconds by phase, as in Server-Timing.")


class LiveRequests(BaseModel):
    """The data of the event `requests`."""

    requests: list[LiveRequest]
    missed: int = Field(description="Requests that are not shown: more were answered than could be read.")


def _wanted(
    bucket: Annotated[str, Query(max_length=255)] = "",
    prefix: Annotated[str, Query(max_length=1024)] = "",
    principal: Annotated[str, Query(max_length=512, description="Part of an ARN or access key.")] = "",
    operation: Annotated[str, Query(max_length=64)] = "",
    status: Annotated[str, Query(pattern=r"^([1-5][0-9][0-9]|[1-5]xx|error)?$")] = "",
    slower_than_ms: Annotated[float, Query(ge=0, le=1e9)] = 0.0,
    request: Annotated[str, Query(max_length=64, description="Request id.")] = "",
) -> RequestFilter:
    """Return the filter of a query."""
    return RequestFilter(bucket, prefix, principal.lower(), operation, status, slower_than_ms, request.strip().upper())


@router.get(
    "/live/requests",
    response_class=Response,
    responses={200: {"model": LiveRequests, "description": "Events `requests`, as `text/event-stream`."}},
)
async def live_requests(
    request: Request,
    caller: Annotated[Caller, Depends(MAY_WATCH)],
    wanted: Annotated[RequestFilter, Depends(_wanted)],
) -> LiveResponse:
    """Stream the requests that this gateway answers, as server-sent events."""
    watch = cast(RequestWatch, request.app.state.request_watch)
    return LiveResponse.for_caller(request, caller, MAY_WATCH, _events(watch, wanted))


async def _events(watch: RequestWatch, wanted: RequestFilter) -> AsyncIterator[bytes]:
    """Yield events until the reader leaves."""
    try:
        watcher = watch.watch(wanted)
    except OSError:
        yield render_event(orjson.dumps({"detail": NO_SPACE}), "failed")
        return
    try:
        yield render_event(b'{"requests":[],"missed":0}', "requests")
        async with contextlib.aclosing(watcher.batches()) as batches:
            async for found, missed in batches:
                yield render_event(orjson.dumps({"requests": found, "missed": missed}), "requests")
    finally:
        watch.leave(watcher)
