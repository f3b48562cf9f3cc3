"""The preview of lifecycle rules says what the job then does, and changes nothing."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI

from sluice_s3.app.admin.lifecycle import routes
from sluice_s3.app.admin.lifecycle.preview import LifecyclePreview
from sluice_s3.app.admin.sessions.guard import CALLER, Caller
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.lifecycle import queries
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, LOCK, Lock
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs.lifecycle import Lifecycle
from sluice_s3.app.s3.lifecycle.rules import parse_rules
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import SETTING, rules_of, to_setting
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.store.site import opened, prepare, put

pytestmark = pytest.mark.slow

OWNER = "111111111111"
DAY_MS = 86_400_000
ROOT = Caller(OWNER, None, True, "", "192.0.2.9", "", "")
RULES = """<LifecycleConfiguration>
<Rule><ID>old</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status>
<Expiration><Days>30</Days></Expiration>
<NoncurrentVersionExpiration><NoncurrentDays>7</NoncurrentDays></NoncurrentVersionExpiration></Rule>
<Rule><ID>parts</ID><Filter/><Status>Enabled</Status>
<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>
</LifecycleConfiguration>"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with opened(settings) as made:
        yield made


async def fill(store: Store) -> Bucket:
    """A versioned bucket with objects of two prefixes, noncurrent versions and a locked one."""
    bucket = await store.index.create_bucket("b", OWNER, "r", 10, versioning=ENABLED)
    await store.index.set_object_lock(bucket.id, [])
    found = await store.index.bucket("b")
    assert found is not None
    for key in ("logs/a", "logs/a", "logs/b", "keep/a", "keep/a"):
        await put(store, found, key, b"12345")
    await put(store, found, "logs/locked", b"12345")
    version = await store.index.version(found.id, "logs/locked")
    assert version is not None
    lock = orjson.dumps({LOCK: list(Lock(COMPLIANCE, 4_102_444_800_000))}).decode()
    await store.index.set_headers(found.id, "logs/locked", version.seq, lock)
    await put(store, found, "logs/locked", b"12345")
    return found


class Site:
    """The routes of a store, for a caller."""

    def __init__(self, store: Store, settings: Settings, caller: Caller = ROOT) -> None:
        self.app = FastAPI()
        self.app.state.index, self.app.state.store, self.app.state.settings = store.index, store, settings
        self.app.include_router(routes.router)
        self.caller = caller

    async def ask(self, name: str = "b", *, status: int = 200, **question: Any) -> Any:
        """Ask for a preview."""

        async def signed_in(scope: Any, receive: Any, send: Any) -> None:
            await self.app(scope | {CALLER: self.caller}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(signed_in), base_url="http://admin") as client:
            found = await client.post(f"/buckets/{name}/lifecycle/preview", json=question)
        assert found.status_code == status, found.text
        return found.json()


def due_of(found: Any, rule: int = 0) -> dict[str, tuple[int, int | None]]:
    """Counts and bytes by kind."""
    return {one["kind"]: (one["count"], one["bytes"]) for one in found["rules"][rule]["due"]}


async def test_a_draft_is_previewed_and_the_job_does_the_same(store: Store, settings: Settings) -> None:
    bucket = await fill(store)
    await store.index.create_upload(bucket.id, "half", "{}", "STANDARD", "", "", OWNER)
    site = Site(store, settings)
    assert due_of(await site.ask(draft=RULES)) == {}
    found = await site.ask(draft=RULES, days_ahead=10)
    assert due_of(found) == {"noncurrent": (1, 5)}
    assert due_of(found, 1) == {"upload": (1, None)}
    assert (found["locked"], found["permanent"], found["stopped"]) == (1, False, "")
    found = await site.ask(draft=RULES, days_ahead=40)
    assert due_of(found) == {"expire": (3, 15), "noncurrent": (1, 5)}
    keys = {one["kind"]: [key["key"] for key in one["keys"]] for one in found["rules"][0]["due"]}
    assert keys == {"expire": ["logs/a", "logs/b", "logs/locked"], "noncurrent": ["logs/a"]}
    assert found["rules"][0]["prefix"] == "logs/"
    await store.index.configure_bucket(bucket.id, SETTING, setting_of(RULES))
    counted: dict[str, int] = {}
    job = Lifecycle(
        store,
        LifecycleCalendar(),
        1_000_000,
        lambda kind, number: counted.update({kind: counted.get(kind, 0) + number}),
        lambda: found["at"],
    )
    await job.run_once()
    assert counted == {"object": 3, "older": 1, "upload": 1}


def setting_of(document: str) -> Any:
    """The stored form of a document."""
    return to_setting(parse_rules(document.encode(), None))


async def test_stored_rules_run_after_midnight(store: Store, settings: Settings) -> None:
    bucket = await fill(store)
    await store.index.configure_bucket(bucket.id, SETTING, setting_of(RULES))
    found = await Site(store, settings).ask(days_ahead=7)
    assert found["at"] % DAY_MS == 0
    assert due_of(found) == {"noncurrent": (1, 5)}
    assert (await Site(store, settings).ask())["looked_at"] == 5


async def test_it_stops_at_its_limits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await fill(store)
    await store.index.configure_bucket(bucket.id, SETTING, setting_of(RULES))
    found = await store.index.bucket("b")
    assert found is not None
    monkeypatch.setattr(queries, "ROWS_PER_BATCH", 2)
    arguments = (store.index, found, rules_of(found), LifecycleCalendar(), time.time_ns() // 1_000_000, ())
    stopped = await LifecyclePreview(*arguments, max_rows=2).run([])
    assert (stopped.stopped, stopped.stopped_at, stopped.looked_at) == ("rows", "logs/a", 2)
    late = await LifecyclePreview(*arguments, max_seconds=-1).run([])
    assert late.stopped == "time"


async def test_what_is_refused(store: Store, settings: Settings) -> None:
    await fill(store)
    site = Site(store, settings)
    await site.ask("none", status=404)
    for draft, detail in (("<x", "MalformedXML"), (RULES.replace("30", "-1"), "InvalidArgument"), ("", "MalformedXML")):
        assert detail in (await site.ask(draft=draft, status=422))["detail"]
    move = "<Transition><Days>9</Days><StorageClass>GLACIER</StorageClass></Transition>"
    transition = RULES.replace("<Expiration>", f"{move}<Expiration>")
    assert "NotImplemented" in (await site.ask(draft=transition, status=422))["detail"]
    await site.ask(days_ahead=-1, status=422)
    other = Site(store, settings, Caller("222222222222", None, False, "", "", "", ""))
    assert "s3:GetLifecycleConfiguration" in (await other.ask(status=403))["detail"]
