"""Background jobs: what they do, and wishes for them, which their leader in any gateway reads from the index."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, cast

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, Field

from sluice_s3.app.admin.operations.job_catalog import CatalogJob, catalog
from sluice_s3.app.admin.operations.job_progress import (
    ProgressOut,
    count_damaged,
    describe_check,
    read_moves,
    read_scrub_pass,
)
from sluice_s3.app.admin.operations.store_check import StoreCheck
from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.gateway_identity import describe_gateway
from sluice_s3.app.index import Index
from sluice_s3.app.index.cluster.transactions import LIVE
from sluice_s3.app.index.meta.rows import JOB_CONTROL, JOB_STATUS
from sluice_s3.app.settings import Settings

router = APIRouter(tags=["operations"])

DAY_SECONDS = 86_400
HEARD_SECONDS = 60.0
"""Seconds for which a wish to run counts as one that waits for its leader."""


class JobOut(BaseModel):
    """A background job."""

    name: str
    label: str
    description: str
    schedule: str
    store: str | None
    state: Literal["running", "idle", "paused", "waiting"] = Field(
        description="`waiting`: it was asked to run, and its leader has not begun."
    )
    began: datetime | None = Field(description="The present run, or the last one that did something.")
    ended: datetime | None
    seconds: float
    next: datetime | None = Field(description="Null: by its schedule.")
    error: str = Field(description="Why the last run failed; it is tried again.")
    gateway: str = Field(description="Where its leader runs; empty while it has not run.")
    progress: list[ProgressOut]
    findings: int | None = Field(
        None, description="Of a scrub: damaged blobs of its store. Of a check: what its last report names. Else null."
    )
    report: dict[str, Any] | None = Field(None, description="Of a check: numbers, and the first findings.")
    can_run: bool
    can_pause: bool
    can_cancel: bool


@router.get("/jobs", dependencies=[Depends(require("sluice:ListJobs"))])
async def list_jobs(request: Request) -> list[JobOut]:
    """Return all background jobs of the cluster."""
    return await _describe(request, _all(request))


@router.post("/jobs/{name}/run", dependencies=[Depends(require("sluice:RunJob"))])
async def run_job(request: Request, name: str) -> JobOut:
    """Make a job run now; 409 for one that is paused, and for a check that runs."""
    job = _find(request, name, lambda one: one.can_run)
    if job.can_cancel:
        if not _check(request, name).start():
            raise HTTPException(409, "A check runs already. Wait for its end, or cancel it.")
    else:
        if name in _control(await _index(request).note(JOB_CONTROL))["paused"]:
            raise HTTPException(409, "The job is paused. Resume it first.")
        await _change(request, lambda wishes: wishes["run"].update({name: _now_ms()}))
    return (await _describe(request, [job]))[0]


@router.post("/jobs/{name}/cancel", dependencies=[Depends(require("sluice:RunJob"))])
async def cancel_job(request: Request, name: str) -> JobOut:
    """Cancel a check; all other jobs are paused instead."""
    job = _find(request, name, lambda one: one.can_cancel)
    await _check(request, name).stop()
    return (await _describe(request, [job]))[0]


@router.post("/jobs/{name}/pause", dependencies=[Depends(require("sluice:PauseJob"))])
async def pause_job(request: Request, name: str) -> JobOut:
    """Pause a job in all gateways, until it is resumed."""
    job = _find(request, name, lambda one: one.can_pause)
    await _change(request, lambda wishes: wishes["paused"].add(name))
    return (await _describe(request, [job]))[0]


@router.post("/jobs/{name}/resume", dependencies=[Depends(require("sluice:PauseJob"))])
async def resume_job(request: Request, name: str) -> JobOut:
    """Resume a paused job."""
    job = _find(request, name, lambda one: one.can_pause)
    await _change(request, lambda wishes: wishes["paused"].discard(name))
    return (await _describe(request, [job]))[0]


def _index(request: Request) -> Index:
    return cast(Index, request.app.state.index)


def _check(request: Request, name: str) -> StoreCheck:
    return cast(StoreCheck, request.app.state.store_checks[name])


def _all(request: Request) -> list[CatalogJob]:
    return list(catalog(cast(Settings, request.app.state.settings)))


def _find(request: Request, name: str, may: Callable[[CatalogJob], bool]) -> CatalogJob:
    found = next((one for one in _all(request) if one.name == name), None)
    if found is None:
        raise HTTPException(404, "There is no such job.")
    if not may(found):
        raise HTTPException(409, "This cannot be asked of the job. `GET /api/v1/jobs` says what can.")
    return found


def _control(note: str) -> dict[str, Any]:
    found = orjson.loads(note or "{}")
    return {"paused": set(found.get("paused", ())), "run": dict(found.get("run", {}))}


async def _change(request: Request, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the wishes for jobs, those of jobs that are no more left out."""
    known = {one.name for one in _all(request)}

    def changed(note: str) -> str:
        wishes = _control(note)
        change(wishes)
        paused = sorted(wishes["paused"] & known)
        return orjson.dumps(
            {"paused": paused, "run": {name: at for name, at in wishes["run"].items() if name in known}}
        ).decode()

    await _index(request).change_note(JOB_CONTROL, changed)


async def _describe(request: Request, jobs: Iterable[CatalogJob]) -> list[JobOut]:
    index = _index(request)
    wishes = _control(await index.note(JOB_CONTROL))
    statuses = await index.notes(JOB_STATUS)
    gateways = await _gateways(request)
    damaged = await count_damaged(index)
    describe = partial(_render, request, wishes, gateways)
    found = []
    for job in jobs:
        status = orjson.loads(statuses.get(job.name, "{}"))
        last = status.get("report") if job.can_cancel else None
        check = _check(request, job.name) if job.can_cancel else None
        if check is not None and check.began:
            status = {"state": "running", "began": check.began}
        out = describe(job, status)
        if check is not None and check.began:
            out.progress = describe_check(check.progress, last)
        elif last is not None:
            out.findings = sum(last["found"].values())
        elif job.name == "moves":
            out.progress = await read_moves(index)
            out.state = "running" if out.progress and out.state == "idle" else out.state
        elif job.store is not None and job.name == f"scrub:{job.store}":
            out.progress, out.findings = await read_scrub_pass(index, job.store), damaged[job.store]
        found.append(out)
    return found


def _render(
    request: Request, wishes: dict[str, Any], gateways: dict[int, str], job: CatalogJob, status: dict[str, Any]
) -> JobOut:
    state = status.get("state", "idle")
    if state == "running" and "writer" in status and status["writer"] not in gateways:
        state = "idle"  # its leader died
    asked = wishes["run"].get(job.name, 0)
    if job.name in wishes["paused"]:
        state = "paused"
    elif state == "paused":
        state = "idle"  # its leader has not heard yet that it goes on
    elif state == "idle" and asked > max(status.get("ended", 0), _now_ms() - HEARD_SECONDS * 1000):
        state = "waiting"
    return JobOut(
        **job._asdict(),
        state=state,
        began=_moment(status.get("began")),
        ended=_moment(status.get("ended")) if state != "running" else None,
        seconds=status.get("seconds", 0.0),
        next=_next(job.name, cast(Settings, request.app.state.settings)),
        error=status.get("error", ""),
        gateway=gateways.get(status.get("writer", 0), ""),
        progress=[],
        report=status.get("report"),
    )


def _next(name: str, settings: Settings) -> datetime | None:
    period = {"lifecycle": settings.lifecycle_day_seconds, "inventories": settings.inventory_day_seconds}.get(name)
    if period is None:
        return None
    return datetime.fromtimestamp((int(time.time()) // period + 1) * period, UTC)


async def _gateways(request: Request) -> dict[int, str]:
    """Return the hosts of live writers by their incarnations."""
    index = _index(request)
    default = "" if index.many_hosts else str(describe_gateway({})["host"])
    return {
        one.beat.incarnation: orjson.loads(one.note or "{}").get("host", default)
        for one in await index.noted_writers()
        if one.beat.state == LIVE
    }


def _moment(at: int | None) -> datetime | None:
    return datetime.fromtimestamp(at / 1000, UTC) if at else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
