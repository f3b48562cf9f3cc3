"""Requests a second of accounts and of addresses without one."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import service
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.slow
REQUESTS = 60


def outcome(url: str) -> int:
    try:
        with urlopen(url) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code


def test_requests_past_the_rate_get_slow_down_by_account(tmp_path: Path) -> None:
    limits = {
        "SLUICE_REQUESTS_PER_SECOND": "5",
        "SLUICE_ANONYMOUS_REQUESTS_PER_SECOND": "1",
        "SLUICE_WORKERS": "2",
        "SLUICE_DEFAULT_BUCKETS": "one",
    }
    with Gateway(tmp_path / "data", env=limits) as gateway:
        gateway.run("user", "add", "--access-key", "OTHERKEY", "--secret-key", "other-secret-0123", "--id", "other")
        s3 = client(gateway.endpoint)

        def list_buckets(_: int) -> str:
            try:
                s3.list_buckets()
            except ClientError as error:
                answer = error.response["ResponseMetadata"]
                return f"{answer['HTTPStatusCode']} {error.response['Error']['Code']}"
            return "done"

        with ThreadPoolExecutor(8) as pool:
            codes = Counter(pool.map(list_buckets, range(REQUESTS * 5)))
            assert codes["done"] >= 5
            assert codes["503 SlowDown"] >= 1
            assert set(codes) == {"done", "503 SlowDown"}
            anonymous = Counter(pool.map(outcome, [f"{gateway.endpoint}/one/key"] * REQUESTS))
        assert anonymous[403] >= 1
        assert anonymous[503] > anonymous[403]
        assert client(gateway.endpoint, "OTHERKEY", "other-secret-0123").list_buckets()["Buckets"] == []
        assert outcome(f"{gateway.endpoint}/-/health/ready") == 200, "health checks have no rate"

        def get_identity(_: int) -> str:
            try:
                sts.get_caller_identity()
            except ClientError as error:
                return str(error.response["Error"]["Code"])
            return "done"

        sts = service(gateway, "sts")
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(get_identity, range(REQUESTS))) == {"done", "Throttling"}
