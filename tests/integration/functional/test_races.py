"""Conditional writes are a compare-and-swap, whichever worker they go through."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.gateway import Gateway
from tests.support.raw_http import Client, make_request

pytestmark = pytest.mark.place

WRITERS = 32


class Writers:
    """32 connections that send at one moment, so that all workers are asked."""

    def __init__(self, gateway: Gateway) -> None:
        self._clients = [Client(gateway.endpoint) for _ in range(WRITERS)]

    def put(self, url: str, headers: dict[str, str], body_of: Callable[[int], bytes]) -> list[int]:
        """The statuses of 32 PUTs of one presigned URL, each with a body of its own."""
        statuses = [0] * WRITERS
        barrier = threading.Barrier(WRITERS)

        def write(number: int) -> None:
            request = make_request("PUT", url, *headers.items(), body=body_of(number))
            self._clients[number].connect()
            barrier.wait()
            statuses[number] = self._clients[number].ask(request).status

        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return statuses

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()


def presigned(s3: Any, bucket: str, key: str) -> str:
    """A PUT URL."""
    url: str = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": key})
    return url


def test_one_of_32_creates(gateway: Gateway, s3: Any, bucket: str, size: Any) -> None:
    writers = Writers(gateway)
    for number in range(size(20, 200)):
        key = f"new-{number}"
        statuses = writers.put(presigned(s3, bucket, key), {"If-None-Match": "*"}, lambda writer: b"%d" % writer)
        assert Counter(statuses) == {200: 1, 412: WRITERS - 1}
        winner = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        assert int(winner) == statuses.index(200)
    writers.close()


def test_one_of_32_replaces(gateway: Gateway, s3: Any, bucket: str, size: Any) -> None:
    writers = Writers(gateway)
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"first")["ETag"]
    for number in range(size(20, 200)):
        url = presigned(s3, bucket, "k")
        statuses = writers.put(url, {"If-Match": etag}, lambda writer, round_=number: b"%d %d" % (round_, writer))
        assert Counter(statuses) == {200: 1, 412: WRITERS - 1}
        got = s3.get_object(Bucket=bucket, Key="k")
        assert got["Body"].read() == b"%d %d" % (number, statuses.index(200))
        etag = got["ETag"]
    writers.close()


def test_last_of_32_wins_whole(gateway: Gateway, s3: Any, bucket: str) -> None:
    """Without a condition all are taken, and what stays is one of them with its own ETag."""
    writers = Writers(gateway)
    bodies = [bytes([number]) * (100_000 + number) for number in range(WRITERS)]
    statuses = writers.put(presigned(s3, bucket, "k"), {}, bodies.__getitem__)
    assert set(statuses) == {200}
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() in bodies
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["ETag"] == got["ETag"]
    writers.close()
