"""Medians, intervals, marks and the files they end in."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from sluice_s3.loadtests.cpu import report
from sluice_s3.loadtests.cpu.measurement import Case, Measure, percentiles, size_text

CELL = Case("PUT", 4096, 16)


def measure(
    target: str, number: int, count: int, cpu: float | None, client: float = 0.5, server: float | None = 1.0
) -> Measure:
    """One second of `count` operations."""
    return Measure(
        round=number,
        target=target,
        cell=CELL,
        operations=count,
        elapsed=1.0,
        moved=count * 4096,
        latency_ms={"p50": 1.0, "p99": 2.0},
        cpu_us=cpu,
        peak_bytes=50 << 20,
        client_busy=client,
        server_busy=server,
        others=0.0,
    )


FAST = [measure("fast", 0, 100, 50.0), measure("fast", 1, 300, 70.0), measure("fast", 2, 200, 60.0)]
SLOW = [measure("slow", 0, 90, 120.0), measure("slow", 1, 110, 120.0), measure("slow", 2, 100, 120.0)]


def test_median_and_interval() -> None:
    fast, slow = report.rows(FAST + SLOW)
    assert fast.rate == report.Interval(200, 100, 300)
    assert slow.cpu_us == report.Interval(120, 120, 120)
    assert report.ratio(fast.cpu_us, [slow.cpu_us], min) == "0.50"
    assert report.ratio(fast.rate, [slow.rate], max) == "2.00≈"
    assert report.ratio(fast.rate, [None], max) == ""
    assert report.Interval.of([None]) is None


@pytest.mark.parametrize(
    ("client", "server", "bound"), [(0.95, 0.5, True), (0.95, 0.95, False), (0.8, 0.5, False), (0.95, None, True)]
)
def test_a_row_where_the_client_was_the_limit(client: float, server: float | None, bound: bool) -> None:
    row = report.rows([measure("one", 0, 100, 50.0, client, server)])[0]
    assert row.client_bound is bound


def test_table_names_every_target_and_mark() -> None:
    bound = measure("bound", 0, 100, None, client=0.99, server=0.3)
    bound.errors = {"503": 7}
    text = io.StringIO()
    console = Console(width=200, file=text)
    console.print(report.table(report.rows([*FAST, *SLOW, bound])))
    assert all(
        word in text.getvalue() for word in ("PUT 4 KiB x16", "fast", "slow", "client-bound", "7 errors", "100-300")
    )


def test_json_holds_settings_measures_and_rows(tmp_path: Path) -> None:
    report.write(tmp_path / "out.json", {"machine": report.machine()}, FAST + SLOW)
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["machine"]["kernel"]
    assert len(document["measures"]) == 6
    assert document["rows"][0]["cell"] == {"operation": "PUT", "size": 4096, "clients": 16}


def test_percentiles_by_nearest_rank() -> None:
    found = percentiles([number / 1000 for number in range(100, 0, -1)])
    assert found == pytest.approx({"p50": 51, "p90": 91, "p99": 100, "max": 100})
    assert percentiles([]) == {}


def test_sizes_in_words() -> None:
    assert [size_text(size) for size in (512, 4096, 10 << 20, 1 << 30, 1500)] == [
        "512 B",
        "4 KiB",
        "10 MiB",
        "1 GiB",
        "1500 B",
    ]
