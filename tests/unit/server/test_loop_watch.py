"""What holds the event loop is counted and named."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from pathlib import Path

import pytest

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.processes.loop_watch import HOLD_SECONDS, LoopWatch, is_waiting
from sluice_s3.app.server.shared_memory.counters import Counters


def hold(request: S3Request, seconds: float) -> None:
    time.sleep(seconds)


async def test_an_operation_that_holds_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    noted: list[tuple[str, float]] = []
    watch = LoopWatch(lambda *one: noted.append(one))
    watch.start()
    request = S3Request()
    request.operation, request.request_id = "DeleteObjects", "ABCD"
    with caplog.at_level(logging.WARNING, "sluice.server"):
        for _ in range(2):
            await asyncio.sleep(0.1)
            hold(request, 4 * HOLD_SECONDS)
        await asyncio.sleep(0.1)
    watch.stop()
    held = [seconds for operation, seconds in noted if operation == "DeleteObjects"]
    assert len(held) == 2
    assert all(seconds > 2 * HOLD_SECONDS for seconds in held)
    lines = [line for line in caplog.messages if line.startswith("ABCD: ")]
    assert len(lines) == 1, "at most one line a second"
    assert "the event loop was held for 0." in lines[0]
    assert " by DeleteObjects (" in lines[0]
    assert "test_loop_watch.hold)" in lines[0]


async def test_a_loop_that_waits_is_held_by_nobody() -> None:
    thread = threading.get_ident()
    assert await asyncio.to_thread(lambda: (time.sleep(0.05), is_waiting(sys._current_frames()[thread]))[1])


async def test_many_short_steps_do_not_hold_it() -> None:
    noted: list[str] = []
    watch = LoopWatch(lambda operation, _: noted.append(operation))
    request = S3Request()
    request.operation = "GetObject"
    watch.start()
    for _ in range(50):
        hold(request, 0.005)
        await asyncio.sleep(0)
    watch.stop()
    assert "GetObject" not in noted


def test_a_process_without_cpu_time_is_no_held_loop() -> None:
    noted: list[str] = []
    watch = LoopWatch(lambda operation, _: noted.append(operation))
    watch._report(1.0, 0.0, 0.1)
    assert noted == []
    watch._report(1.0, 0.0, 0.9)
    assert noted == ["Unknown"]


def test_it_is_counted(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "counters", 2, 1, create=True)
    assert b'sluice_loop_held_total{operation="Unknown"} 0\n' in counters.render()
    for operation in ("DeleteObjects", "DeleteObjects", "NoSuchOperation"):
        counters.count_loop_hold(operation, 0.25)
    rendered = counters.render().decode()
    assert 'sluice_loop_held_total{operation="DeleteObjects"} 2\n' in rendered
    assert 'sluice_loop_held_seconds_total{operation="DeleteObjects"} 0.500\n' in rendered
    assert 'sluice_loop_held_total{operation="Unknown"} 1\n' in rendered
