"""The tail of requests: written while somebody watches, read without a lock, and what is lost is counted."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from sluice_s3.app.server.http.access_log import UnwrittenLog
from sluice_s3.app.server.processes.context import WorkerContext, WorkerSpec
from sluice_s3.app.server.shared_memory import counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests, boottime_ms
from sluice_s3.app.server.shared_memory.request_tail import CELLS, WATCH_MS, TailReader, TailWriter
from sluice_s3.app.server.shared_memory.store_states import StoreStates
from tests.support.settings import make_settings


def line(key: str = "a", **fields: object) -> bytes:
    return orjson.dumps({"request": "R", "bucket": "b", "key": key, **fields}) + b"\n"


def writer(directory: Path, slot: int = 0) -> TailWriter:
    made = TailWriter.open(directory, 3, slot)
    assert made is not None
    return made


def test_a_reader_sees_what_all_processes_write_from_now_on(tmp_path: Path) -> None:
    assert TailWriter.open(tmp_path, 3, 0) is None
    TailReader(tmp_path, 3)
    writer(tmp_path).append(line("before"), {})
    reader = TailReader(tmp_path, 3)
    writer(tmp_path).append(line("one"), {"auth": 0.0012})
    writer(tmp_path, 2).append(line("two"), {})
    found, lost = reader.read()
    assert [(one["key"], one["phases"]) for one in found] == [("one", {"auth": 1.2}), ("two", {})]
    assert lost == 0
    assert reader.read() == ([], 0)


def test_what_is_not_read_in_time_is_counted(tmp_path: Path) -> None:
    reader = TailReader(tmp_path, 3)
    one = writer(tmp_path)
    for number in range(CELLS + 20):
        one.append(line(str(number)), {})
    found, lost = reader.read()
    assert [record["key"] for record in found] == [str(number) for number in range(CELLS)]
    assert lost == 20
    one.append(line("again"), {})
    one._shared[one._cells] = 0  # not a line of a log
    assert reader.read() == ([], 1)
    assert TailReader(tmp_path, 3).read() == ([], 0), "what was dropped before is not lost to a new reader"


@pytest.mark.parametrize("key", ["x" * 1024, "é" * 512, "\U0001f600" * 256, "\x01" * 1024])
def test_long_keys_are_cut_to_fit(tmp_path: Path, key: str) -> None:
    reader = TailReader(tmp_path, 3)
    writer(tmp_path).append(line(key, client="192.0.2.1"), {"auth": 1 / 3, "index": 1 / 7, "commit": 2 / 3})
    (found,), _ = reader.read()
    assert str(found["key"]).startswith(key[:16])
    assert str(found["key"]).endswith("…")
    assert found["client"] == "192.0.2.1"


def test_the_wish_to_read_ends_by_itself(tmp_path: Path) -> None:
    reader = TailReader(tmp_path, 3)
    one = writer(tmp_path)
    now = boottime_ms()
    assert not one.is_wanted(now)
    reader.want()
    assert one.is_wanted(now)
    assert not one.is_wanted(boottime_ms() + WATCH_MS)
    assert not one.is_wanted(now - 10 * WATCH_MS), "of a boot before"
    reader.stop()
    assert not one.is_wanted(now)


@pytest.fixture
def spec(tmp_path: Path) -> WorkerSpec:
    settings = make_settings(tmp_path, access_log=False)
    settings.run_dir.mkdir(parents=True)
    for made in (counters.Counters, OldestRequests):
        made(settings.run_dir / made.__name__, 3, create=True)
    OldestRequests(settings.run_dir / "oldest", 3, create=True)
    StoreStates(settings.run_dir, list(settings.named_stores), 3, create=True)
    return WorkerSpec(settings, "m:f", "worker", 0, 0, 3, (), 0, 0, False)


def test_a_worker_writes_nothing_until_somebody_watches(spec: WorkerSpec) -> None:
    context = WorkerContext(spec)
    context.publish(boottime_ms(), None, 0, 0)
    assert context._log is None
    assert context._tail is None
    reader = context.open_tail()
    reader.want()
    context.publish(boottime_ms(), None, 0, 0)
    context.record_refusal("R1", "SlowDown", 503, 10, "192.0.2.1")
    assert isinstance(context._log, UnwrittenLog), "the access log is off and stays so"
    (found,), lost = reader.read()
    assert (found["request"], found["status"], found["error"], lost) == ("R1", 503, "SlowDown", 0)
    context.publish(boottime_ms() + WATCH_MS + 1, None, 0, 0)
    assert context._tail is None
    assert context._log is None
