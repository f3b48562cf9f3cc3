"""Samples of counters that a worker writes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from sluice_s3.app.admin.overview.sampler import BUCKETS_SECONDS, COLUMNS, KEPT_SECONDS, MOST_BUCKETS, Sampler
from sluice_s3.app.server.shared_memory.bucket_counters import BucketCounters
from sluice_s3.app.server.shared_memory.counters import BOUNDS, Counters


class Site:
    """A worker and the admin process, and a clock."""

    def __init__(self, path: Path) -> None:
        Counters(path, 2, create=True)
        self.worker, own = Counters.open(path, 2, 0), Counters.open(path, 2, 1)
        BucketCounters(path.with_name("buckets"), 30, 2, create=True)
        self.buckets, read = (BucketCounters(path.with_name("buckets"), 30, 2, slot) for slot in (0, 1))
        self.sampler = Sampler(own, read.read)
        self.now = 1000.0
        self.tick(0)

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        self.sampler.take_sample(self.now, round(self.now * 1000))

    async def events(self, count: int, after: int = 0) -> list[tuple[str, Any]]:
        found = []
        async for event in self.sampler.watch(after):
            lines = dict(line.split(": ", 1) for line in event.decode().strip().split("\n"))
            found.append((lines["event"], orjson.loads(lines["data"])))
            if len(found) == count:
                break
            await asyncio.sleep(0)
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "counters")


def point(values: list[float]) -> dict[str, float]:
    return dict(zip(COLUMNS, values, strict=True))


async def test_a_sample_has_rates_of_its_second(site: Site) -> None:
    for _ in range(30):
        site.worker.count_request("GetObject", 200, {}, 0.0008, 0, 100)
    site.worker.count_request("PutObject", 404, {}, 0.2, 50, 10, "NoSuchBucket")
    site.worker.count_request("PutObject", 500, {}, 0.2, 50, 10, "InternalError")
    site.worker.set_gauges(3, 9)
    site.tick(2)
    ((name, history),) = await site.events(1)
    assert name == "history"
    assert tuple(history["columns"]) == COLUMNS
    assert history["bounds"] == list(BOUNDS)
    found = point(history["points"][0])
    assert (found["requests"], found["client_errors"], found["server_errors"]) == (16, 0.5, 0.5)
    assert (found["bytes_in"], found["bytes_out"], found["running"]) == (50, 1510, 3)
    assert 0.0005 < found["p50"] <= 0.001
    assert 0.1 < found["p99"] <= 0.25
    get, put = history["operations"]
    assert (get["name"], get["requests"], get["p99"][1:]) == ("GetObject", 15, [0.0005, 0.001])
    assert (put["name"], put["client_errors"], put["server_errors"]) == ("PutObject", 0.5, 0.5)


async def test_a_second_without_requests_has_no_latency(site: Site) -> None:
    site.tick()
    ((_, history),) = await site.events(1)
    found = point(history["points"][0])
    assert (found["requests"], found["p50"], found["p99"]) == (0, None, None)
    assert history["operations"] == []


async def test_the_table_is_about_the_last_minute(site: Site) -> None:
    site.worker.count_request("GetObject", 200, {}, 0.001, 0, 0)
    for _ in range(60):
        site.tick()
    assert [one["name"] for one in site.sampler.operations()] == ["GetObject"]
    site.tick()
    assert site.sampler.operations() == []


async def test_the_busiest_buckets_of_the_last_minute(site: Site) -> None:
    for number in range(MOST_BUCKETS + 5):
        for _ in range(number + 1):
            site.buckets.count(f"bucket-{number}", 200, 10, 100)
    site.buckets.count("bucket-24", 503, 0, 0)
    site.tick(BUCKETS_SECONDS)
    found = site.sampler.buckets()
    assert found is not None
    assert (found[0], len(found)) == (
        {
            "name": "bucket-24",
            "requests": 2.6,
            "client_errors": 0,
            "server_errors": 0.1,
            "bytes_in": 25,
            "bytes_out": 250,
        },
        MOST_BUCKETS,
    )
    for _ in range(7):
        site.tick(BUCKETS_SECONDS)
    assert site.sampler.buckets() == []


async def test_all_who_watch_get_the_same_sample(site: Site) -> None:
    watchers = [asyncio.create_task(site.events(3)) for _ in range(10)]
    await asyncio.sleep(0)
    for _ in range(2):
        site.tick()
        for _ in range(5):
            await asyncio.sleep(0)
    seen = await asyncio.wait_for(asyncio.gather(*watchers), 5)
    assert all(one == seen[0] for one in seen)
    assert [name for name, _ in seen[0]] == ["history", "sample", "sample"]


async def test_who_comes_back_gets_what_was_missed_only(site: Site) -> None:
    for _ in range(5):
        site.tick()
    ((_, history),) = await site.events(1, after=round((site.now - 2) * 1000))
    assert [values[0] for values in history["points"]] == [round((site.now - ago) * 1000) for ago in (1, 0)]


async def test_what_is_kept_is_bounded(site: Site) -> None:
    for _ in range(KEPT_SECONDS + 50):
        site.tick()
    ((_, history),) = await site.events(1)
    assert len(history["points"]) == KEPT_SECONDS
