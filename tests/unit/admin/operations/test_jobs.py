"""Jobs in the admin API: those that run, what may be asked of them, and who may ask."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from sluice_s3.app.admin.operations import store_check
from sluice_s3.app.admin.operations.job_catalog import catalog
from sluice_s3.app.background_jobs import BackgroundJobs
from sluice_s3.app.index.journals.rows import WATERMARK
from sluice_s3.app.index.meta.rows import JOB_CONTROL, JOB_STATUS
from sluice_s3.app.s3.services import Services
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.settings.stores import StoreSettings
from sluice_s3.app.store.scrub_progress import ScrubProgress, progress_note, render_progress
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.admin.console_client import Console
from tests.unit.jobs.two import stores as opened
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow


async def test_the_catalog_has_the_jobs_that_run(tmp_path: Path) -> None:
    stores = {
        "a": StoreSettings(path=tmp_path / "a", max_bytes=1 << 30),
        "t": StoreSettings(path=tmp_path / "t", layout="tree"),
        "cold": StoreSettings(path=tmp_path / "c"),
    }
    settings = make_settings(tmp_path, stores=stores, storage_classes="GLACIER=cold")
    await asyncio.to_thread(prepare, settings)
    async with opened(settings) as store:
        services = Services(settings, store, SimpleNamespace(), BodyMemoryBudget(1 << 20))  # type: ignore[arg-type]
        context: Any = SimpleNamespace(
            counters=SimpleNamespace(read_activity=None, count_expiry=None, count_compaction=None), oldest_request=None
        )
        jobs = BackgroundJobs(store.index, services, context)
        found = set(jobs._gateway_jobs()) | {"sweep"}
        for one in store.all.values():
            made = jobs._store_jobs(one)
            found |= {f"{name}:{one.name}" for name in made._repeated_jobs}
        again = {name for name, state in jobs._board._jobs.items() if state.again is not None}
        await jobs.stop()
    listed = {one.name: one for one in catalog(settings)}
    assert found - listed.keys() == set()
    assert {name for name, one in listed.items() if one.can_run and not one.can_cancel} <= again
    assert listed.keys() - found == {"fsck", "rebuild", "count:a", "scrub:a", "scrub:t", "scrub:cold"}


async def ask(site: Console, method: str, path: str) -> Any:
    root = await site.sign_in()
    return await root.request(method, f"/api/v1/jobs{path}")


async def one(site: Console, name: str) -> dict[str, Any]:
    return next(job for job in (await ask(site, "GET", "")).json() if job["name"] == name)


async def test_pause_resume_and_run(site: Console) -> None:
    assert (await ask(site, "POST", "/lifecycle/pause")).json()["state"] == "paused"
    assert (await ask(site, "POST", "/lifecycle/run")).status_code == 409
    assert orjson.loads(await site.index.note(JOB_CONTROL))["paused"] == ["lifecycle"]
    assert (await ask(site, "POST", "/lifecycle/resume")).json()["state"] == "idle"
    assert (await ask(site, "POST", "/scrub:default/run")).json()["state"] == "waiting"
    assert "scrub:default" in orjson.loads(await site.index.note(JOB_CONTROL))["run"]
    for path, status in (
        ("/sweep/pause", 409),
        ("/moves/run", 409),
        ("/nothing/run", 404),
        ("/scrub:none/pause", 404),
        ("/lifecycle/cancel", 409),
    ):
        answer = await ask(site, "POST", path)
        assert (answer.status_code, bool(answer.json()["detail"])) == (status, True), path
    events = (await (await site.sign_in()).get("/api/v1/audit-events", params={"action": "sluice:*Job"})).json()
    assert [event["action"] for event in events["events"] if event["outcome"] == "Success"] == [
        "sluice:RunJob",
        "sluice:ResumeJob",
        "sluice:PauseJob",
    ]


async def test_a_status_is_shown_while_its_leader_lives(site: Console) -> None:
    status = {"state": "running", "began": 1_700_000_000_000, "writer": 12345, "error": "StoreUnavailable"}
    await site.index.set_note(f"{JOB_STATUS}compaction:default", orjson.dumps(status).decode())
    found = await one(site, "compaction:default")
    assert (found["state"], found["error"], found["store"]) == ("idle", "StoreUnavailable", "default")
    assert found["began"].startswith("2023-11-14T")


async def test_who_may(site: Console) -> None:
    ann = await site.sign_in(*await site.user("ann", "sluice:ListJobs"))
    assert (await ann.get("/api/v1/jobs")).status_code == 200
    for verb in ("run", "pause", "resume", "cancel"):
        assert (await ann.post(f"/api/v1/jobs/lifecycle/{verb}")).status_code == 403


async def test_a_check_of_the_stores_runs_beside_the_gateway(site: Console) -> None:
    site.app.state.settings.note_options({"data", "index"})
    assert (await ask(site, "POST", "/fsck/run")).json()["state"] == "running"
    assert (await ask(site, "POST", "/fsck/run")).status_code == 409

    async def ended() -> dict[str, Any]:
        found = await one(site, "fsck")
        return found if found["state"] == "idle" else {}

    found = await eventually_async(ended)
    assert (found["error"], found["report"]["rows"], found["report"]["found"]) == ("", 0, {})
    assert (found["findings"], found["progress"]) == (0, [])


async def test_a_rebuild_is_tried_beside_the_gateway(site: Console) -> None:
    site.app.state.settings.note_options({"data", "index"})
    check = site.app.state.store_checks["rebuild"]
    assert (await ask(site, "POST", "/rebuild/run")).json()["state"] == "running"
    check.progress = {"what": "packs", "done": 3, "total": 9}
    assert (await one(site, "rebuild"))["progress"] == [{"what": "Packs", "done": 3, "total": 9}]

    async def ended() -> dict[str, Any]:
        found = await one(site, "rebuild")
        return found if found["state"] == "idle" else {}

    found = await eventually_async(ended)
    assert (found["error"], found["report"]["versions"], found["can_cancel"]) == ("", 0, True)


async def test_a_scrub_tells_how_far_it_is_and_what_it_found(site: Console) -> None:
    async def note(progress: ScrubProgress) -> dict[str, Any]:
        await site.index.set_note(progress_note("default"), render_progress(progress))
        return await one(site, "scrub:default")

    await site.index.set_note(WATERMARK, "400")
    await site.index.add_quarantine(f"b:{1:016x}", "its MD5 is not the ETag")
    await site.index.add_quarantine("other/b:1", "missing")
    found = await note(ScrubProgress(7000, "version", (100, 0, 0)))
    assert found["progress"] == [{"what": "Reading versions", "done": 100, "total": 400}]
    assert found["findings"] == 1
    found = await note(ScrubProgress(7000, "part", (9, 1, 0)))
    assert found["progress"] == [{"what": "Reading parts", "done": 0, "total": None}]
    assert (await note(ScrubProgress(7000)))["progress"] == []
    assert (await one(site, "lifecycle"))["findings"] is None


async def test_a_check_tells_how_far_it_is_by_what_the_last_one_counted(site: Console) -> None:
    check = site.app.state.store_checks["fsck"]
    check.began, check.progress = 7000, {"looked": 30}
    assert (await one(site, "fsck"))["progress"] == [{"what": "Comparing rows and blobs", "done": 30, "total": None}]
    last = {"began": 1, "ended": 2, "report": {"rows": 60, "blobs": 40, "found": {"orphans": 3}, "first": {}}}
    await site.index.set_note(f"{JOB_STATUS}fsck", orjson.dumps(last).decode())
    assert (await one(site, "fsck"))["progress"][0]["total"] == 100
    check.progress = {"looked": 101}
    assert (await one(site, "fsck"))["progress"][0]["total"] is None, "there is more than the last time"
    check.began = 0
    assert (await one(site, "fsck"))["findings"] == 3


@pytest.mark.parametrize(
    ("sent", "last"), [(b'{"missing": []}\n', {"missing": []}), (b"no report\n", {}), (b"x" * 101, None)]
)
async def test_lines_of_progress_come_before_the_report(
    site: Console, monkeypatch: pytest.MonkeyPatch, sent: bytes, last: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(store_check, "MAX_OUTPUT", 100)
    stream = asyncio.StreamReader()
    stream.feed_data(b'{"looked": 1000}\n{"looked": 2000}\n' + sent)
    stream.feed_eof()
    check = site.app.state.store_checks["fsck"]
    assert await check._read_lines(stream) == last
    assert check.progress == {"looked": 2000}


async def test_a_check_that_is_cancelled_or_fails_says_so(site: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    await ask(site, "POST", "/fsck/run")
    assert (await ask(site, "POST", "/fsck/cancel")).json()["error"] == "It was cancelled."
    monkeypatch.setattr(store_check.sys, "executable", "/bin/false")
    await ask(site, "POST", "/fsck/run")

    async def failed() -> bool:
        return (await one(site, "fsck"))["error"] == store_check.NOT_RUN

    await eventually_async(failed)
