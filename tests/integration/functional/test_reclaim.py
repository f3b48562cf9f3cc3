"""Space of deleted objects comes back, beside requests and without them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sluice_s3.app.jobs.pacing import SPREAD_SECONDS
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

OBJECTS = 300
SIZE = 200_000
"""Too large for a pack."""
GRACE = 1.0
PAUSE_SECONDS = sized(0.02, 0.0)
"""Between two rounds of a client: the gateway is busy either way."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    env = {"SLUICE_DISCARD_GRACE": str(GRACE), "SLUICE_DURABILITY": "relaxed"}
    with Gateway(tmp_path / "data", env=env, options=("--admin-port", "0")) as running:
        client(running.endpoint).create_bucket(Bucket="reclaim")
        yield running


def backlog(gateway: Gateway) -> int:
    text = httpx.get(f"{gateway.admin}/metrics").text
    found = re.search(r'^sluice_discarded_blobs\{store="default"\} (\d+)$', text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def discard(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    for number in range(OBJECTS):
        s3.put_object(Bucket="reclaim", Key=f"k{number}", Body=bytes(SIZE))
    for number in range(OBJECTS):
        s3.delete_object(Bucket="reclaim", Key=f"k{number}")


def files(gateway: Gateway) -> set[str]:
    return {path.name for path in (gateway.store / "data").glob("*/*")}


@contextmanager
def load(gateway: Gateway) -> Iterator[list[int]]:
    """Two clients that read and overwrite all the time; the list grows with each request."""
    stop = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        s3 = client(gateway.endpoint)
        while not stop.wait(PAUSE_SECONDS):
            s3.put_object(Bucket="reclaim", Key=f"busy{number}", Body=bytes(SIZE))
            s3.get_object(Bucket="reclaim", Key=f"busy{number}")["Body"].read()
            done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_an_idle_gateway_removes_garbage_at_once(gateway: Gateway) -> None:
    discard(gateway)
    began = time.monotonic()
    eventually(lambda: not backlog(gateway), "nothing is left", 60)
    assert not files(gateway)
    assert time.monotonic() - began < GRACE + 20, "also on a machine that is busy with other tests"


def test_the_backlog_drains_beside_requests(gateway: Gateway) -> None:
    with load(gateway) as done:
        discard(gateway)
        began, before, old = time.monotonic(), len(done), files(gateway)
        assert backlog(gateway) > OBJECTS / 10
        eventually(lambda: not old & files(gateway), "old files go while requests come", 3 * SPREAD_SECONDS)
        rate = (len(done) - before) / (time.monotonic() - began)
        assert rate > 0
        assert backlog(gateway) < 2 * (GRACE + SPREAD_SECONDS) * rate + 10, "of what is overwritten meanwhile"
    eventually(lambda: len(files(gateway)) == 2, "without requests all of it goes", 60)
