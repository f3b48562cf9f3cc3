"""Routes of the overview."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from sluice_s3.app import __version__
from sluice_s3.app.admin.live import LiveResponse
from sluice_s3.app.admin.overview.models import OverviewOut, StoreSummary
from sluice_s3.app.admin.overview.monitoring import Monitoring
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.admin.store_health.models import StoreHealthOut

router = APIRouter(tags=["overview"])
GUARD = require("sluice:GetOverview")
Watcher = Annotated[Caller, Depends(GUARD)]

LAST_EVENT = Header(alias="last-event-id", pattern=r"^[0-9]{1,16}$", description="What a browser sends again.")


@router.get("/overview")
async def get_overview(request: Request, caller: Watcher) -> OverviewOut:
    """Return the health of the stores, and what needs attention, each with what to do about it."""
    monitoring: Monitoring = request.app.state.monitoring
    stores = await monitoring.health.all()
    findings, unchecked = await monitoring.attention.look(stores)
    if not caller.may("sluice:ListStores"):
        findings = [one.model_copy(update={"link": None}) for one in findings]
    return OverviewOut(
        at=time.time_ns() // 1_000_000,
        version=__version__,
        stores=[_summarise(one) for one in stores],
        attention=findings,
        unchecked=unchecked,
    )


def _summarise(store: StoreHealthOut) -> StoreSummary:
    space = store.space.value
    return StoreSummary(
        name=store.name,
        condition=store.breaker.condition,
        silent_since=store.space.silent_since,
        total=None if space is None else space.total,
        free=None if space is None else space.free,
        buckets=store.buckets.value,
    )


@router.get("/live/overview", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def watch_overview(
    request: Request, caller: Watcher, last_event_id: Annotated[str | None, LAST_EVENT] = None
) -> Response:
    """Stream requests, errors, bytes and latencies of the whole server, once a second (server-sent events).

    The event `history` has the last 15 minutes, by `columns`, and the bounds of the histograms: no quantile is better
    known than between two of them. Each `sample` has one more point, and the last minute by operation and by bucket
    (null where `SLUICE_METRICS_BUCKETS` is 0).
    """
    monitoring: Monitoring = request.app.state.monitoring
    return LiveResponse.for_caller(request, caller, GUARD, monitoring.sampler.watch(int(last_event_id or 0)))
