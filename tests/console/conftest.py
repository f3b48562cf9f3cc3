"""One gateway and one browser for all tests of the console; each test has a tab and buckets of its own, and no cookies.

What the browser keeps for a tab is emptied after the test, and used again: a new one costs half a second.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.console.tab import Tab
from tests.support.environment import lack
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

HERE = Path(__file__).parent
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no windows, and costs a fifth a test (Debian's package of the same name)."""
TIMEOUT_MS = 15_000
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the console in one process: they share a browser."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("console"))


@pytest.fixture(scope="package")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with an admin listener."""
    with Gateway(
        tmp_path_factory.mktemp("console") / "data",
        workers=1,
        options=("--admin-port", "0", "--admin-host", "127.0.0.1"),
    ) as one:
        yield one


@pytest.fixture(scope="package")
def browser(gateway: Gateway) -> Iterator[Browser]:
    """Debian's Chromium. It ends with this package: its event loop would stand in the way of other tests.

    It starts after the gateway, whose first index in Postgres is made by an event loop too.
    """
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        lack("no Chromium (Debian: chromium)")
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield one
        one.close()


@pytest.fixture(scope="package")
def contexts(browser: Browser) -> Iterator[dict[str, list[BrowserContext]]]:
    """Empty contexts of the browser, by their options."""
    idle: dict[str, list[BrowserContext]] = {}
    yield idle
    for context in itertools.chain.from_iterable(idle.values()):
        context.close()


@pytest.fixture
def open_tab(
    browser: Browser, gateway: Gateway, contexts: dict[str, list[BrowserContext]]
) -> Iterator[Callable[..., Tab]]:
    """Open a tab with cookies of its own; a fault that the page printed fails the test at its end."""
    used: list[tuple[str, BrowserContext]] = []
    tabs = []

    def open_one(**options: Any) -> Tab:
        kind = repr(options)
        idle = contexts.setdefault(kind, [])
        context = idle.pop() if idle else browser.new_context(base_url=gateway.admin, **options)
        context.set_default_timeout(TIMEOUT_MS)
        used.append((kind, context))
        tabs.append(Tab(context.new_page(), gateway))
        return tabs[-1]

    yield open_one
    for kind, context in used:
        _empty(context, gateway.admin)
        contexts[kind].append(context)
    assert [fault for tab in tabs for fault in tab.faults] == []


def _empty(context: BrowserContext, origin: str) -> None:
    """Close its pages, and clear all that it keeps but its cache of files that never change."""
    session = context.new_cdp_session(context.pages[0])
    kinds = "cookies,local_storage,indexeddb,service_workers,cache_storage"
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": kinds})
    for page in context.pages:
        page.close()
    context.clear_cookies()


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Tab:
    """A tab that is not signed in."""
    return open_tab()


@pytest.fixture
def new_tab(browser: Browser, gateway: Gateway) -> Iterator[Tab]:
    """A tab of a browser that was never here."""
    context = browser.new_context(base_url=gateway.admin)
    yield Tab(context.new_page(), gateway)
    context.close()


@pytest.fixture
def root_tab(tab: Tab) -> Tab:
    """A tab of the root account, signed in by the session's API."""
    tab.sign_in()
    return tab


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    """A boto3 client of the root account."""
    return client(gateway.endpoint)


@pytest.fixture
def iam(gateway: Gateway) -> Any:
    """IAM as the root account."""
    made = boto3.client(
        "iam",
        endpoint_url=gateway.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    yield made
    made.close()


@pytest.fixture
def bucket(s3: Any) -> str:
    """An empty bucket of this test's own."""
    name = f"console-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name
