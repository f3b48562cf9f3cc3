"""Counters, the access log, and what processes tell each other."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import sluice_s3.app
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.iam import QueryError
from sluice_s3.app.s3.minio.errors import AdminError
from sluice_s3.app.server.http.access_log import MAX_BUFFERED_LINES, AccessLog
from sluice_s3.app.server.shared_memory import counters as counting
from sluice_s3.app.server.shared_memory.counters import BOUNDS, PHASES, Counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests, boottime_ms
from sluice_s3.app.server.shared_memory.operation_names import OPERATIONS


def samples(counters: Counters) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(counters.render().decode())
    found = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def labels(**names: str) -> frozenset[tuple[str, str]]:
    return frozenset(names.items())


def test_requests_of_all_places_are_summed(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    Counters(path, 3, create=True)
    first, second = Counters.open(path, 3, 0), Counters.open(path, 3, 2)
    first.count_request("GetObject", 200, {"auth": 0.0002, "read": 0.003}, 0.004, 0, 1000)
    first.count_request("GetObject", 206, {}, 0.1, 0, 10)
    second.count_request("GetObject", 404, {}, 0.00001, 0, 300, "NoSuchKey")
    second.count_request("PutObject", 200, {"commit": 40.0}, 41.0, 5000, 0)
    found = samples(Counters.open(path, 3))
    operation = "GetObject"
    assert found["sluice_requests_total", labels(operation=operation, status="2xx")] == 2
    assert found["sluice_requests_total", labels(operation=operation, status="4xx")] == 1
    assert found["sluice_errors_total", labels(code="NoSuchKey")] == 1
    assert found["sluice_bytes_total", labels(operation=operation, direction="out")] == 1310
    assert found["sluice_bytes_total", labels(operation="PutObject", direction="in")] == 5000
    total = {"operation": operation, "phase": "total"}
    assert found["sluice_request_seconds_count", labels(**total)] == 3
    assert found["sluice_request_seconds_sum", labels(**total)] == pytest.approx(0.10401)
    assert found["sluice_request_seconds_bucket", labels(**total, le="5e-05")] == 1
    assert found["sluice_request_seconds_bucket", labels(**total, le="0.005")] == 2
    assert found["sluice_request_seconds_bucket", labels(**total, le="+Inf")] == 3
    commit = {"operation": "PutObject", "phase": "commit"}
    assert found["sluice_request_seconds_bucket", labels(**commit, le=repr(BOUNDS[-1]))] == 0
    assert found["sluice_request_seconds_bucket", labels(**commit, le="+Inf")] == 1
    first.set_gauges(2, 5)
    second.set_gauges(1, 1)
    assert Counters.open(path, 3).read_activity() == (3, pytest.approx(41.10401)), "of all operations and processes"


def test_no_name_of_a_client_makes_a_series(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "counters", 1, create=True)
    counters.count_request("Evil\nOperation", 200, {"evil phase": 1.0}, 1.0, 0, 0, "EvilCode")
    found = samples(counters)
    assert found["sluice_requests_total", labels(operation="Unknown", status="2xx")] == 1
    assert found["sluice_errors_total", labels(code="Other")] == 1
    assert b"vil" not in counters.render()


def test_a_place_counts_on_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    launcher = Counters(path, 2, create=True)
    first = Counters.open(path, 2, 1)
    first.count_request("HeadObject", 200, {}, 0.1, 0, 0)
    first.set_gauges(3, 4)
    assert samples(launcher)["sluice_connections", labels()] == 4
    launcher.clear_gauges(1)
    Counters.open(path, 2, 1).count_request("HeadObject", 200, {}, 0.1, 0, 0)
    found = samples(launcher)
    assert found["sluice_requests_total", labels(operation="HeadObject", status="2xx")] == 2
    assert found["sluice_connections", labels()] == 0
    assert found["sluice_requests_running", labels()] == 0


def test_a_new_server_starts_at_zero(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    old = Counters(path, 1, create=True)
    old.count_request("HeadObject", 200, {}, 0.1, 0, 0)
    assert b"HeadObject" not in Counters(path, 1, create=True).render()
    old.count_request("HeadObject", 200, {}, 0.1, 0, 0)  # a process that is still there writes to nobody
    assert b"HeadObject" not in Counters.open(path, 1).render()


def every(base: type) -> set[type]:
    """All classes of a kind that any module of the gateway defines."""
    for module in pkgutil.walk_packages(sluice_s3.app.__path__, "sluice_s3.app."):
        if not module.name.startswith("sluice_s3.app.cli.main"):
            importlib.import_module(module.name)
    found, left = set(), [base]
    while left:
        new = [one for one in left.pop().__subclasses__() if one.__module__.startswith("sluice_s3.app.")]
        found |= set(new)
        left += new
    return found


@pytest.mark.parametrize("base", [S3Error, IamError])
def test_every_error_is_counted_by_its_code(tmp_path: Path, base: type[S3Error] | type[IamError]) -> None:
    counters = Counters(tmp_path / "counters", 1, create=True)
    codes = [one().code for one in every(base) if one not in (QueryError, AdminError)]  # with codes of other errors
    for code in codes:
        counters.count_request("GetObject", 400, {}, 0.0, 0, 0, code)
    counted = {dict(names)["code"] for name, names in samples(counters) if name == "sluice_errors_total"}
    assert counted == set(codes)
    assert len(codes) == len(set(codes)), "defined twice"
    assert {"ExpiredToken", "KMS.NotFoundException"} <= set(codes) or base is IamError


def test_every_error_is_raised_somewhere() -> None:
    sources = "\n".join(path.read_text() for path in Path(sluice_s3.app.__path__[0]).rglob("*.py"))
    other = r"(?ms)^class \w+|^from \S+ import (\(.*?\)|[^(].*?)$|\"{3}.*?\"{3}"
    uses = Counter(re.findall(r"\b\w+\b", re.sub(other, "", sources)))
    unused = {one.__name__ for base in (S3Error, IamError) for one in every(base) if not uses[one.__name__]}
    assert unused == set()


def test_code_of_another_layout_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rolling restart takes up code that counts other names: neither misreads what the other wrote."""
    path = tmp_path / "counters"
    launcher = Counters(path, 2, create=True)
    launcher.count_request("GetObject", 200, {}, 0.1, 0, 0)
    with monkeypatch.context() as newer:
        newer.setattr(counting, "LAYOUT", "newer")
        newer.setattr(counting, "_PLACE", counting._PLACE + 1)
        first, second = Counters.open(path, 2, 0), Counters.open(path, 2, 1)
        first.count_request("PutObject", 200, {}, 0.1, 0, 0)
        assert b"GetObject" not in second.render()
        assert samples(second)["sluice_requests_total", labels(operation="PutObject", status="2xx")] == 1
    assert b"PutObject" not in launcher.render()
    assert len(list(tmp_path.iterdir())) == 2
    Counters(path, 2, create=True)
    assert len(list(tmp_path.iterdir())) == 1, "a new server keeps none of the one before"


def test_every_operation_that_is_dispatched_is_known() -> None:
    from sluice_s3.app.access.iam.service import NAMES
    from sluice_s3.app.s3 import handlers
    from sluice_s3.app.s3.gateway import PREFLIGHT
    from sluice_s3.app.s3.routing import ROUTES

    handlers.register()
    assert {PREFLIGHT, *(operation.name for operation in ROUTES.values())} <= set(OPERATIONS)
    for names in NAMES.values():
        assert names <= set(OPERATIONS)
    assert len(OPERATIONS) == len(set(OPERATIONS))
    assert len(PHASES) == 8


# the oldest request
def test_the_oldest_request_of_all_processes(tmp_path: Path) -> None:
    path = tmp_path / "oldest"
    launcher = OldestRequests(path, 3, create=True)
    before = boottime_ms()
    assert launcher.oldest() >= before, "without a process nothing runs"
    first, second = launcher.find_free_slot(), None
    assert first is not None
    launcher.reserve(first)
    second = launcher.find_free_slot()
    assert second not in (None, first)
    launcher.reserve(second)  # type: ignore[arg-type]
    worker = OldestRequests(path, 3)
    worker.publish(first, 5000)
    assert launcher.oldest() == 5000
    launcher.release(first)
    assert launcher.oldest() >= before
    launcher.reserve(2)
    launcher.reserve(first)
    assert launcher.find_free_slot() is None


# the log
def lines_of(read_fd: int) -> list[bytes]:
    return os.read(read_fd, 100_000).splitlines(keepends=True)


def test_a_line_is_json_and_one_line() -> None:
    read_fd, write_fd = os.pipe()
    try:
        log = AccessLog(write_fd)
        key = 'a"\\\n\r\x1b[31m\x7f\x9b\u2028é'
        log.write("ID1", "GET", "GetObject", "b", key, 200, 0, 10, 0.0123, "AKIA\n", "::1", {"auth": 0.001}, "")
        log.write("ID2", "", "Unknown", None, None, 400, 0, 0, 0.0, None, "1.2.3.4", {}, "BadRequest")
        first, second = lines_of(read_fd)
    finally:
        os.close(read_fd)
        os.close(write_fd)
    assert all(0x20 <= byte < 0x7F for byte in first[:-1])
    record = json.loads(first)
    assert record["key"] == key
    assert record["access_key"] == "AKIA\n"
    assert record["ms"] == 12.3
    assert record["phases"] == {"auth": 1.0}
    assert abs(time.time() - time.mktime(time.strptime(record["time"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 60
    record = json.loads(second)
    assert (record["request"], record["bucket"], record["access_key"]) == ("ID2", None, None)
    assert (record["status"], record["error"]) == (400, "BadRequest")


def test_a_log_that_nobody_reads_any_more_does_not_stop_the_server() -> None:
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    try:
        AccessLog(write_fd).write("ID", "GET", "GetObject", "b", "k", 200, 0, 0, 0.0, None, "", {}, "")
    finally:
        os.close(write_fd)


def test_lines_are_gathered_until_the_loop_is_done() -> None:
    read_fd, write_fd = os.pipe()
    later: list[Callable[[], None]] = []
    try:
        log = AccessLog(write_fd)
        log.defer = later.append
        for number in range(30):
            log.write(f"ID{number}", "GET", "GetObject", "b", "k" * 300, 200, 0, 0, 0.0, None, "", {}, "")
        os.set_blocking(read_fd, False)
        with pytest.raises(BlockingIOError):
            os.read(read_fd, 1)
        (flush,) = later
        flush()
        assert [json.loads(line)["request"] for line in lines_of(read_fd)] == [f"ID{number}" for number in range(30)]
        log.write("again", "GET", "GetObject", "b", "k", 200, 0, 0, 0.0, None, "", {}, "")
        assert len(later) == 2
        log.defer = None
        log.flush()
        assert [json.loads(line)["request"] for line in lines_of(read_fd)] == ["again"]
    finally:
        os.close(read_fd)
        os.close(write_fd)


def test_one_write_is_no_longer_than_a_pipe_keeps_together(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr("sluice_s3.app.server.http.access_log.os.write", lambda _, data: written.append(data))
    log = AccessLog(1)
    log.defer = lambda _: None
    for length in (10, 1000, 5000, 10, 10, 2000, 2000):
        log.write("ID", "GET", "GetObject", "b", "k" * length, 200, 0, 0, 0.0, None, "", {}, "")
    log.flush()
    assert [data.count(b"\n") for data in written] == [2, 1, 3, 1]
    assert all(data.endswith(b"}\n") for data in written)


def test_lines_that_wait_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr("sluice_s3.app.server.http.access_log.os.write", lambda _, data: written.append(data))
    log = AccessLog(1)
    log.defer = lambda _: None
    for _ in range(MAX_BUFFERED_LINES):
        assert not written
        log.write("ID", "GET", "GetObject", "b", "k", 200, 0, 0, 0.0, None, "", {}, "")
    assert b"".join(written).count(b"\n") == MAX_BUFFERED_LINES
