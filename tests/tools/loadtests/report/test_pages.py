"""The page and the text: whole, well formed, in need of nothing else, and safe whatever a store answers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sluice_s3.loadtests.report import html, markdown, write_report
from sluice_s3.loadtests.report.document import Cell, Chapter, Figure, Figures, Page, Remark, Table
from sluice_s3.loadtests.report.options import ReportOptions
from sluice_s3.loadtests.report.plots import svg
from sluice_s3.loadtests.report.plots.blocks import intervals, stacked
from sluice_s3.loadtests.report.plots.lines import Axis, Series, plot
from tests.tools.loadtests.report.making import Made, row, steady

EVIL = "<script>alert('x')</script> & \"<img src=http://e/x>\" | `x` [y](z)"
VOID = {"meta", "br", "hr", "img", "input", "link"}
ALL = ("mixed", "sizes", "small_files", "batches", "threads", "stat_delete_list", "open_loop", "boto3_mixed")


class Seen(HTMLParser):
    """What is in a page; raises AssertionError when elements are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def seen(page: str) -> Seen:
    found = Seen()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


def whole_run(directory: Path, repeats: int = 3) -> Made:
    """Every scenario, two targets."""
    made = Made(directory, ("a", "b"), ALL)
    for name, slow in (("a", 1.0), ("b", 1.5)):
        for repeat in range(1, repeats + 1):
            times = [slow * 0.01 * (1 + 0.01 * repeat + 0.1 * (n % 7)) for n in range(40)]
            phases = "auth=0.1;index=0.2"
            mix = [
                one for operation in ("GET", "STAT", "PUT", "DELETE") for one in steady(times, operation, phases=phases)
            ]
            made.cell(name, "mixed", repeat, mix).cell(name, "boto3_mixed", repeat, mix)
            made.cell(name, "open_loop", repeat, [one | {"late_s": 0.001} for one in mix])
            made.cell(name, "sizes", repeat, [*steady(times, "PUT"), *steady(times), *steady(times, size=10**6)])
            made.cell(name, "small_files", repeat, [
                one for operation, stage in (("PUT", "write"), ("GET", "read-cold"), ("GET", "read-warm"))
                for one in steady(times, operation, stage=stage)
            ], notes={"dropped_caches": False, "files": 40, "bytes": 40_000})  # fmt: skip
            made.cell(name, "batches", repeat, [one for n in "12" for one in steady(times, "PUT", stage=f"batch-{n}")])
            made.cell(name, "threads", repeat, [
                one for n in (1, 4) for one in steady(times, "PUT", stage=f"writers-{n}", users=n, size=500_000)
            ])  # fmt: skip
            made.cell(name, "stat_delete_list", repeat, [
                one for n in (1000, 5000) for operation in ("STAT", "LIST", "DELETE")
                for one in steady(times, operation, stage=f"keys-{n}", size=0, bytes=0)
            ])  # fmt: skip
    return made


def test_a_whole_report(tmp_path: Path) -> None:
    made = whole_run(tmp_path / "r")
    made.resources({"time": 1.8, "target": "a", "who": "gateway", "cpu": 0.5, "read_bytes": 5, "written_bytes": 10})
    said = str(write_report(made.write()))
    assert "Large reads: a is faster than b by " in said
    assert said.endswith("report.html")
    page = (tmp_path / "r" / "report.html").read_text()
    found = seen(page)
    there = {attributes["id"] for _, attributes in found.tags if "id" in attributes}
    assert there == {*ALL, "verdict", "phases", "usage", "judgement", "machine", "cells", "data"}
    folded = {attributes["id"] for tag, attributes in found.tags if tag == "details" and "id" in attributes}
    assert folded == there - {"verdict"}
    assert not [attributes for tag, attributes in found.tags if tag == "details" and "open" in attributes]
    assert page.count("<svg") > 25
    text = (tmp_path / "r" / "report.md").read_text()
    for heading in ("Verdict", "Mixed load", "Sizes", "Small files", "Batches", "Concurrency", "Listing & metadata"):
        assert f"\n## {markdown.escape_text(heading)}\n" in text
    assert "NaN" not in page + text + said
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", page + text, flags=re.S))
    model = json.loads((tmp_path / "r" / "report.json").read_text())
    assert model["verdict"]["uses"][0]["best"] == "a"
    assert {line["scenario"] for line in model["lines"]} == set(ALL)


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    write_report(whole_run(tmp_path / "r", repeats=1).write())
    page = (tmp_path / "r" / "report.html").read_text()
    for tag, attributes in seen(page).tags:
        assert tag not in {"script", "link", "iframe", "img", "object", "embed", "base", "use", "image"}
        assert "src" not in attributes
        link = attributes.get("href")
        assert link is None or (tmp_path / "r" / link).is_file() or link == "resources.csv"
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert "@media print" in style


def test_plots_are_well_formed(tmp_path: Path) -> None:
    write_report(whole_run(tmp_path / "r").write())
    page = (tmp_path / "r" / "report.html").read_text()
    for drawn in re.findall(r"<svg.*?</svg>", page, re.S):
        root = ElementTree.fromstring(drawn)
        assert root.find("{*}title") is not None
        _, _, width, height = (float(one) for one in root.attrib["viewBox"].split())
        for element in root.iter():
            for name, limit in (
                ("x1", width),
                ("x2", width),
                ("cx", width),
                ("y1", height),
                ("y2", height),
                ("cy", height),
            ):
                assert -1 <= float(element.attrib.get(name, 0)) <= limit + 1
            assert float(element.attrib.get("width", 0)) >= 0
            assert float(element.attrib.get("height", 0)) >= 0


def test_a_machine_with_other_work_is_told(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    for name, load in (("a", 9.5), ("b", 2.5)):
        made.cell(name, "mixed", 1, steady([0.01] * 5), load1=[load, 3.0])
    write_report(made.write())
    assert "before the calmest cell its load was 2.5, with 2 cores" in (tmp_path / "r" / "report.html").read_text()
    made.meta["cells"][1]["load1"] = [1.9, 8.0]
    write_report(made.write())
    assert "other work" not in (tmp_path / "r" / "report.html").read_text()


def test_what_a_store_answers_is_only_text(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", (EVIL, "b"))
    made.meta["machine"]["cpu"] = EVIL
    made.meta["targets"][0]["settings"] = {EVIL: EVIL}
    made.meta["targets"][0]["probe"] = {
        "trials": {EVIL: {"works": False, "detail": EVIL, "error": EVIL}},
        "refused": {EVIL: EVIL},
        "latencies_ms": {EVIL: {"median": 1.0, "worst": 2.0}},
    }
    file = Path("rows") / "evil"
    made.cell("evil", "mixed", 1, [*steady([0.01] * 5, phases="auth=1;<b>=2"), row(error=EVIL), row("PUT", error=EVIL)])
    made.meta["cells"][0] |= {"target": EVIL, "reason": EVIL, "file": str(file / "mixed-1.csv.gz")}
    made.resources({"time": 1.6, "target": EVIL, "who": EVIL, "cpu": 0.9})
    write_report(made.write(state="partial", reason=EVIL))
    page = (tmp_path / "r" / "report.html").read_text()
    found = seen(page)
    assert not {"script", "img", "b"} & {tag for tag, _ in found.tags}
    assert "<script>alert('x')</script>" in "".join(found.text)
    for drawn in re.findall(r"<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(drawn)
    text = (tmp_path / "r" / "report.md").read_text()
    assert "<" not in text.replace("&lt;", "")
    for line in text.splitlines():
        if line.startswith("| "):
            assert line.endswith(" |")


def test_tables_in_markdown() -> None:
    table = Table(["a", "b|c"], [["x", Cell("1", "best")], [Cell(""), "2\n3"]], "Title", "A *note*", 1)
    chapter = Chapter(
        "n", "Name", "about", [table, Remark("said", "bad"), Figures([Figure("<svg/>", "c")]), Table([], [])]
    )
    page = Page("T", "Take a.", ["now", Cell("loud", "bad")], "mine", "why", [("s", "whole")], chapters=[chapter])
    assert markdown.written(page) == (
        "# T\n\nnow · loud\n\n**Partial run: why**\n\n**Take a.**\n\nmine\n\n**whole**\n\n"
        "## Name\n\nabout\n\n### Title\n\n"
        "| a | b\\|c |\n|---|---:|\n| x | **1** |\n|  | 2 3 |\n\nA \\*note\\*\n\n**said**\n"
    )


def test_a_partial_run_is_marked_at_the_top(tmp_path: Path) -> None:
    made = Made(tmp_path / "r").cell("a", "mixed", 1, [row()], state="interrupted", reason="interrupted")
    said = str(write_report(made.write(state="partial", reason="interrupted by SIGINT")))
    assert said.startswith("partial run: interrupted by SIGINT")
    page = (tmp_path / "r" / "report.html").read_text()
    assert page.index("Partial run.") < page.index("Verdict</h2>")
    assert "interrupted by SIGINT" in page
    assert "**Partial run: interrupted by SIGINT**" in (tmp_path / "r" / "report.md").read_text()


@pytest.mark.parametrize("scenario", ALL)
def test_cells_without_rows(tmp_path: Path, scenario: str) -> None:
    """All failed, one store had only errors, or nothing was begun."""
    made = Made(tmp_path / "r", ("a", "b"), [scenario])
    write_report(made.write(state="partial", reason="it could not begin"))
    stage = {"threads": "writers-2", "stat_delete_list": "keys-10", "small_files": "write", "batches": "batch-1"}
    operation = {"stat_delete_list": "STAT"}.get(scenario, "PUT")
    bad = row(operation, error="InternalError: x", stage=stage.get(scenario, ""))
    made.cell("a", scenario, 1, [bad])
    write_report(made.write())
    made.cell("b", scenario, 1, [row(operation, stage=stage.get(scenario, ""), ttfb_s=None)])
    write_report(made.write())
    seen((tmp_path / "r" / "report.html").read_text())


def test_figures_of_nothing_and_of_one_point() -> None:
    for series in (
        [],
        [Series("a", 0, [])],
        [Series("a", 0, [(1.0, 1.0)])],
        [Series("a", 9, [(1.0, 0.0), (1.0, 0.0)])],
    ):
        for log in (False, True):
            ElementTree.fromstring(plot("t", series, Axis("x", log=log), Axis("y", log=log)))
    ElementTree.fromstring(stacked("t", [("a", [("p", 0.0)])], ["p"], str))
    ElementTree.fromstring(intervals("t", [("a", 0, 1.0, None, None, "w"), ("b", 1, 5.0, 4.0, 6.0, "w")], "x"))


def test_scales_and_ticks() -> None:
    assert svg.linear_ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert svg.linear_ticks(0, 0.7) == [0, 0.2, 0.4, 0.6]
    assert svg.log_ticks(1, 100) == [1, 2, 5, 10, 20, 50, 100]
    scale = svg.Scale(1, 100, 0, 200, log=True)
    assert [scale.at(one) for one in (1, 10, 100, 1000)] == [0, 100, 200, 200]
    assert html.shade(0.5) == "--heat:50%"
    assert html.shade(None) == ""


def test_tables_tell_what_was_measured(tmp_path: Path) -> None:
    """Worked out by hand: ten files of 100 ms are 1 s a batch; 4 x 500 KB in 1 s are 2 MB/s."""
    made = Made(tmp_path / "r", ("a", "b"), ["batches", "threads", "mixed", "small_files", "sizes"])
    for name, slow in (("a", 1.0), ("b", 2.0)):
        made.cell(name, "batches", 1, steady([0.1 * slow] * 10, "PUT", stage="batch-1"))
        half = row("PUT", start=0.0, total_s=slow, size=500_000, bytes=500_000, stage="writers-4", users=4)
        made.cell(name, "threads", 1, [half] * 4 + [half | {"start": 5.0, "stage": "writers-1", "users": 1}])
        bad = row("GET", start=2.0, error="NoSuchKey: gone", size=2**20)
        made.cell(name, "mixed", 1, [*steady([0.5 * slow] * 4, size=2**20, bytes=2**20), bad, bad])
        made.cell(name, "small_files", 1, steady([0.5 * slow] * 2, "PUT", stage="write", bytes=10**6))
        made.cell(name, "sizes", 1, steady([0.1 * slow, 0.2 * slow, 0.6 * slow], "PUT", size=10**6))
    write_report(made.write())
    lines = (tmp_path / "r" / "report.md").read_text().splitlines()
    assert not [line for line in lines if "ublished" in line or "Source" in line]
    assert "| b | 1 | 2.00 s | 0 | 2.00 s | 2.00 s | 2.00 s | +100 % | too few repeats |" in lines
    assert "| 4 | 2.00 | 0.500 | 1.00 | 0.250 |" in lines
    assert "| 500 KB | a | 4 | 2.00 | 2.00 | 4.0x |" in lines
    ones = "500 ms | 500 ms | 500 ms | 500 ms | 500 ms | 500 ms | 0 |"
    assert f"| GET 1 MiB | a | 4 | 2 | 2.00 | 2.00 | {ones}" in lines
    assert "| Total | b | 4 | 2 | 1.00 | 1.00 |  |  |  |  |  |  |  |" in lines
    assert "| GET | a | NoSuchKey: gone (2x) | 2 |" in lines
    assert "| b | 2.00 s | 1.00 MB/s |  | 1.00 | 1.00 s | 1.00 s | 0.500x |" in lines
    assert "| 1 MB | 300 ms (±265 ms, p50: 200 ms) | 600 ms (±529 ms, p50: 400 ms) |" in lines
    write_report(tmp_path / "r", ReportOptions(published=True))
    published = (tmp_path / "r" / "report.md").read_text()
    assert "| 4 | 2.00 | 0.500 | 1.00 | 0.250 | 55 |" in published.splitlines()
    for source in ("docs.mattermost.com", "objectivefs.com", "qss_quantum_storage/issues/46", "dev.to/", "xyzt.ai"):
        assert source in published


def test_requests_that_were_sent_again_are_named(tmp_path: Path) -> None:
    Made(tmp_path).cell("a", "mixed", 1, [row(retries=1), row(), row(retries=1)]).cell("b", "mixed", 1, [row()]).write()
    write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "2 requests to a in mixed were sent again" in text
    assert "requests to b in mixed were sent again" not in text
    assert json.loads((tmp_path / "report.json").read_text())["retries"] == [
        {"target": "a", "scenario": "mixed", "count": 2}
    ]
