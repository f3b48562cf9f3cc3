"""What the API says of stores: whole, hanging, damaged."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.journals.rows import WATERMARK
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.scrub_progress import ScrubProgress, progress_note, render_progress
from sluice_s3.storage_drivers import health
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow


@pytest.fixture
def hang_timeout() -> float:
    return 0.4


@pytest.fixture
def settings(tmp_path: Path, hang_timeout: float) -> Settings:
    made = make_settings(tmp_path, hang_timeout=hang_timeout)
    prepare(made)
    return made


async def read(browser: Any, path: str = "/api/v1/store-health/default") -> Any:
    answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


PARTS = ("space", "buckets", "packs", "journals", "scrub")


def lasting(told: Any) -> Any:
    """What a later reading has too: neither when a part was read, nor what others write on the same file system."""
    parts = {name: told[name]["value"] for name in PARTS}
    return told | parts | {"latency": None, "space": parts["space"]["total"]}


@pytest.mark.parametrize("hang_timeout", [60.0])  # nothing hangs, however busy the machine
async def test_a_store_that_is_whole(settings: Settings) -> None:
    async with console(settings) as site:
        browser = await site.sign_in()
        await eventually_async(lambda: bool(site.app.state.monitoring.health.watch.latencies("default")))

        async def read_whole() -> Any:
            told = await read(browser)
            return all(told[name]["value"] is not None for name in PARTS) and told

        told = await eventually_async(read_whole, "every part was read")
        listed = await read(browser, "/api/v1/store-health")
        assert list(map(lasting, listed)) == [lasting(told)], "the list has the same"
    space = os.statvfs(settings.data)
    assert told["space"]["value"]["total"] == space.f_blocks * space.f_frsize
    assert told["mount"]["point"]
    assert os.path.ismount(told["mount"]["point"])
    assert {one["name"] for one in told["mount"]["trials"]} >= {"exclusive create"}
    (_, took_read, took_sync) = told["latency"]["points"][0]
    assert 0 < took_read < 60
    assert 0 < took_sync < 60
    assert told["latency"]["silent_since"] is None
    assert told["place"] == str(settings.data)
    assert told["packs"]["value"]["dead_bytes"] == 0
    assert told["journals"]["value"]["failing"] is None
    never = {"began": None, "running": False, "kind": "", "share": None}
    assert told["scrub"]["value"] == {"rate": settings.scrub_rate, **never, "damaged": 0, "findings": []}
    assert not list(settings.data.glob("probe/*-look")), "the probe leaves nothing"


async def test_scrub_tells_how_far_it_is_and_what_it_found(settings: Settings) -> None:
    async with console(settings) as site:
        browser = await site.sign_in()
        index = site.index
        await index.set_note(WATERMARK, "400")
        await index.set_note(progress_note("default"), render_progress(ScrubProgress(7000, "version", (100, 0, 0))))
        for number in range(3):
            await index.add_quarantine(f"b:{number:016x}", "its MD5 is not the ETag")
        await index.add_quarantine("other/b:1", "missing")
        scrub = (await read(browser))["scrub"]["value"]
        overview = await read(browser, "/api/v1/overview")
    assert (scrub["running"], scrub["began"], scrub["kind"], scrub["share"]) == (True, 7000, "versions", 0.25)
    assert scrub["damaged"] == 3
    assert {one["reason"] for one in scrub["findings"]} == {"its MD5 is not the ETag"}
    (finding,) = [one for one in overview["attention"] if one["kind"] == "damage"]
    assert finding["severity"] == "error"
    assert finding["title"] == "3 stored bodies are damaged on default"
    assert finding["command"] == "sluice scrub"
    assert overview["attention"][0] == finding, "the gravest comes first"


async def test_a_store_that_hangs_does_not_hang_its_page(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its probe hangs in a thread, its space is not told, the rest of the page comes."""
    hanging = True

    def hang(*_: Any) -> Any:
        while hanging:
            time.sleep(0.01)
        raise OSError(5, "gone")

    async with console(settings) as site:
        browser = await site.sign_in()
        state = site.app.state.monitoring.health
        await eventually_async(lambda: bool(state.watch.latencies("default")))
        monkeypatch.setattr(health, "_time_read", hang)

        async def usage(_: float) -> None:
            await asyncio.sleep(60)

        monkeypatch.setattr(site.app.state.store, "usage", usage)
        state.watch.look()
        await eventually_async(lambda: state.watch.silent_since("default") is not None)
        began = time.monotonic()
        told = await read(browser)
        assert time.monotonic() - began < 10
        overview = await read(browser, "/api/v1/overview")
        hanging = False
    assert told["latency"]["silent_since"] == pytest.approx(time.time() * 1000, abs=60_000)
    assert told["latency"]["points"][-1][1:] == [None, None]
    assert told["space"]["silent_since"] is not None
    assert told["scrub"]["silent_since"] is None
    assert told["scrub"]["value"]["damaged"] == 0
    assert any(one["kind"] == "store-silent" for one in overview["attention"])
    assert "space of default" in overview["unchecked"]


async def test_a_path_is_told_only_to_who_may_see_stores(settings: Settings) -> None:
    async with console(settings) as site:
        keys = await site.user("watcher", "sluice:GetOverview")
        await site.index.add_quarantine("b:1", "missing")
        browser = await site.sign_in(*keys)
        for path in ("/api/v1/store-health", "/api/v1/store-health/default"):
            answer = await browser.get(path)
            assert answer.status_code == 403
            assert "sluice:ListStores" in answer.json()["detail"]
        overview = await browser.get("/api/v1/overview")
        nobody = await site.sign_in(*await site.user("nobody"))
        for path in ("/api/v1/overview", "/api/v1/live/overview"):
            assert (await nobody.get(path)).status_code == 403
        assert (await site.browser().get("/api/v1/live/overview")).status_code == 401
    assert overview.status_code == 200
    assert str(settings.data) not in overview.text
    assert all(one["link"] is None for one in overview.json()["attention"]), "it would lead nowhere"


async def test_a_store_that_there_is_not(settings: Settings) -> None:
    async with console(settings) as site:
        browser = await site.sign_in()
        assert (await browser.get("/api/v1/store-health/none")).status_code == 404


class Processes:
    """What two workers and the admin process say of a store."""

    def __init__(self) -> None:
        self.conditions = ["up", "up", "up"]

    def __call__(self, name: str) -> list[tuple[str, int, int, int]]:
        return [(one, 1, int(one == "down"), 0) for one in self.conditions]


async def test_the_breaker_of_every_process_counts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(settings) as site:
        states = Processes()
        state = site.app.state.monitoring.health
        monkeypatch.setattr(state, "_states", states)
        monkeypatch.setattr(state.watch, "_states", states)
        await eventually_async(lambda: len(state.watch.transitions("default")) == 1)
        states.conditions = ["up", "down", "down"]
        await eventually_async(lambda: len(state.watch.transitions("default")) == 2)
        breaker = state.breaker("default")
        assert (breaker.condition, breaker.processes, breaker.of) == ("down", 2, 3)
        assert (breaker.running_calls, breaker.stuck_calls) == (3, 2)
        assert breaker.since == breaker.history[0].at
        assert [one.condition for one in breaker.history] == ["down", "up"]
        found = await attention(site)
    assert found["title"] == "default is out of service (2 of 3 processes)"


async def attention(site: Console) -> Any:
    told = await read(await site.sign_in(), "/api/v1/overview")
    (finding,) = [one for one in told["attention"] if one["kind"] == "store-down"]
    return finding
