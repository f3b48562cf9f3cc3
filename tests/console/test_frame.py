"""The frame of every page: files, sign-in, rooms, palette."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Response, Route, expect

from sluice_s3.app.admin.sessions.cookie import write_cookie
from tests.console.tab import Tab
from tests.support.gateway import ACCESS_KEY, SECRET_KEY
from tests.support.waiting import eventually

FIRST_LOAD_BYTES = 100_000
COUNT_SHIFTS = """
    window.shifts = 0;
    new PerformanceObserver((list) => { shifts += list.getEntries().length; }).observe({ type: "layout-shift" });
"""
DELAY_ANSWERS = """
    const send = window.fetch;
    let answers = 0;
    window.fetch = (...request) => send(...request).then(
        (answer) => new Promise((resolve) => setTimeout(() => resolve(answer), (answers += 1) * 40)));
"""
"""Each answer comes in a frame of its own."""
READ_SHIFTS = "() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(shifts))))"
WAIT_FOR_PAINT = """() => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("nothing is painted")), 10_000);
    new PerformanceObserver((list) => {
        if (list.getEntriesByName("first-contentful-paint").length) resolve();
    }).observe({ type: "paint", buffered: true });
})"""


def test_sign_in_and_out(tab: Tab) -> None:
    """A person signs in by the form, lands on the page of the address, and signs out."""
    page = tab.page
    page.goto("/console/nowhere")
    page.get_by_label("Access key").fill(ACCESS_KEY)
    page.get_by_label("Secret key").fill("wrong-secret-key-012345")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    tab.check_accessibility()
    page.get_by_label("Secret key").fill(SECRET_KEY)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("No such page")).to_be_visible()
    assert page.url.endswith("/console/nowhere")
    tab.check_accessibility()
    page.get_by_role("button", name="Your session").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Access key")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Access key")).to_be_visible()


def test_a_session_that_ends_asks_to_sign_in_and_keeps_the_page(root_tab: Tab) -> None:
    """The page says that the session ended, and is there again after signing in."""
    page = root_tab.page
    page.goto("/console/nowhere")
    expect(page.get_by_text("No such page")).to_be_visible()
    page.context.clear_cookies()
    page.reload()
    page.get_by_label("Access key").fill(ACCESS_KEY)
    page.get_by_label("Secret key").fill(SECRET_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_text("No such page")).to_be_visible()


def test_a_page_says_that_nobody_is_there(new_tab: Tab) -> None:
    """What it asks by itself keeps no session; a key or a click makes it a person's again."""
    new_tab.sign_in()
    page = new_tab.page
    page.clock.install()  # in all pages of its context, which nobody uses after it
    new_tab.open("/console/stores")
    asked: list[str | None] = []
    page.on("request", lambda one: asked.append(one.headers.get("x-sluice-unattended")) if "/api/" in one.url else None)
    with page.expect_request(lambda one: "/api/" in one.url):
        page.clock.run_for(30_000)
    assert set(asked) == {None}
    with page.expect_request(lambda one: "x-sluice-unattended" in one.headers):
        page.clock.run_for(60_000)
    page.keyboard.press("Shift")
    with page.expect_request(lambda one: "/api/" in one.url and "x-sluice-unattended" not in one.headers):
        page.clock.run_for(30_000)


def test_palette_by_keyboard(root_tab: Tab, bucket: str) -> None:
    """Ctrl-K, a word, Enter: another page, without the pointer; pages and buckets are known from everywhere."""
    page = root_tab.page
    page.goto("/console/nowhere")
    expect(page.get_by_text("No such page")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    expect(page.get_by_role("option")).to_have_text(["Audit logpage"])
    page.get_by_role("combobox").fill(bucket)
    expect(page.get_by_role("option").filter(has=page.get_by_text(bucket, exact=True))).to_be_visible()
    page.get_by_role("combobox").fill("polic")
    expect(page.get_by_role("option")).to_have_text(["Policiespage"])
    page.get_by_role("combobox").fill("no such thing")
    expect(page.get_by_text("Nothing has a name like this.")).to_be_visible()
    page.get_by_role("combobox").fill("peop")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/console/people"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_palette_opens_before_the_next_key(root_tab: Tab) -> None:
    """Letters typed right after Ctrl-K are the palette's: it is open in the next task, before any paint."""
    page = root_tab.page
    page.goto("/console/nowhere")
    expect(page.get_by_text("No such page")).to_be_visible()
    opened = page.evaluate("""() => new Promise((resolve) => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => resolve(document.querySelector("dialog.palette")?.matches(":modal") ?? false);
        window.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
        channel.port2.postMessage(null);
    })""")
    assert opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_frame_is_accessible(open_tab: Callable[..., Tab], scheme: str) -> None:
    """Both colour schemes, and the rooms' drawer of a phone."""
    tab = open_tab(color_scheme=scheme, viewport={"width": 390, "height": 800})
    tab.sign_in()
    tab.page.goto("/console/nowhere")
    tab.page.get_by_role("button", name="Rooms").click()
    expect(tab.page.get_by_role("link", name="Buckets")).to_be_visible()
    tab.check_accessibility()
    tab.page.mouse.click(370, 700)
    expect(tab.page.get_by_role("link", name="Buckets")).to_be_hidden()


@pytest.mark.parametrize(("signed_in", "brand"), [(True, ".shell > nav .brand"), (False, ".sign-in .brand")])
def test_the_frame_is_painted_before_a_script_runs(tab: Tab, signed_in: bool, brand: str) -> None:
    """The scripts fill in the same elements, and nothing moves."""
    if signed_in:
        tab.sign_in()
    page = tab.page
    held: list[Route] = []
    page.route("**/js/main.js", lambda route: held.append(route))
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/console/nowhere", wait_until="commit")
    page.evaluate(WAIT_FOR_PAINT)
    element = page.locator(brand).element_handle()
    assert element is not None
    held[0].continue_()
    expect(page.get_by_text("No such page") if signed_in else page.get_by_label("Access key")).to_be_visible()
    assert element.evaluate("(one) => one.isConnected")
    assert page.evaluate(READ_SHIFTS) == 0


@pytest.mark.parametrize(("path", "last"), [("overview", "By operation"), ("people/users/{user}", "Policies")])
def test_no_part_of_a_page_moves_another(
    open_tab: Callable[..., Tab], iam: Any, bucket: str, path: str, last: str
) -> None:
    """What is loaded apart is shown together."""
    iam.create_user(UserName=bucket)
    iam.create_access_key(UserName=bucket)
    tab = open_tab(viewport={"width": 390, "height": 800})
    tab.sign_in()
    tab.page.add_init_script(COUNT_SHIFTS + DELAY_ANSWERS)
    tab.open(f"/console/{path.format(user=bucket)}")
    expect(tab.page.get_by_role("heading", name=last)).to_be_visible()
    assert tab.page.evaluate(READ_SHIFTS) == 0


def test_without_scripts_the_page_says_so(open_tab: Callable[..., Tab]) -> None:
    """The frame fills the window, and the words stand above it."""
    page = open_tab(java_script_enabled=False).page
    page.goto("/console/")
    place = page.locator("noscript p").bounding_box()
    assert place is not None
    assert place["y"] < place["height"]


def test_nothing_of_another_frame_stays(tab: Tab) -> None:
    """The cookie of a session that ended brings the shell's frame, and then the form stands alone."""
    page = tab.page
    cookie = write_cookie(tab.gateway.admin, "ASIAAAAAAAAAAAAAAAAA", "secret", 0).partition(";")[0]
    name, _, value = cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": tab.gateway.admin}])
    page.goto("/console/nowhere")
    expect(page.get_by_label("Access key")).to_be_focused()
    expect(page.locator("#app > *")).to_have_count(1)


def test_first_load_is_small(new_tab: Tab) -> None:
    """What the first page loads, compressed, stays within its budget."""
    page = new_tab.page
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto("/console/")
    expect(page.get_by_label("Access key")).to_be_visible()
    total = sum(answer.request.sizes()["responseBodySize"] for answer in answers)
    assert 10_000 < total < FIRST_LOAD_BYTES
    assert all(answer.header_value("content-encoding") == "gzip" for answer in answers if "/static/" in answer.url)


@pytest.mark.parametrize("size", [{"width": 1280, "height": 860}, {"width": 390, "height": 860}], ids=["wide", "phone"])
def test_tabs_of_a_bucket_stay_in_place(open_tab: Callable[..., Tab], s3: Any, bucket: str, size: Any) -> None:
    """Each page of a bucket has its tabs at the same height; of objects only the list scrolls, not the page."""
    s3.put_object(Bucket=bucket, Key="key", Body=b"")
    tab = open_tab(viewport=size)
    tab.sign_in()
    heights = set()
    for place in ("", "/versions", "/settings", "/objects"):
        tab.open(f"/console/buckets/{bucket}{place}")
        parts = tab.page.get_by_label("Parts of the bucket")
        heights.add(eventually(parts.bounding_box, "the tabs are drawn")["y"])  # none while one frame replaces another
    assert len(heights) == 1
    expect(tab.page.get_by_text("1 row")).to_be_visible()
    assert tab.page.evaluate("document.documentElement.scrollHeight") == size["height"]
