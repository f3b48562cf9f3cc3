"""The client at a rate, and the curve of a gateway."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from itertools import repeat
from pathlib import Path

from rich.console import Console

from sluice_s3.loadtests.common.targets import Keys, Running, parse_target
from sluice_s3.loadtests.cpu.client import Client, Request
from sluice_s3.loadtests.cpu.curve import BUCKET, MIX, Curve, Mix, Plan, Point, measure, table, write
from sluice_s3.loadtests.cpu.open_loop import OpenLoopClient
from tests.tools.loadtests.cpu.test_client import HEAD, OK, server

KEYS = Keys("GK0123456789", "secret-of-the-test")
PLAN = Plan(sizes=(1024, 200_000), objects=5, clients=4, load=0.5, rate=0, seconds=2.0, interval=1.0, calibration=0.5)
ANSWERS = 150


def test_a_latency_counts_from_when_a_request_was_due() -> None:
    """An answer takes 20 ms: what is due meanwhile waits for the connection."""
    took: list[float] = []
    hello = Request(HEAD, size=5)
    with server(*[[OK, b"hello"]] * ANSWERS) as address, closing(OpenLoopClient(address, 1)) as client:
        outcome = client.run_at(200.0, repeat(hello), 1.0, lambda _, seconds: took.append(seconds))
        assert 5 < len(took) < 60
        assert outcome.requests == len(took)
        assert outcome.errors["not sent in time"] > 50
        assert took[0] < 0.3 < took[-1]
        assert not outcome.latencies, "those of an hour would be much memory"
        client.close()
        with closing(Client(address, 1)) as rest:
            assert len(rest.run(repeat(hello, ANSWERS - len(took)), 60.0).latencies) == ANSWERS - len(took)


def test_an_idle_connection_that_the_server_closed_is_replaced() -> None:
    took: list[float] = []
    with server(*[[OK + b"hello"]] * 3, close=True) as address, closing(OpenLoopClient(address, 1)) as client:
        outcome = client.run_at(20.0, repeat(Request(HEAD, size=5), 3), 2.0, lambda _, seconds: took.append(seconds))
        lost = outcome.errors["connection lost"]  # those that the server had not read when it closed
        client.close()
        for _ in range(lost):
            with socket.create_connection(address, 10.0) as rest:
                rest.sendall(HEAD)
                assert rest.recv(1 << 10).startswith(OK)
    assert len(took) + lost == 3


def test_a_connection_without_a_further_request_may_be_closed() -> None:
    took: list[float] = []
    with server([OK + b"hello"], close=True) as address, closing(OpenLoopClient(address, 1)) as client:
        outcome = client.run_at(50.0, repeat(Request(HEAD, size=5), 1), 1.0, lambda _, seconds: took.append(seconds))
    assert len(took) == outcome.requests == 1


def test_the_mix_overwrites_and_deletes(tmp_path: Path) -> None:
    with Running(parse_target("sluice", "relaxed", {}), KEYS, tmp_path, None) as running:
        running.calls.ask("PUT", f"/{BUCKET}")
        mix = Mix(running, PLAN)
        with closing(Client(running.address, 4)) as client:
            filled = client.run(mix.fill(), 60.0)
            assert (len(filled.latencies), dict(filled.errors)) == (20, {})
            outcome = client.run((request for request, _ in zip(mix, range(400), strict=False)), 60.0)
        assert not outcome.errors
        keys = list(running.calls.keys(BUCKET))
    assert len([key for key in keys if "/kept/" in key]) == 10, "what is read stays"
    assert 0 < len([key for key in keys if "/churn/" in key]) <= 10


def test_a_curve_has_a_point_for_each_interval(tmp_path: Path) -> None:
    reported: list[Point] = []
    curve = measure(parse_target("sluice", "relaxed", {}), KEYS, tmp_path, PLAN, reported.append)
    assert [round(60 * point.minute) for point in curve.points] == [1, 2]
    assert reported == curve.points
    assert curve.rate > 0
    assert not curve.errors.keys() - {"not sent in time"}
    last = curve.points[-1]
    assert last.rate > 0
    assert 0 < last.latency_ms["p50"] <= last.latency_ms["p99"] <= last.latency_ms["p99.9"] <= last.latency_ms["max"]
    assert {name.split()[0] for name in last.by_operation} <= set(MIX)
    assert last.backlog is not None
    assert last.backlog > 0, "nothing is removed in its grace"
    assert last.disk_bytes is not None
    assert last.disk_bytes > 10 * 200_000
    assert last.pss_bytes is not None
    assert last.pss_bytes > 1 << 20
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "curve.json", PLAN, [curve])
    assert json.loads((tmp_path / "curve.json").read_text())["curves"][0]["points"][1]["backlog"] == last.backlog


def test_the_table_compares_with_the_first_interval() -> None:
    points = [Point(n, 100.0, {"p50": 1.0, "p99": 10.0 * n}, {}, None, None, None, 1.5) for n in (1.0, 2.0)]
    console = Console(width=120)
    with console.capture() as shown:
        console.print(table(Curve("sluice", 100.0, points, {"503": 2})))
    assert "10.0 (1.00 x)" in shown.get()
    assert "20.0 (2.00 x)" in shown.get()
    assert "503" in shown.get()
