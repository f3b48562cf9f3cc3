"""Load tests in the admin API, with a stand-in for `sluice bench`; tests/console has a real one."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice_s3.app.admin.load_tests import routes, runner
from sluice_s3.app.admin.load_tests.bench import Bench
from sluice_s3.app.admin.load_tests.history import Note
from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow

FAKE = (sys.executable, str(Path(__file__).with_name("fake_bench.py")))
ASKED = {"targets": ["default"], "scenarios": ["mixed"], "minutes": 1}
API = "/api/v1/load-tests"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "disk").mkdir()
    listed = f"disk={tmp_path}/disk,gone={tmp_path}/gone,other=http://127.0.0.1:1"
    made = make_settings(tmp_path, bench_targets=listed, bench_history=2)
    prepare(made)
    return made


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Console]:
    async with console(settings) as found:
        found.app.state.load_tests.bench = Bench(FAKE)
        yield found


@pytest.fixture
async def root(site: Console) -> AsyncIterator[httpx.AsyncClient]:
    browser = await site.sign_in()
    yield browser
    await browser.aclose()


async def ended(root: httpx.AsyncClient, load_test: str) -> dict[str, Any]:
    for _ in range(400):
        found = (await root.get(f"{API}/{load_test}")).json()
        if found["state"] != "running":
            return found  # type: ignore[no-any-return]
        await asyncio.sleep(0.05)
    raise AssertionError("it does not end")


async def begun(root: httpx.AsyncClient, **asked: Any) -> str:
    answer = await root.post(API, json={**ASKED, **asked})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def appears(path: Path) -> None:
    for _ in range(200):
        if path.exists():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{path} does not appear")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left(settings: Settings) -> list[Path]:
    """What load tests left on the store, in the directory of locks and on the listed disk."""
    places = (settings.data, settings.run_dir, settings.data.parent / "disk")
    return [path for place in places if place.exists() for path in place.glob("sluice-load-test-*")]


async def test_what_can_be_measured(root: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    found = (await root.get(f"{API}/targets")).json()
    kinds = {one["name"]: one["kind"] for one in found["targets"]}
    assert kinds == {"default": "store", "disk": "path", "gone": "path", "other": "endpoint"}
    assert (found["installed"], found["running"], found["install"]) == (True, None, "pip install 'sluice-s3[loadtest]'")
    default = found["targets"][0]
    assert (default["driver"], default["filesystem"], default["free"]) == ("local", "ext4", 1 << 40)
    scenarios = (await root.get(f"{API}/scenarios")).json()
    assert [one["name"] for one in scenarios] == ["mixed", "sizes"]
    assert "file" not in scenarios[0]
    for module in (runner, routes):
        monkeypatch.setattr(module, "is_installed", lambda: False)
    found = (await root.get(f"{API}/targets")).json()
    assert (found["installed"], len(found["targets"])) == (False, 4)
    assert (await root.get(f"{API}/scenarios")).json() == []
    assert (await root.get(API)).json()["installed"] is False
    answer = await root.post(API, json=ASKED)
    assert (answer.status_code, answer.json()["detail"]) == (409, "Load tests are not installed here.")


async def test_from_the_preview_to_the_report(root: httpx.AsyncClient, settings: Settings) -> None:
    preview = (await root.post(f"{API}/preview", json=ASKED)).json()
    assert (preview["repeats"], preview["problems"], preview["warnings"]) == (3, [], ["a warning"])
    load_test = await begun(root)
    found = await ended(root, load_test)
    assert (found["state"], found["headline"]) == ("complete", ["Take default for mixed load."])
    assert found["by"].endswith(":root")
    assert found["report"]
    assert found["bytes"] > 0
    assert "scratch" not in found
    assert left(settings) == []
    events = (await root.get("/api/v1/audit-events", params={"action": "sluice:RunLoadTest"})).json()
    assert [one["resource"] for one in events["events"]] == [f"load-tests/{load_test} default mixed"]
    report = await root.get(f"{API}/{load_test}/report")
    policy = report.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';"), "no script runs in it, and it has no origin"
    assert "frame-ancestors 'self'" in policy
    data = await root.get(f"{API}/{load_test}/data")
    names = tarfile.open(fileobj=io.BytesIO(data.content)).getnames()
    assert f"sluice-load-test-{load_test}/rows/default/mixed-1.csv.gz" in names
    assert not any("load-test.json" in name for name in names)
    assert (await root.delete(f"{API}/{load_test}")).status_code == 204
    assert (await root.get(f"{API}/{load_test}/report")).status_code == 404


async def test_the_progress_as_a_page_follows_it(
    root: httpx.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BENCH", "waits")
    load_test = await begun(root)
    await appears(settings.home / "load-tests" / load_test / "waits")
    assert (await root.post(API, json=ASKED)).status_code == 409, "one at a time"
    assert (await root.delete(f"{API}/{load_test}")).status_code == 409
    await asyncio.sleep(0.1)
    assert (await root.post(f"{API}/{load_test}/cancel")).status_code == 202
    stream = await root.get(f"/api/v1/live/load-tests/{load_test}")
    assert stream.headers["content-type"].startswith("text/event-stream")
    blocks = [block.split("\n") for block in stream.text.split("\n\n") if block.startswith("event")]
    events = [(block[0].removeprefix("event: "), json.loads(block[-1].removeprefix("data: "))) for block in blocks]
    assert events[0][0] == "course"
    assert events[0][1][0]["requests"] == 100
    states = [state for name, state in events if name == "progress"]
    assert states[0]["phase"] == "ending"
    assert "a word of the run" in states[0]["messages"]
    assert (states[-1]["phase"], states[-1]["state"], states[-1]["done"]) == ("ended", "partial", 1)
    found = await ended(root, load_test)
    assert (found["state"], found["reason"], found["report"]) == ("partial", "cancelled", True)
    assert left(settings) == []


async def test_what_does_not_end_is_killed_with_all_that_it_started(
    root: httpx.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BENCH", "stubborn")
    monkeypatch.setattr(runner, "END_GRACE_SECONDS", 0.2)
    load_test = await begun(root)
    directory = settings.home / "load-tests" / load_test
    await appears(directory / "waits")
    child = int((directory / "child").read_text())
    assert runs(child)
    assert (await root.post(f"{API}/{load_test}/cancel")).status_code == 202
    assert (await ended(root, load_test))["state"] == "failed"
    assert not runs(child)
    assert left(settings) == []


async def test_a_gateway_that_stops_and_one_that_was_killed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BENCH", "waits")
    async with console(settings) as site:
        root = await site.sign_in()
        site.app.state.load_tests.bench = Bench(FAKE)
        load_test = await begun(root)
        await appears(settings.home / "load-tests" / load_test / "waits")
        assert len(left(settings)) == 2
    assert left(settings) == [], "it ended with the gateway, and in order"
    history = site.app.state.load_tests.history
    assert history.read(load_test).state == "partial"
    killed = Note(
        id="20260101-000000-abcd", state="running", started=1, minutes=1, targets=["default"], scenarios=["mixed"],
        repeats=3, scratch=[f"{settings.data}/sluice-load-test-20260101-000000-abcd", str(settings.data / "index")],
    )  # fmt: skip
    history.write(killed)
    Path(killed.scratch[0], "deep").mkdir(parents=True)
    tests = runner.LoadTests(settings, site.app.state.load_tests.traffic, Bench(FAKE))
    await tests._sweep_killed()
    assert left(settings) == []
    assert (settings.data / "index").exists(), "nothing but scratch directories is ever removed"
    found = tests.history.read(killed.id)
    assert found is not None
    assert (found.state, found.reason, found.report) == ("partial", "the gateway ended while it ran", True)


async def test_it_says_why_it_is_partial(root: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself says it at its end: its last message may be about something else."""
    monkeypatch.setenv("FAKE_BENCH", "short")
    found = await ended(root, await begun(root))
    assert (found["state"], found["reason"], found["report"]) == ("partial", "the time is up", True)


async def test_it_says_why_it_failed(root: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BENCH", "fails")
    found = await ended(root, await begun(root))
    assert (found["state"], found["reason"]) == ("failed", "sluice: it cannot begin")
    assert (await root.get(f"{API}/{found['id']}/report")).status_code == 404
    monkeypatch.setenv("FAKE_BENCH", "full")
    answer = await root.post(API, json=ASKED)
    assert (answer.status_code, "no space" in answer.json()["detail"]) == (409, True)


WRONG: list[tuple[dict[str, Any], int]] = [
    ({"targets": ["/etc"]}, 422),
    ({"targets": ["default=/etc"]}, 422),
    ({"targets": ["http://127.0.0.1:9000"]}, 422),
    ({"targets": ["unknown"]}, 409),
    ({"targets": []}, 422),
    ({"targets": ["default", "default"]}, 409),
    ({"scenarios": ["unknown"]}, 409),
    ({"scenarios": ["--json"]}, 422),
    ({"minutes": 1e9}, 422),
    ({"users": 0}, 422),
    ({"directory": "/etc"}, 422),
    ({"durability": "none"}, 422),
]
"""What cannot be asked for, and the answer."""


async def test_nothing_but_what_the_operator_listed(root: httpx.AsyncClient) -> None:
    for asked, status in WRONG:
        answer = await root.post(API, json={**ASKED, **asked})
        assert answer.status_code == status, asked
    assert (await root.get(API)).json()["load_tests"] == []


async def test_the_history_is_bounded_and_two_are_compared(root: httpx.AsyncClient, site: Console) -> None:
    history = site.app.state.load_tests.history
    for day in range(1, 4):
        one = f"2026010{day}-000000-abcd"
        history.write(Note(id=one, state="complete", started=day, minutes=1, targets=["a"], scenarios=[], repeats=1))
        (history.path(one) / "report.html").write_text("x")
    first, second = "20260102-000000-abcd", "20260103-000000-abcd"
    found = (await root.get(f"{API}/comparison", params={"a": first, "b": second})).json()
    assert (found["pairs"][0]["over"]["call"], found["remarks"]) == ("faster", ["a remark"])
    await ended(root, await begun(root))
    listed = (await root.get(API)).json()
    assert [one["id"] for one in listed["load_tests"]][1:] == [second]
    assert listed["kept"] == 2
    for wrong in ("..", "%2e%2e", "20260101-000000-abcd", "x"):
        assert (await root.get(f"{API}/{wrong}/report")).status_code == 404
        assert (await root.get(f"{API}/comparison", params={"a": wrong, "b": second})).status_code == 404


async def test_who_may_not(site: Console, root: httpx.AsyncClient) -> None:
    load_test = await begun(root)
    await ended(root, load_test)
    paths = [API, f"{API}/targets", f"{API}/scenarios", f"{API}/{load_test}", f"{API}/{load_test}/report"]
    paths += [f"{API}/{load_test}/data", f"/api/v1/live/load-tests/{load_test}", f"{API}/comparison?a=x&b=y"]
    async with site.browser() as nobody:
        assert {(await nobody.get(path)).status_code for path in paths} == {401}
    none = await site.sign_in(*await site.user("none"))
    assert {(await none.get(path)).status_code for path in paths} == {403}
    reader = await site.sign_in(*await site.user("reader", "sluice:ListLoadTests"))
    assert (await reader.get(API)).status_code == 200
    assert (await reader.post(API, json=ASKED)).status_code == 403
    assert (await reader.post(f"{API}/preview", json=ASKED)).status_code == 403
    assert (await reader.post(f"{API}/{load_test}/cancel")).status_code == 403
    assert (await reader.delete(f"{API}/{load_test}")).status_code == 403
