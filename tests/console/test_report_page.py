"""The report of a load test in a browser: nothing to scroll sideways, a first screen that is one, no barrier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from sluice_s3.loadtests.report import write_report
from sluice_s3.loadtests.report.cost.examples import EXAMPLES
from sluice_s3.loadtests.report.options import ReportOptions
from tests.tools.loadtests.report.making import Made, row, steady

DESKTOP, PAPER, PHONE = (1280, 800), (794, 1123), (390, 844)
COLUMNS = """
[2, 3].map((column) => {
    const box = (one) => one.getBoundingClientRect();
    const head = box(document.querySelectorAll('.tracks thead th')[column]);
    const rows = [...document.querySelectorAll('.tracks tbody tr')];
    const bars = rows.map((one) => box(one.querySelectorAll('.drawn svg')[column - 2]));
    return [head.left, ...bars.map((one) => one.left)].concat(bars.map((one) => one.width - bars[0].width + head.left));
})
"""
"""Where a column's head and bars begin, and the same once more where its bars are equally long."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two stores, one faster, with all that a page can have."""
    made = Made(tmp_path_factory.mktemp("report") / "r", ("ssd", "efs"), ["mixed", "sizes", "batches"])
    made.meta["plan"]["scenarios"]["saturation"] = {"users": 4, "arguments": {}, "seconds": 1, "bytes": 1}
    for name, slow in (("ssd", 1.0), ("efs", 2.0)):
        for repeat in (1, 2, 3):
            times = [slow * 0.01 * (1 + 0.01 * repeat + 0.05 * (n % 5)) for n in range(20)]
            mix = [
                one
                for operation in ("GET", "STAT", "PUT", "DELETE")
                for one in steady(times, operation, phases="auth=0.1;index=0.2")
            ]
            made.cell(name, "mixed", repeat, mix)
            made.cell(name, "sizes", repeat, [*steady(times, "PUT", size=10**6), *steady(times, size=10**6)])
            made.cell(name, "batches", repeat, [*steady(times, "PUT", stage="batch-1"), row("PUT", error="SlowDown")])
            steps = [
                one | {"start": one["start"] + users * 10}
                for users in (1, 2, 4)
                for one in steady(times, stage=f"clients-{users}", users=users)
            ]
            made.cell(name, "saturation", repeat, steps)
    probe = {"trials": {"rename": {"works": True}}, "latencies_ms": {"fsync": {"median": 0.5, "worst": 2.0}}}
    for one in made.meta["targets"]:
        one |= {"probe": probe, "mount": {"kind": "ext4", "source": "/dev/vda", "point": "/", "options": "rw"}}
    prices = {"ssd": EXAMPLES["gp3"], "efs": EXAMPLES["efs"]}
    write_report(made.write(), ReportOptions(title="Disks", note="A note.", published=True, prices=prices))
    return (made.directory / "report.html").as_uri()


SCREENS = {
    "desktop": (DESKTOP, "light"),
    "dark": (DESKTOP, "dark"),
    "paper": (PAPER, "light"),
    "phone": (PHONE, "light"),
}


@pytest.fixture(params=SCREENS.values(), ids=SCREENS.keys())
def page(request: pytest.FixtureRequest, browser: Browser, report: str) -> Iterator[Page]:
    """The report on a screen."""
    (width, height), scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(report)
    yield tab
    context.close()


def test_the_report_page(page: Page) -> None:
    """The picture is on the first screen, the page as wide as it, and axe-core finds nothing in it."""
    assert page.viewport_size is not None
    picture = page.locator(".picture").bounding_box()
    assert picture is not None
    assert picture["y"] + picture["height"] <= page.viewport_size["height"]
    assert page.locator(".cards li").first.is_visible()
    for column in page.evaluate(COLUMNS):
        assert max(column) - min(column) < 1, column
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
