"""Requests by bucket: rows that processes share, and their bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sluice_s3.app.server.shared_memory import bucket_counters
from sluice_s3.app.server.shared_memory.bucket_counters import BucketCounters


def samples(counters: BucketCounters) -> dict[tuple[str, str, str], float]:
    return {
        (
            sample.name.removeprefix("sluice_bucket_"),
            sample.labels["bucket"],
            [*sample.labels.values()][-1],
        ): sample.value
        for family in text_string_to_metric_families(counters.render().decode())
        for sample in family.samples
    }


def test_processes_share_the_rows_and_the_rest_is_other(tmp_path: Path) -> None:
    path = tmp_path / "bucket-counters"
    BucketCounters(path, 2, 3, create=True)
    first, second = BucketCounters(path, 2, 3, 0), BucketCounters(path, 2, 3, 2)
    first.count("photos", 200, 10, 0)
    second.count("dumps", 200, 0, 5)
    second.count("photos", 404, 0, 300)
    first.count("dumps", 499, 0, 0)
    first.count("third", 200, 1, 2)
    second.count("fourth", 503, 3, 4)
    found = samples(BucketCounters(path, 2, 3, 1))
    assert found["requests_total", "photos", "2xx"] == 1
    assert found["requests_total", "photos", "4xx"] == 1
    assert found["transfer_bytes_total", "photos", "in"] == 10
    assert found["transfer_bytes_total", "photos", "out"] == 300
    assert found["requests_total", "dumps", "4xx"] == 1
    assert found["requests_total", "other", "2xx"] == 1
    assert found["requests_total", "other", "5xx"] == 1
    assert found["transfer_bytes_total", "other", "out"] == 6
    assert {bucket for _, bucket, _ in found} == {"photos", "dumps", "other"}


def test_a_bucket_named_other_has_no_second_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = BucketCounters(tmp_path / "bucket-counters", 2, 1, create=True)
    with monkeypatch.context() as patched:
        patched.setattr(bucket_counters, "open_file", None)  # it takes no lock, at no request
        counters.count("other", 200, 0, 0)
    counters.count("a" * 63, 200, 0, 0)
    found = samples(counters)
    assert found["requests_total", "other", "2xx"] == 1
    assert found["requests_total", "a" * 63, "2xx"] == 1


def test_counts_outlive_a_process_and_older_launchers_have_no_file(tmp_path: Path) -> None:
    path = tmp_path / "bucket-counters"
    BucketCounters(path, 2, 1).count("photos", 200, 0, 0)
    BucketCounters(path, 2, 1).count("photos", 200, 0, 0)
    assert samples(BucketCounters(path, 2, 1))["requests_total", "photos", "2xx"] == 2
    BucketCounters(path, 2, 1, create=True)
    assert ("requests_total", "photos", "2xx") not in samples(BucketCounters(path, 2, 1))
