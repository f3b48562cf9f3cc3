"""What needs no server: the traffic of others, the settings of targets, the state that a page follows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sluice_s3.app.admin.load_tests.progress import MAX_MESSAGES, MAX_POINTS, Progress
from sluice_s3.app.admin.load_tests.targets import targets_of
from sluice_s3.app.admin.load_tests.traffic import Mean, Traffic
from sluice_s3.app.settings.environment import find_unknown
from tests.support.settings import make_settings


def test_requests_a_second_of_others() -> None:
    clock, counted = [0.0], [0]

    def metrics() -> bytes:
        lines = [f'sluice_requests_total{{operation="GetObject",status="2xx"}} {counted[0]}', "sluice_connections 7"]
        return "\n".join(
            [*lines, f'sluice_requests_total{{operation="PutObject",status="5xx"}} {counted[0]}', ""]
        ).encode()

    traffic, mean = Traffic(metrics, lambda: clock[0]), Mean()
    assert traffic.look() == 0
    clock[0], counted[0] = 0.1, 50
    assert traffic.look() == 0, "too short a time tells nothing"
    clock[0], counted[0] = 10.0, 100
    assert traffic.look() == 20
    for rate in (1.0, 3.0):
        mean.add(rate)
    assert (mean.mean, mean.most) == (2.0, 3.0)


@pytest.mark.parametrize(
    "listed",
    [
        "efs",
        "efs=mnt/efs",
        "Efs=/mnt/efs",
        "efs=/a,efs=/b",
        "minio=ftp://host",
        "minio=http://key:secret@host",
        "minio=http://host:x",
        "minio=http://host/path",
        "--json=/mnt",
        "default=/mnt/efs",
    ],
)
def test_targets_that_the_operator_cannot_list(tmp_path: Path, listed: str) -> None:
    with pytest.raises(ValidationError) as raised:
        make_settings(tmp_path, bench_targets=listed)
    shown = [error["msg"] for error in raised.value.errors(include_url=False, include_input=False)]
    assert all("bench_targets" in text and "secret" not in text for text in shown)


def test_a_misspelt_setting_is_not_taken_for_a_variable_of_benchmarks() -> None:
    assert "did you mean SLUICE_BENCH_TARGETS?" in (find_unknown({"SLUICE_BENCH_TARGET": "efs=/mnt/efs"}) or "")
    assert find_unknown({"SLUICE_BENCH_TARGETS": "efs=/mnt/efs", "SLUICE_BENCH_BUCKET": "b"}) is None


def test_stores_that_have_no_directory_cannot_be_measured(tmp_path: Path) -> None:
    stores: dict[str, Any] = {
        "disk": {"path": tmp_path / "disk", "min_free": 1000},
        "plain": {"path": tmp_path / "plain", "layout": "tree"},
        "far": {"driver": "fsspec", "url": "memory://x"},
    }
    found = targets_of(make_settings(tmp_path, stores=stores, bench_targets="efs=/mnt/efs"))
    assert (found["disk"].reserve, found["disk"].problem) == (1000, "")
    assert found["plain"].scratch("r") == tmp_path / "plain" / ".sluice" / "sluice-load-test-r", (
        "never among plain files"
    )
    assert "fsspec" in found["far"].problem
    assert found["efs"].argument(Path("/x")) == ("--store", "efs=/x")


async def test_what_a_run_prints_is_bounded_and_may_be_anything() -> None:
    progress = Progress("r", 3, 6, 60.0)
    for number in range(MAX_POINTS + 10):
        live = {
            "event": "live",
            "requests": number + 1.0,
            "errors": 0,
            "bytes": 1,
            "p50": None,
            "p99": None,
            "left_s": 9,
        }
        progress.take(json.dumps(live).encode())
    for line in (b"[]", b"null", b'{"event": "cell"}', b'{"event": 7}', b"\xff\xfe", b"", b"x" * 100_000):
        progress.take(line)
    for number in range(MAX_MESSAGES + 10):
        progress.take(b"message %d" % number)
    assert len(progress.points) == MAX_POINTS
    state = progress.look()
    assert (len(state.messages), state.messages[-1]) == (MAX_MESSAGES, f"message {MAX_MESSAGES + 9}")
    assert (state.phase, state.left <= 9) == ("measuring", True)
    asyncio.get_running_loop().call_later(0.7, progress.end, "partial")
    assert [found.phase async for found in progress.states()] == ["measuring", "ended"]
