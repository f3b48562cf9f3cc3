"""The rooms Overview and Stores."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Route, expect

from tests.console.tab import Tab


def test_overview_counts_what_clients_do(root_tab: Tab, s3: Any, bucket: str) -> None:
    """Requests are in the table by operation, the charts are drawn, and the page says that it is live."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 5000)
    page = root_tab.open("/console/overview")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_text("PutObject", exact=True))
    expect(row).to_be_visible()
    expect(row.get_by_role("cell").nth(3).locator("span")).to_have_attribute("title", re.compile("^Between .* and "))
    expect(page.locator(".chart canvas")).to_have_count(4)
    expect(page.get_by_role("img", name=re.compile("^Requests a second. Now"))).to_be_visible()
    expect(page.get_by_role("link", name="default", exact=True)).to_have_attribute(
        "href", "/console/stores?store=default"
    )
    busiest = page.get_by_role("region", name="By bucket")
    expect(busiest.get_by_role("link", name=bucket, exact=True)).to_be_visible()
    root_tab.check_accessibility()


def test_overview_goes_on_after_a_break_without_a_flash(root_tab: Tab, s3: Any, bucket: str) -> None:
    """While the gateway is away the page says so and keeps what it shows."""
    s3.head_bucket(Bucket=bucket)
    page = root_tab.open("/console/overview")
    table = page.get_by_role("row").filter(has_text="HeadBucket")
    expect(table).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it connects anew
    expect(page.get_by_role("status").filter(has_text="Reconnecting")).to_be_visible()
    expect(table).to_be_visible()
    expect(page.locator(".figures.stale")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(4)
    page.context.set_offline(False)
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()


FINDING = {
    "kind": "damage",
    "severity": "error",
    "subject": "<img src=x onerror=alert(1)>",
    "title": "Two <b>bodies</b> are damaged",
    "advice": "Restore them.",
    "command": "sluice scrub",
    "link": "stores?store=default",
    "since": 1_700_000_000_000,
}


def test_what_needs_attention_comes_first_and_is_text(open_tab: Callable[..., Tab]) -> None:
    """On a phone, in the dark."""
    tab = open_tab(color_scheme="dark", viewport={"width": 390, "height": 800})
    tab.sign_in()

    def answer(route: Route) -> None:
        overview = json.loads(route.fetch().text())
        route.fulfill(json={**overview, "attention": [FINDING], "unchecked": ["space of default"]})

    tab.page.route("**/api/v1/overview", answer)
    page = tab.open("/console/overview")
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    expect(page.get_by_text("Two <b>bodies</b> are damaged")).to_be_visible()
    expect(page.get_by_text("All is well")).to_have_count(0)
    expect(page.get_by_text("Could not be checked just now: space of default.")).to_be_visible()
    expect(page.get_by_role("button", name="Copy the command")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tab.check_accessibility()


def test_stores_by_keyboard(root_tab: Tab) -> None:
    """A card's details open with Enter and are a page: they are open after a reload."""
    page = root_tab.open("/console/stores")
    summary = page.locator("summary", has_text="Details of default")
    expect(page.get_by_role("img", name=re.compile("^sync: median"))).to_be_visible()
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Mount")).to_contain_text("exclusive create")
    expect(page).to_have_url(re.compile(r"/console/stores\?store=default$"))
    root_tab.check_accessibility()
    page.reload()
    expect(page.get_by_role("region", name="Circuit breaker")).to_be_visible()
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Mount")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/console/stores$"))


def test_a_store_that_hangs_is_told_part_by_part(open_tab: Callable[..., Tab]) -> None:
    """What still answers is there; what does not says since when. Nothing of it is HTML."""
    tab = open_tab(viewport={"width": 390, "height": 800})
    tab.sign_in()
    since = round(time.time() * 1000) - 60_000
    evil = "</p><img src=x onerror=alert(1)>"

    def answer(route: Route) -> None:
        (store,) = json.loads(route.fetch().text())
        store["space"] = {"value": None, "read": None, "silent_since": since}
        store["latency"] = {"points": [[since, 0.001, 0.002], [since + 5000, None, None]], "silent_since": since}
        store["breaker"] |= {"condition": "down", "processes": 1, "of": 2, "since": since, "reason": evil}
        store["breaker"]["history"] = [
            {"at": since, "condition": "down", "processes": 1, "of": 2, "reason": evil},
            {"at": since - 1, "condition": "up", "processes": 2, "of": 2, "reason": ""},
        ]
        store["scrub"]["value"] |= {
            "damaged": 1,
            "findings": [{"locator": "b:1", "reason": evil, "found": since}],
            "running": True,
            "began": since,
            "kind": "versions",
            "share": 0.25,
        }
        route.fulfill(json=[store])

    tab.page.route("**/api/v1/store-health", answer)
    page = tab.open("/console/stores?store=default")
    expect(page.get_by_text("The file system does not answer since")).to_be_visible()
    expect(page.get_by_text("out of service").first).to_be_visible()
    expect(page.get_by_text("It does not answer since")).to_have_count(0)  # the reason stands above
    expect(page.get_by_role("region", name="Scrub")).to_contain_text("25 % of the versions")
    expect(page.get_by_text(evil).first).to_be_visible()
    expect(page.locator(".sparkline .failure")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tab.check_accessibility()


COUNT_DRAWS = """() => new Promise((done) => {
  let draws = 0;
  const { prototype } = CanvasRenderingContext2D;
  const { clearRect } = prototype;
  prototype.clearRect = function (...box) {
    draws += 1;
    return clearRect.apply(this, box);
  };
  setTimeout(() => done(draws), 3500);
})"""


def test_charts_stand_still_for_who_wants_no_motion(open_tab: Callable[..., Tab]) -> None:
    """With `prefers-reduced-motion` the figures go on, and the charts move every ten seconds only."""
    tab = open_tab(reduced_motion="reduce")
    tab.sign_in()
    page = tab.open("/console/overview")
    expect(page.locator(".chart canvas")).to_have_count(4)
    page.wait_for_function("/[0-9]/.test(document.querySelector('.figure .value').textContent)")
    draws = page.evaluate(COUNT_DRAWS)
    assert draws <= 4, "at most once a chart in that time"
