"""What is read first: names, one sentence, a picture that is coloured only where something was called, and cards."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.report import write_report
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Tracks
from sluice_s3.loadtests.report.first_screen.cards import cards
from sluice_s3.loadtests.report.first_screen.headline import doubts, lead, title
from sluice_s3.loadtests.report.first_screen.picture import picture
from sluice_s3.loadtests.report.html import styles
from sluice_s3.loadtests.report.model import of_run
from sluice_s3.loadtests.report.options import ReportOptions
from sluice_s3.loadtests.report.significance import compare, interval
from sluice_s3.loadtests.report.writer import report_of
from tests.tools.loadtests.report.making import Made, steady

CONSOLE = Path(__file__).parents[4] / "app" / "console" / "style" / "tokens.css"


def report(directory: Path, slow: dict[str, float], repeats: int = 3, **more: Any) -> Report:
    """Reads of 1 MB that are so many times slower than 10 ms, and writes that do not differ."""
    made = Made(directory, slow, ["sizes"])
    for name, factor in slow.items():
        for repeat in range(1, repeats + 1):
            noise = 1 + 0.005 * repeat
            reads = steady([0.01 * factor * noise] * 9, size=10**6, bytes=10**6)
            made.cell(name, "sizes", repeat, [*reads, *steady([0.02 * noise] * 9, "PUT", size=10**6, bytes=10**6)])
    return report_of(of_run(made.write(**more)), ReportOptions())


def test_one_sentence(tmp_path: Path) -> None:
    called = report(tmp_path / "called", {"a": 1.0, "b": 2.0})
    assert lead(called) == "Take a for large reads; no difference for large writes."
    assert title(called) == "a vs b"
    assert lead(report(tmp_path / "few", {"a": 1.0, "b": 2.0}, repeats=2)) == (
        "Nothing is called: fewer than three repeats were made of the 2 uses that were measured."
    )
    assert lead(report(tmp_path / "same", {"a": 1.0, "b": 1.0})) == (
        "No difference that matters in any of the 2 uses that were measured."
    )
    assert lead(report(tmp_path / "one", {"a": 1.0})).startswith("Only a was measured")
    assert lead(report_of(of_run(Made(tmp_path / "none").write()), ReportOptions())).startswith("Nothing was measured")


def test_reads_of_what_fits_into_memory_are_doubted(tmp_path: Path) -> None:
    found = report(tmp_path / "run", {"a": 1.0, "b": 2.0})
    plan, machine = found.model.meta["plan"], found.model.meta["machine"]
    plan["stores"] = ["a", "b"]
    ((short, whole),) = doubts(found)
    assert short == "reads from memory"
    assert whole.startswith("Large reads may show the page cache more than the disk: the machine has 1.07 GB of memory")
    for changed in (plan | {"cold": True}, plan | {"stores": []}):
        found.model.meta["plan"] = changed
        assert doubts(found) == []
    found.model.meta["plan"], machine["memory_bytes"] = plan, 10**8
    assert doubts(found) == [], "what is written does not fit"


def test_a_title_of_many_stores(tmp_path: Path) -> None:
    many = report(tmp_path / "many", {f"s{n}": 1.0 for n in range(14)}, repeats=1)
    assert title(many).endswith(", s11 and 2 more")


def test_figures_in_units(tmp_path: Path) -> None:
    """Ten ms for a megabyte are 100 MB/s."""
    reads = report(tmp_path / "r", {"a": 1.0, "b": 2.0}).figures[0]
    assert reads.judgement.use.name == "Large reads"
    assert reads.throughput["a"].mean == pytest.approx(1e8, rel=0.02)
    assert reads.latency["b"].mean == pytest.approx(0.02, rel=0.02)
    value = reads.throughput["a"]
    assert value.low is not None
    assert value.high is not None
    assert value.low < value.mean < value.high
    assert reads.render_throughput("a") == "99.0 MB/s"
    assert reads.render_latency("a") == "10.1\u00a0/\u00a010.1\u00a0ms"


def test_an_interval_is_its_part_of_the_differences() -> None:
    a, b = [1.0, 1.02, 0.98], [2.0, 2.03, 1.96]
    over, low_high = compare(a, b), interval(a, b)
    assert over.low is not None
    assert over.ratio is not None
    assert low_high is not None
    middle = (low_high[0] * low_high[1]) ** 0.5
    assert (over.ratio / over.low) == pytest.approx((middle / low_high[0]) ** 2**0.5)
    assert interval(a[:2], b) is None


@pytest.mark.parametrize("stores", [2, 10])
def test_colour_only_where_it_was_called(tmp_path: Path, stores: int) -> None:
    found = report(tmp_path / "r", {f"s{n}": 1.0 if n == 1 else 2.0 for n in range(stores)})
    (drawn,) = picture(found)
    assert isinstance(drawn, Tracks)
    (reads, _, read_lines), (writes, _, write_lines) = drawn.groups
    assert (reads, writes) == ("Large reads", "Large writes")
    assert [line.name for line in read_lines if line.mark] == ["s1"]
    coloured = re.findall(
        r'class="(?:block|spot) (c\d)', "".join(svg for line in read_lines for svg, _ in line.columns)
    )
    assert coloured == ["c1", "c1"]
    assert drawn.dotted == (stores > 4)
    assert not [line for line in write_lines if line.mark]
    assert not re.search(r'class="(?:block|spot) c\d', "".join(svg for line in write_lines for svg, _ in line.columns))
    assert len(read_lines) == (2 if stores == 2 else 1)


def test_nothing_is_green_that_was_not_called(tmp_path: Path) -> None:
    """The faster one of two repeats is not marked anywhere on the page."""
    report(tmp_path / "few", {"a": 1.0, "b": 2.0}, repeats=2)
    report(tmp_path / "called", {"a": 1.0, "b": 2.0})
    for name, marked in (("few", False), ("called", True)):
        write_report(tmp_path / name)
        page = (tmp_path / name / "report.html").read_text()
        assert bool(re.search(r'<(td|tr) class="[^"]*(best|winner)', page)) == marked


def test_a_card_says_what_a_store_is(tmp_path: Path) -> None:
    found = report(tmp_path / "r", {"a": 1.0, "b": 2.0})
    found.model.meta["targets"][0] |= {
        "path": "/mnt/a", "store": "path",
        "mount": {"kind": "ext4", "source": "/dev/vdb", "point": "/mnt", "options": "rw"},
        "probe": {"latencies_ms": {"fsync": {"median": 0.5, "worst": 2}, "create": {"median": 0.02, "worst": 1}}},
        "space": {"total": 10**12, "free": 4 * 10**11},
    }  # fmt: skip
    found.model.meta["targets"][1] |= {
        "mount": {"kind": "fuse", "driver": "fuse"},
        "space": {"total": 1 << 64, "free": 1 << 64},
    }
    first, second = cards(found).cards
    assert dict(first.lines) == {
        "mount": "ext4, /mnt/a", "device": "/dev/vdb on /mnt", "durable": "full, local driver",
        "index": "SQLite, on the store", "probe": "create 0.020, fsync 0.50 ms", "space": "400 GB free of 1 TB",
    }  # fmt: skip
    assert first.won == "best in 1 of 2 uses"
    assert (second.name, second.won, dict(second.lines)["space"]) == ("b", "", "not limited")
    assert dict(second.lines)["index"] == "SQLite, apart from it"


def test_the_console_and_the_report_have_the_same_tokens() -> None:
    tokens = CONSOLE.read_text()
    assert styles().startswith(tokens)
    known, used = set(re.findall(r"(--[a-z0-9-]+):", styles())), set(re.findall(r"var\((--[a-z0-9-]+)\)", styles()))
    assert used <= known | {"--heat"}
    own = styles()[len(tokens) :]
    assert not re.search(r"#[0-9a-f]{3,8}\b|\brgba?\(", own), "colours are tokens"


def test_rows_as_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = Made(tmp_path / "r", ("a",)).cell("a", "mixed", 1, steady([0.01] * 7, size=1000))
    directory = made.write()
    write_report(directory)
    with gzip.open(directory / "rows" / "a" / "mixed-1.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    found = parquet.read_table(directory / "rows.parquet").to_pylist()
    assert [one["total_s"] for one in found] == [float(one["total_s"]) for one in rows]
    assert found[0]["late_s"] is None
    assert 'href="rows.parquet"' in (directory / "report.html").read_text()
    (directory / "rows" / "a" / "mixed-1.csv.gz").unlink()
    write_report(directory)
    assert not (directory / "rows.parquet").exists(), "it would be of other rows"
    assert json.loads((directory / "report.json").read_text())["unread"]
