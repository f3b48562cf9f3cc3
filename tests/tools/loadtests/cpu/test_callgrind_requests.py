"""Every counted request does what it is named for, without valgrind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.app.interpreter import describe_interpreter
from sluice_s3.loadtests.common.s3_calls import Calls, S3CallError
from sluice_s3.loadtests.common.targets import ROOT
from sluice_s3.loadtests.cpu.callgrind import CallgrindError, Connection, Worker, describe_other
from sluice_s3.loadtests.cpu.callgrind_costs import KEYS
from sluice_s3.loadtests.cpu.callgrind_requests import (
    LARGE,
    OPERATIONS,
    SMALL,
    _path,
    create_buckets,
    preparations,
    requests,
)
from sluice_s3.loadtests.cpu.shape_requests import LISTED_KEYS

PUTS = [name for name in OPERATIONS if name.startswith("PUT")]
GETS = [name for name in OPERATIONS if name.startswith("GET")]


class Site:
    """A worker, one connection to it, and calls beside it."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.connection = Connection(worker.address)
        self.calls = Calls(worker.address, worker.signer)
        for request in create_buckets(worker.signer):
            self.connection.ask(request)

    def ask(self, name: str, count: int = 2) -> list[bytes]:
        for request in preparations(self.worker.signer, name, count):
            self.connection.ask(request)
        return [self.connection.ask(request) for request in requests(self.worker.signer, name, 0, count)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Worker(ROOT, sys.executable, tmp_path_factory.mktemp("worker"), KEYS, counted=False) as worker:
        site = Site(worker)
        yield site
        site.connection.close()


@pytest.mark.parametrize("name", PUTS)
def test_put(site: Site, name: str) -> None:
    assert site.ask(name) == [b"", b""]
    body = LARGE if name.endswith("10M") else SMALL
    for number in range(2):
        assert site.calls.ask("GET", _path(name, number)).body == body


@pytest.mark.parametrize("name", GETS)
def test_get(site: Site, name: str) -> None:
    assert set(site.ask(name)) == {LARGE if name.endswith("10M") else SMALL}


@pytest.mark.parametrize("name", ["STAT", *(name for name in OPERATIONS if name.startswith("HEAD"))])
def test_stat(site: Site, name: str) -> None:
    assert site.ask(name) == [b"", b""]


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("LIST")])
def test_a_page_of_1000_keys(site: Site, name: str) -> None:
    assert [page.count(b"<Key>") for page in site.ask(name)] == [LISTED_KEYS] * 2


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("DELETE")])
def test_deletes(site: Site, name: str) -> None:
    answers = site.ask(name)
    assert all(b"<Deleted><Key>" in answer for answer in answers) or name == "DELETE"
    for number in range(2):
        with pytest.raises(S3CallError, match="NoSuchKey"):
            site.calls.ask("GET", _path(name, number))


def test_what_is_wrong_is_told(site: Site) -> None:
    (request,) = requests(site.worker.signer, "GET", 9_000, 9_001)
    with pytest.raises(S3CallError, match=r"^GET /bench/get/28/0009000 HTTP/1.1: 404, [\s\S]*NoSuchKey"):
        site.connection.ask(request)
    (request,) = preparations(site.worker.signer, "STAT", 1)
    site.connection.ask(request)
    (request,) = requests(site.worker.signer, "STAT", 0, 1)
    with pytest.raises(S3CallError, match="200, 0 bytes"):
        site.connection.ask(request._replace(size=5))


def test_a_body_that_is_not_asked_for(site: Site) -> None:
    (request,) = requests(site.worker.signer, "PUT:BOTO3", 0, 1)
    connection = Connection(site.worker.address)
    wrong = request.head.replace(b"AWS4-HMAC-SHA256 ", b"AWS4-HMAC-SHA999 ")
    with pytest.raises(S3CallError, match="instead of 100 Continue"):
        connection.ask(request._replace(head=wrong))
    connection.close()


def test_what_the_worker_is(site: Site) -> None:
    assert site.worker.found["source"] == str((ROOT / "app").resolve())


def test_its_interpreter() -> None:
    assert describe_other(sys.executable) == describe_interpreter()._asdict()
    with pytest.raises(CallgrindError, match="does not run"):
        describe_other("false")


def test_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="is no checkout"):
        Worker(tmp_path, sys.executable, tmp_path, KEYS, counted=False)
