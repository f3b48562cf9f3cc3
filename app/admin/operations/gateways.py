"""The gateways of the cluster, as their writers' rows in the index show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, cast

import orjson
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.gateway_identity import describe_gateway
from sluice_s3.app.index.cluster.gateways import NotedWriter
from sluice_s3.app.index.cluster.transactions import LIVE
from sluice_s3.app.settings import Settings

router = APIRouter(tags=["operations"])
State = Literal["up", "silent", "dead", "unknown"]
STATES: tuple[State, ...] = ("up", "unknown", "silent", "dead")
"""From the best to the worst; a gateway is as well as its best worker."""


class WorkerOut(BaseModel):
    """A worker process, which writes to the index."""

    incarnation: int
    pid: int | None
    state: State = Field(description="`silent`: no heartbeat; `unknown`: it has been observed for too short a time.")
    heartbeat_seconds: float | None = Field(description="Age of the last heartbeat; null where there are none.")


class GatewayOut(BaseModel):
    """A gateway."""

    name: str
    host: str
    this: bool = Field(description="It answers this request.")
    version: str
    since: datetime | None
    urls: dict[str, str] = Field(description="What it listens on, by `s3`, `admin` and `websites`.")
    state: State
    heartbeat_seconds: float | None
    workers: list[WorkerOut]


class HeartbeatWatch:
    """When each writer's heartbeat changed last, as this process saw it: no clocks of two hosts are compared."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[int, tuple[int, float, bool]] = {}
        """Number, since when, and whether that change was observed."""

    def look(self, writers: list[NotedWriter]) -> dict[int, tuple[float, bool]]:
        """Return for how long each number has been the same, and whether its last change was observed."""
        now, seen = self._now(), self._seen
        self._seen = {
            one.incarnation: seen[one.incarnation]
            if one.incarnation in seen and seen[one.incarnation][0] == one.number
            else (one.number, now, one.incarnation in seen)
            for one, _ in writers
        }
        return {number: (now - since, changed) for number, (_, since, changed) in self._seen.items()}


@router.get("/gateways", dependencies=[Depends(require("sluice:ListGateways"))])
async def list_gateways(request: Request) -> list[GatewayOut]:
    """Return the gateways on this index: with SQLite this one alone."""
    state = request.app.state
    writers = await state.index.noted_writers()
    watch = cast(HeartbeatWatch, state.heartbeat_watch)
    own = describe_gateway(state.addresses())
    ages = watch.look(writers) if state.index.many_hosts else {}
    settings = cast(Settings, state.settings)
    found: dict[str, dict[str, Any]] = {str(own["gateway"]): {**own, "workers": []}}
    for one in writers:
        noted: Mapping[str, Any] = orjson.loads(one.note or "{}") if state.index.many_hosts else own
        name = str(noted.get("gateway", f"writer {one.beat.incarnation}"))
        gateway = found.setdefault(name, {**noted, "workers": []})
        gateway["workers"].append(_worker(one, noted, ages.get(one.beat.incarnation), settings.gateway_timeout))
    return [_render(name, gateway, name == own["gateway"]) for name, gateway in found.items()]


def _worker(one: NotedWriter, noted: Mapping[str, Any], age: tuple[float, bool] | None, limit: float) -> WorkerOut:
    state: State = "up"
    if one.beat.state != LIVE:
        state = "dead"
    elif age is not None:
        state = "silent" if age[0] >= limit else "up" if age[1] else "unknown"
    seconds = None if age is None or not (age[1] or age[0] >= limit) else round(age[0], 1)
    return WorkerOut(incarnation=one.beat.incarnation, pid=noted.get("pid"), state=state, heartbeat_seconds=seconds)


def _render(name: str, gateway: Mapping[str, Any], this: bool) -> GatewayOut:
    workers: list[WorkerOut] = gateway["workers"]
    beats = [one.heartbeat_seconds for one in workers if one.heartbeat_seconds is not None]
    since = gateway.get("since")
    state = STATES[min((STATES.index(one.state) for one in workers), default=1)]
    return GatewayOut(
        name=name,
        host=gateway.get("host", ""),
        this=this,
        version=gateway.get("version", ""),
        since=datetime.fromtimestamp(since / 1000, UTC) if since else None,
        urls=gateway.get("urls", {}),
        state=state,
        heartbeat_seconds=min(beats, default=None),
        workers=workers,
    )
