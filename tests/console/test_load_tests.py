"""The room of load tests: from the empty room to the verdict with a real, very short run; and two compared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable

from playwright.sync_api import expect

from tests.console.tab import Tab
from tests.support.gateway import Gateway

ROOM = "/console/load-tests"
RUN_MS = 120_000
"""A run of seconds on a machine that has other work."""


def test_from_the_browser_to_the_verdict(root_tab: Tab, gateway: Gateway) -> None:
    """A person chooses a store and a load, watches, and reads the report; nothing is left on the store."""
    page = root_tab.open(ROOM)
    expect(page.get_by_role("heading", name="Which disk is faster for your load?")).to_be_visible()
    page.get_by_role("link", name="Choose what to compare").click()
    start = page.get_by_role("button", name="Start")
    expect(start).to_be_disabled(timeout=RUN_MS)
    page.get_by_role("checkbox", name=re.compile("^default")).check(timeout=RUN_MS)
    for box in page.get_by_role("group", name="Which load").get_by_role("checkbox").all():
        box.uncheck()
    page.get_by_label("Fixed rate").check()
    page.get_by_label("Minutes").fill("0")
    expect(page.get_by_text("Between 0.1 and 240 minutes.")).to_be_visible()
    page.get_by_label("Minutes").fill("0.5")  # a busy machine needs part of it to start the servers
    expect(page.get_by_text("with one target there are figures", exact=False)).to_be_visible(timeout=RUN_MS)
    expect(start).to_be_enabled(timeout=RUN_MS)
    start.click()
    expect(page).to_have_url(re.compile(r"/load-tests/\d{8}-\d{6}-[0-9a-f]{4}"), timeout=RUN_MS)
    expect(page.get_by_role("progressbar", name="Progress of the load test")).to_be_visible()
    expect(page.locator("dl.live-figures dd").first).to_have_text(re.compile(r"\d"), timeout=RUN_MS)
    root_tab.check_accessibility()
    report = page.frame_locator("iframe.report")
    expect(report.get_by_role("heading", name="Verdict")).to_be_visible(timeout=RUN_MS)
    expect(page.locator(".verdict")).to_contain_text("Nothing to compare")
    root_tab.check_accessibility()
    assert not list(gateway.store.rglob("sluice-load-test-*"))
    page.get_by_role("link", name="Load tests").first.click()
    expect(page.get_by_role("link", name="Load test of default")).to_be_visible()
    _compare(root_tab, gateway)


def _compare(tab: Tab, gateway: Gateway) -> None:
    """Set the run beside a copy of itself, then remove the copy."""
    (run,) = (gateway.store / "load-tests").glob("2*")
    copy = run.with_name(f"20260101-000000{run.name[-5:]}")
    shutil.copytree(run, copy)
    note = json.loads((run / "load-test.json").read_text())
    (copy / "load-test.json").write_text(json.dumps({**note, "id": copy.name}))
    page = tab.open(ROOM)
    for name in (run.name, copy.name):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    tab.check_accessibility()
    page.get_by_role("link", name="Compare two").click()
    expect(page.get_by_role("heading", name="default")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("row", name=re.compile("Fixed rate"))).to_be_visible()
    tab.check_accessibility()
    page.goto(f"{ROOM}/{copy.name}")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page).to_have_url(re.compile("/load-tests$"))
    assert not copy.exists()


def test_a_phone_in_the_dark(open_tab: Callable[..., Tab]) -> None:
    """The form by keyboard, and a load test that there is no more."""
    tab = open_tab(color_scheme="dark", viewport={"width": 390, "height": 800})
    tab.sign_in()
    page = tab.open(f"{ROOM}/new?targets=default&scenarios=mixed&minutes=2")
    expect(page.get_by_role("checkbox", name=re.compile("^default"))).to_be_checked(timeout=RUN_MS)
    page.get_by_label("Mixed load", exact=True).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("Choose at least one load.")).to_be_visible()
    tab.check_accessibility()
    page.goto(f"{ROOM}/20260101-000000-ffff")
    expect(page.get_by_role("alert")).to_contain_text("There is no such load test.")
