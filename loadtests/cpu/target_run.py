"""The cells that one target runs in its turn of a round."""

from __future__ import annotations

import itertools
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Running
from sluice_s3.loadtests.cpu.client import Client, Outcome, Request
from sluice_s3.loadtests.cpu.measurement import Case, Measure, Meter, Span

KIB, MIB = 1 << 10, 1 << 20
POOL_BYTES = 32 * MIB
PREPARED_RATE, PREPARED_BYTES = 15_000, 4 << 30
"""Requests, and bytes of bodies, prepared at most for each second of a cell.

A cell that needs more ends early.
"""
READ_KEYS = 2000
"""Keys that reads cycle through."""
PREFIXES = 16
MIX = {"GET": 45, "STAT": 30, "PUT": 15, "DELETE": 10}
MIX_READ_KEYS = 24
MIX_FIRST_KEYS = 12
"""Objects for the first DELETEs, before a PUT of the mix is old enough."""
LONG = 3600.0
OBJECT_OPERATIONS = ("PUT", "GET", "STAT", "DELETE")


@dataclass(frozen=True)
class Plan:
    """What every target does in every round. Sizes are bytes, times seconds."""

    operations: tuple[str, ...]
    sizes: tuple[int, ...]
    clients: tuple[int, ...]
    seconds: float
    warm_up: float
    list_keys: int
    multipart_bytes: int
    part_bytes: int
    mix_bytes: int
    mix_clients: int


@contextmanager
def connected(running: Running, connections: int) -> Iterator[Client]:
    """Open a client's connections to a target, and close them at the end."""
    client = Client(running.address, connections, running.more_addresses, running.tls)
    try:
        yield client
    finally:
        client.close()


def remove_buckets(running: Running, buckets: Iterable[str], connections: int) -> None:
    """Delete buckets, which may be missing, with their objects."""
    for bucket in buckets:
        try:
            paths = [f"/{bucket}/{key}" for key in running.calls.keys(bucket)]
        except S3CallError:
            continue  # not created in this turn
        with connected(running, connections) as client:
            client.run([Request(running.signer.head("DELETE", path)) for path in paths], LONG)
        running.calls.remove_bucket(bucket)


class TargetRun:
    """Runs a plan against one target, in a bucket of its own. `bucket` is a new name."""

    def __init__(self, running: Running, plan: Plan, meter: Meter, round_number: int, bucket: str) -> None:
        self._running = running
        self._plan = plan
        self._meter = meter
        self._round = round_number
        self._bucket = bucket
        self._signer = running.signer
        self._random = random.Random(round_number)
        largest = max((*plan.sizes, plan.part_bytes, plan.mix_bytes))
        self._pool = memoryview(os.urandom(POOL_BYTES + largest))

    def run(self, report: Callable[[Measure], None]) -> None:
        """Run every cell and report each measure. Raises S3CallError, Stalled and OSError.

        DELETE comes last: ext4 without a journal reuses an inode only minutes after it was deleted, and checks each
        such inode whenever a file is created.
        """
        plan = self._plan
        self._running.calls.ask("PUT", f"/{self._bucket}")
        written: list[tuple[int, int, list[str]]] = []
        for clients in plan.clients:
            if any(operation in plan.operations for operation in OBJECT_OPERATIONS):
                written += [(size, clients, self._objects(size, clients, report)) for size in plan.sizes]
            if "LIST" in plan.operations:
                report(self._list(clients))
        if "MULTIPART" in plan.operations:
            report(self._multipart(plan.clients[0]))
        if "MIX" in plan.operations:
            report(self._mix())
        if "DELETE" in plan.operations:
            for size, clients, paths in written:
                report(self._delete(size, clients, paths))

    def clean(self) -> None:
        """Delete everything that this turn created: an endpoint outlives the turn."""
        remove_buckets(self._running, (self._bucket, f"{self._bucket}-list"), self._plan.clients[0])

    def _client(self, connections: int) -> AbstractContextManager[Client]:
        return connected(self._running, connections)

    def _request(self, method: str, path: str, size: int = 0) -> Request:
        """Return an object request.

        Each PUT's body is another slice of random bytes, so that nothing can be deduplicated.
        """
        if method == "PUT":
            start = self._random.randrange(POOL_BYTES)
            return Request(self._signer.head("PUT", path, length=size), self._pool[start : start + size])
        if method == "GET":
            return Request(self._signer.head("GET", path), size=size)
        if method == "STAT":
            return Request(self._signer.head("HEAD", path), size=0, bodiless=True)
        return Request(self._signer.head("DELETE", path))

    def _enough(self, size: int) -> int:
        rate = min(PREPARED_RATE, PREPARED_BYTES // max(size, 1))
        return int(rate * (self._plan.seconds + self._plan.warm_up)) + 64

    def _timed(
        self, case: Case, client: Client, feed: Iterator[Request], warm_up_requests: int | None = None
    ) -> tuple[Measure, int]:
        """Warm up with at most `warm_up_requests`, then measure.

        Also returns how many requests both took.
        """
        span = Span(self._plan.warm_up, self._plan.seconds)
        return self._meter.timed(self._round, self._running.target.name, case, client, feed, span, warm_up_requests)

    def _objects(self, size: int, clients: int, report: Callable[[Measure], None]) -> list[str]:
        """PUT new keys, then GET and STAT them at random. Return their paths."""
        paths = [
            f"/{self._bucket}/{size}-{clients}/{number % PREFIXES:x}/{number:07d}"
            for number in range(self._enough(size))
        ]
        with self._client(clients) as client:
            puts = [self._request("PUT", path, size) for path in paths]
            measure, requests = self._timed(Case("PUT", size, clients), client, iter(puts))
            written = paths[:requests]
            self._compare(written[0], puts[0])
            del puts
            if "PUT" in self._plan.operations:
                report(measure)
            for operation in ("GET", "STAT"):
                if operation in self._plan.operations:
                    chosen = self._random.sample(written, min(READ_KEYS, len(written)))
                    reads = itertools.cycle([self._request(operation, path, size) for path in chosen])
                    report(self._timed(Case(operation, size, clients), client, reads)[0])
        return written

    def _delete(self, size: int, clients: int, paths: list[str]) -> Measure:
        """DELETE each path once, in any order."""
        self._random.shuffle(paths)
        deletes = iter([self._request("DELETE", path) for path in paths])
        with self._client(clients) as client:
            return self._timed(Case("DELETE", size, clients), client, deletes, len(paths) // 10)[0]

    def _compare(self, path: str, put: Request) -> None:
        if put.body is None or self._running.calls.ask("GET", path).body != bytes(put.body):
            raise S3CallError(f"GET {path}: not the bytes that were put")

    def _list(self, clients: int) -> Measure:
        """List pages of 1000 keys from random places of a bucket."""
        bucket, count = f"{self._bucket}-list", self._plan.list_keys
        if clients == self._plan.clients[0]:
            self._running.calls.ask("PUT", f"/{bucket}")
            with self._client(clients) as client:
                client.run([self._request("PUT", f"/{bucket}/key-{number:07d}", 64) for number in range(count)], LONG)
        queries = [
            f"list-type=2&max-keys=1000&start-after=key-{self._random.randrange(max(1, count - 1001)):07d}"
            for _ in range(100)
        ]
        page = self._running.calls.ask("GET", f"/{bucket}", queries[0]).body
        if (found := page.count(b"<Key>")) != min(1000, count - 1):
            raise S3CallError(f"LIST answered {found} keys")
        requests = [Request(self._signer.head("GET", f"/{bucket}", query)) for query in queries]
        with self._client(clients) as client:
            return self._timed(Case("LIST", 0, clients), client, itertools.cycle(requests))[0]

    def _multipart(self, clients: int) -> Measure:
        """Run whole uploads one after the other, with their parts sent by all clients.

        An operation is one upload.
        """
        plan = self._plan
        cell = Case("MULTIPART", plan.multipart_bytes, clients)
        with self._client(clients) as client:

            def run() -> Outcome:
                total = Outcome()
                while not total.elapsed or total.elapsed < plan.seconds:
                    started = time.perf_counter()
                    parts = self._upload(client, f"/{self._bucket}/multipart-{total.requests}")
                    took = time.perf_counter() - started
                    total.elapsed += took
                    total.latencies.append(took)
                    total.moved += parts.moved
                    total.errors += parts.errors
                    total.requests += 1
                return total

            return self._meter.measure(self._round, self._running.target.name, cell, run)

    def _upload(self, client: Client, path: str) -> Outcome:
        calls, plan = self._running.calls, self._plan
        upload_match = re.search(rb"<UploadId>([^<]+)</UploadId>", calls.ask("POST", path, "uploads=").body)
        if upload_match is None:
            raise S3CallError(f"POST {path}?uploads: no UploadId")
        upload = upload_match[1].decode()
        sizes = [plan.part_bytes] * (plan.multipart_bytes // plan.part_bytes)
        requests = []
        for number, size in enumerate(sizes, 1):
            head = self._signer.head("PUT", path, f"partNumber={number}&uploadId={upload}", size)
            start = self._random.randrange(POOL_BYTES)
            requests.append(Request(head, self._pool[start : start + size], number=number))
        outcome = client.run(requests, LONG, keep_heads=True)
        tags = {number: re.search(rb"(?i)\r\netag: *(\S+)", head) for number, head in outcome.heads.items()}
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag[1].decode()}</ETag></Part>"
            for number, tag in sorted(tags.items())
            if tag is not None
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        calls.ask("POST", path, f"uploadId={upload}", body)
        return outcome

    def _mix(self) -> Measure:
        """Run a mix of operations.

        Reads go to keys that stay. A DELETE takes the oldest PUT that is surely answered.
        """
        plan, size = self._plan, self._plan.mix_bytes
        lag = 3 * plan.mix_clients
        read_paths = [f"/{self._bucket}/mix/kept-{number}" for number in range(MIX_READ_KEYS)]
        delete_paths = [f"/{self._bucket}/mix/first-{number}" for number in range(MIX_FIRST_KEYS)]
        with self._client(plan.mix_clients) as client:
            client.run([self._request("PUT", path, size) for path in read_paths + delete_paths], LONG)
            feed = self._mixed(read_paths, delete_paths, self._enough(size), lag)
            return self._timed(Case("MIX", size, plan.mix_clients), client, feed)[0]

    def _mixed(self, read_paths: list[str], delete_paths: list[str], count: int, lag: int) -> Iterator[Request]:
        written: list[tuple[int, str]] = [(-lag, path) for path in delete_paths]
        size = self._plan.mix_bytes
        for number, operation in enumerate(self._random.choices(list(MIX), list(MIX.values()), k=count)):
            if operation == "DELETE" and written and written[0][0] + lag <= number:
                yield self._request("DELETE", written.pop(0)[1])
            elif operation in ("PUT", "DELETE"):
                path = f"/{self._bucket}/mix/new-{number}"
                written.append((number, path))
                yield self._request("PUT", path, size)
            else:
                yield self._request(operation, self._random.choice(read_paths), size)
