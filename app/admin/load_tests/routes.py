"""Load tests in the admin API: what can be measured, runs with their progress, reports, history, comparisons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, cast

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import FileResponse, StreamingResponse

from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.live import LiveResponse, render_event
from sluice_s3.app.admin.load_tests.archive import stream_tar
from sluice_s3.app.admin.load_tests.bench import INSTALL, BenchError, is_installed
from sluice_s3.app.admin.load_tests.history import History, Note
from sluice_s3.app.admin.load_tests.models import (
    ComparisonOut,
    LoadTestIn,
    LoadTestOut,
    LoadTestsOut,
    PreviewOut,
    ProgressOut,
    ScenarioOut,
    TargetsOut,
)
from sluice_s3.app.admin.load_tests.planning import target_out
from sluice_s3.app.admin.load_tests.progress import Progress
from sluice_s3.app.admin.load_tests.runner import LoadTests, Refused
from sluice_s3.app.admin.load_tests.targets import Target, arguments
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index.engine.audit_trail import name_change

router = APIRouter(tags=["load tests"], route_class=StrictRoute)
READ = require("sluice:ListLoadTests")
Reader = Annotated[Caller, Depends(READ)]
Runner = Annotated[Caller, Depends(require("sluice:RunLoadTest"))]
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""The report holds its styles and plots; it may run nothing, load nothing, and knows no cookie."""
MAX_COMPARISONS = 16
POLL_SECONDS = 3.0


def _load_tests(request: Request) -> LoadTests:
    return cast(LoadTests, request.app.state.load_tests)


async def _find(request: Request, load_test: str) -> Note:
    note = await asyncio.to_thread(_load_tests(request).history.read, load_test)
    if note is None:
        raise HTTPException(404, "There is no such load test. It may have been removed: the oldest ones are.")
    return note


@router.get("/load-tests/targets")
async def list_targets(request: Request, _: Reader) -> TargetsOut:
    """Return what can be measured, with mounts and free space; and whether anything can."""
    own = _load_tests(request)
    targets = own.targets()
    places: Mapping[str, Any] = {}
    if is_installed():
        places = await _look(own, [target for target in targets.values() if not target.problem])
    return TargetsOut(
        installed=is_installed(),
        install=INSTALL,
        targets=[target_out(target, places.get(name)) for name, target in targets.items()],
        running=own.running.state.id if own.running else None,
        others_per_second=round(await own.traffic.current(), 1),
    )


async def _look(own: LoadTests, targets: list[Target]) -> dict[str, Any]:
    """Return what `sluice bench` sees of targets, by name."""
    if not targets:
        return {}
    words = [*arguments(targets, {one.name: one.directory for one in targets}), "--scenario", "stat_delete_list"]
    try:
        return {place["name"]: place for place in (await own.bench.preview(words))["places"]}
    except BenchError as error:
        return {one.name: {"problem": str(error)} for one in targets}


@router.get("/load-tests/scenarios")
async def list_scenarios(request: Request, _: Reader) -> list[ScenarioOut]:
    """Return the scenarios of `sluice bench`; none without the extra `loadtest`."""
    if not is_installed():
        return []
    try:
        found = await _load_tests(request).bench.scenarios()
    except BenchError as error:
        raise HTTPException(502, f"The scenarios cannot be listed: {error}") from None
    return [ScenarioOut.model_validate(one, extra="ignore") for one in found]


@router.get("/load-tests/comparison")
async def compare_load_tests(request: Request, _: Reader, a: str, b: str) -> ComparisonOut:
    """Return how load test `b` differs from `a`, by target and use, and what exceeds the noise."""
    first, second = await _find(request, a), await _find(request, b)
    own, history = _load_tests(request), _load_tests(request).history
    for note in (first, second):
        if not note.report:
            raise HTTPException(409, f"{note.id} has no results to compare.")
    cache = own.comparisons
    if (a, b) not in cache:
        try:
            found = await own.bench.compare(str(history.path(a)), str(history.path(b)))
        except BenchError as error:
            text = str(error).replace(f"{history.directory}/", "")
            raise HTTPException(409, f"They cannot be compared: {text}") from None
        cache[a, b] = ComparisonOut.model_validate(found, extra="ignore")
        while len(cache) > MAX_COMPARISONS:
            del cache[next(iter(cache))]
    return cache[a, b]


@router.post("/load-tests/preview")
async def preview_load_test(request: Request, body: LoadTestIn, _: Runner) -> PreviewOut:
    """Return what a load test would do: how long it takes, what it writes where, what speaks against it."""
    try:
        return await _load_tests(request).preview(body)
    except Refused as error:
        raise HTTPException(422, str(error)) from None
    except BenchError as error:
        raise HTTPException(502, f"The load test cannot be planned: {error}") from None


@router.post("/load-tests", status_code=201)
async def run_load_test(request: Request, body: LoadTestIn, caller: Runner) -> LoadTestOut:
    """Start a load test; 409 while another one runs, or when it cannot be done."""
    try:
        note = await _load_tests(request).begin(body, caller.arn)
    except Refused as error:
        raise HTTPException(409, str(error)) from None
    except BenchError as error:
        raise HTTPException(502, f"The load test cannot be planned: {error}") from None
    except OSError as error:
        raise HTTPException(507, f"The load test cannot be noted: {error.strerror}.") from None
    name_change("sluice:RunLoadTest", f"load-tests/{note.id} {','.join(note.targets)} {','.join(note.scenarios)}")
    return _out(note)


@router.get("/load-tests")
async def list_load_tests(request: Request, _: Reader) -> LoadTestsOut:
    """Return the load tests that are kept, the newest first."""
    history = _load_tests(request).history
    notes = await asyncio.to_thread(history.all)
    return LoadTestsOut(
        installed=is_installed(),
        install=INSTALL,
        load_tests=list(map(_out, notes)),
        bytes=sum(note.bytes for note in notes),
        kept=history.most,
    )


@router.get("/load-tests/{load_test}")
async def get_load_test(request: Request, load_test: str, _: Reader) -> LoadTestOut:
    """Return one load test."""
    return _out(await _find(request, load_test))


@router.delete("/load-tests/{load_test}", status_code=204)
async def remove_load_test(request: Request, load_test: str, _: Runner) -> None:
    """Remove a load test with its results; 409 while it runs."""
    if (await _find(request, load_test)).state == "running":
        raise HTTPException(409, "This load test runs. Cancel it first.")
    await asyncio.to_thread(_load_tests(request).history.remove, load_test)


@router.post("/load-tests/{load_test}/cancel", status_code=202)
async def cancel_load_test(request: Request, load_test: str, _: Runner) -> None:
    """Ask a load test to end; it writes a report of what it has measured."""
    await _find(request, load_test)
    running = _load_tests(request).running
    if running is None or running.state.id != load_test:
        raise HTTPException(409, "This load test does not run any more.")
    await _load_tests(request).cancel()


@router.get("/load-tests/{load_test}/report", response_class=Response)
async def get_report(request: Request, load_test: str, _: Reader, download: bool = False) -> Response:
    """Return the report as one HTML page, which runs and loads nothing."""
    note = await _find(request, load_test)
    if not note.report:
        raise HTTPException(404, "This load test has no report.")
    name = f"sluice-load-test-{note.id}.html" if download else None
    path = _load_tests(request).history.path(note.id) / "report.html"
    headers = {"content-security-policy": REPORT_POLICY, "origin-agent-cluster": "?0"}
    return FileResponse(path, media_type="text/html; charset=utf-8", filename=name, headers=headers)


@router.get("/load-tests/{load_test}/data", response_class=Response)
async def get_data(request: Request, load_test: str, _: Reader) -> Response:
    """Return all files of a load test as a tar: a row for each request, samples of the machine, the report."""
    note = await _find(request, load_test)
    files = await asyncio.to_thread(lambda: list(_load_tests(request).history.files(note.id)))
    name = f"sluice-load-test-{note.id}"
    headers = {"content-disposition": f'attachment; filename="{name}.tar"'}
    return StreamingResponse(stream_tar(files, name), media_type="application/x-tar", headers=headers)


@router.get("/live/load-tests/{load_test}", response_class=Response)
async def follow(request: Request, load_test: str, caller: Reader) -> Response:
    """Stream the progress of a load test: `course` once, then `progress` at each change, until it ended."""
    note = await _find(request, load_test)
    progress = _load_tests(request).progress
    mine = progress if progress is not None and progress.state.id == load_test else None
    return LiveResponse.for_caller(
        request, caller, READ, _events(mine) if mine is not None else _poll(_load_tests(request).history, note)
    )


async def _events(progress: Progress) -> AsyncIterator[bytes]:
    yield render_event(orjson.dumps(list(progress.points)), "course")
    async for state in progress.states():
        yield render_event(state.model_dump_json().encode(), "progress")


async def _poll(history: History, note: Note) -> AsyncIterator[bytes]:
    """Yield the state of a load test that this process does not run: it ended, or does so after a restart."""
    while True:
        running = note.state == "running"
        state = ProgressOut(
            id=note.id, state=note.state, phase="ending" if running else "ended", repeats=note.repeats, total=0, left=0
        )
        yield render_event(state.model_dump_json().encode(), "progress")
        if not running:
            return
        await asyncio.sleep(POLL_SECONDS)
        found = await asyncio.to_thread(history.read, note.id)
        note = found or note.model_copy(update={"state": "failed"})


def _out(note: Note) -> LoadTestOut:
    return LoadTestOut.model_validate(note.model_dump(exclude={"scratch"}))
