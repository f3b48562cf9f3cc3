"""The cells of one target with requests in the shapes of real clients."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Running
from sluice_s3.loadtests.cpu.client import Request
from sluice_s3.loadtests.cpu.measurement import Case, Measure, Meter, Span
from sluice_s3.loadtests.cpu.shape_requests import Body, listed_paths, shaped
from sluice_s3.loadtests.cpu.shapes import SHAPES
from sluice_s3.loadtests.cpu.target_run import LONG, PREFIXES, READ_KEYS, connected, remove_buckets

PREPARED_RATE = 10_000
"""Requests prepared for each second of a cell, which ends early when it needs more."""
BODIES = 256
"""Different bodies of objects, which requests share."""
PARTS = 32
"""Parts of an upload, which replace each other."""


@dataclass(frozen=True)
class ShapePlan:
    """What every target does in every round. Sizes are bytes, times seconds."""

    shapes: tuple[str, ...]
    operations: tuple[str, ...]
    clients: tuple[int, ...]
    object_bytes: int
    part_bytes: int
    seconds: float
    warm_up: float


class ShapeRun:
    """Runs a plan against one target, in a bucket of its own. `bucket` is a new name."""

    def __init__(self, running: Running, plan: ShapePlan, meter: Meter, round_number: int, bucket: str) -> None:
        self._running = running
        self._plan = plan
        self._meter = meter
        self._round = round_number
        self._bucket = bucket
        self._random = random.Random(round_number)
        self._bodies = [Body(os.urandom(plan.object_bytes)) for _ in range(BODIES)]
        self._parts = [Body(os.urandom(plan.part_bytes)) for _ in range(PARTS if "PART" in plan.operations else 0)]

    def run(self, report: Callable[[Measure], None]) -> None:
        """Run every cell and report each measure. Raises S3CallError, Stalled and OSError."""
        plan, calls = self._plan, self._running.calls
        calls.ask("PUT", f"/{self._bucket}")
        if "LIST" in plan.operations:
            calls.ask("PUT", f"/{self._bucket}-list")
            puts = [
                Request(self._running.signer.head("PUT", path, length=3), memoryview(b"abc"))
                for path in listed_paths(f"/{self._bucket}-list")
            ]
            with connected(self._running, 4) as client:
                client.run(puts, LONG)
        for shape, clients in itertools.product(plan.shapes, plan.clients):
            if set(plan.operations) - {"LIST", "PART"}:
                self._objects(shape, clients, report)
            if "LIST" in plan.operations:
                listed = self._request(shape, "LIST", f"/{self._bucket}-list")
                report(self._timed(shape, "LIST", clients, itertools.repeat(listed))[0])
            if "PART" in plan.operations:
                report(self._upload_parts(shape, clients))

    def clean(self) -> None:
        """Delete everything that this turn created: an endpoint outlives the turn."""
        remove_buckets(self._running, (self._bucket, f"{self._bucket}-list"), self._plan.clients[0])

    def _request(
        self, shape: str, operation: str, path: str, body: Body | None = None, part: tuple[int, str] = (0, "")
    ) -> Request:
        tls = self._running.tls is not None
        own = body or self._bodies[0]
        return shaped(self._running.signer, SHAPES[shape], operation, path, own, tls=tls, part=part)

    def _objects(self, shape: str, clients: int, report: Callable[[Measure], None]) -> None:
        """PUT new keys, GET and HEAD them at random, and delete each, unless no PUT succeeds."""
        plan = self._plan
        chosen = [one for one in plan.operations if SHAPES[shape].call(one, tls=self._running.tls is not None)]
        count = int(PREPARED_RATE * (plan.seconds + plan.warm_up)) + clients
        paths = [f"/{self._bucket}/{shape}-{clients}/{number % PREFIXES:x}/{number:07d}" for number in range(count)]
        objects = list(zip(paths, itertools.cycle(self._bodies), strict=False))
        puts = [self._request(shape, "PUT", *one) for one in objects]
        measure, requests = self._timed(shape, "PUT", clients, iter(puts))
        del puts
        if not measure.operations:
            report(measure)  # its errors: some gateways refuse what a client sends
            return
        written = objects[:requests]
        path, body = written[0]
        if self._running.calls.ask("GET", path).body != body.data:
            raise S3CallError(f"GET {path}: not the bytes that were put")
        if "PUT" in chosen:
            report(measure)
        for operation in ("GET", "HEAD"):
            if operation in chosen:
                some = self._random.sample(written, min(READ_KEYS, len(written)))
                reads = itertools.cycle([self._request(shape, operation, *one) for one in some])
                report(self._timed(shape, operation, clients, reads)[0])
        if "DELETE-OBJECTS" in chosen:
            deletes = iter([self._request(shape, "DELETE-OBJECTS", path) for path, _ in written])
            report(self._timed(shape, "DELETE-OBJECTS", clients, deletes, len(written) // 10)[0])

    def _upload_parts(self, shape: str, clients: int) -> Measure:
        """Send parts of one upload, which is aborted at the end."""
        calls, path = self._running.calls, f"/{self._bucket}/{shape}-{clients}-parts"
        found = re.search(rb"<UploadId>([^<]+)</UploadId>", calls.ask("POST", path, "uploads=").body)
        if found is None:
            raise S3CallError(f"POST {path}?uploads: no UploadId")
        upload = found[1].decode()
        parts = [self._request(shape, "PART", path, body, (at, upload)) for at, body in enumerate(self._parts, 1)]
        measure = self._timed(shape, "PART", clients, itertools.cycle(parts), clients)[0]
        calls.ask("DELETE", path, f"uploadId={upload}")
        return measure

    def _timed(
        self, shape: str, operation: str, clients: int, feed: Iterator[Request], warm_up_requests: int | None = None
    ) -> tuple[Measure, int]:
        sizes = {"LIST": 0, "PART": self._plan.part_bytes}
        name = f"{operation} {shape}{'' if self._running.tls is None else ' TLS'}"
        case = Case(name, sizes.get(operation, self._plan.object_bytes), clients)
        span = Span(self._plan.warm_up, self._plan.seconds)
        with connected(self._running, clients) as client:
            target = self._running.target.name
            return self._meter.timed(self._round, target, case, client, feed, span, warm_up_requests)


def parse_shapes(names: list[str]) -> tuple[str, ...]:
    """Return the chosen shapes, all if none is named. Raises ValueError for others."""
    if unknown := [name for name in names if name not in SHAPES]:
        raise ValueError(f"{', '.join(unknown)}: not one of {', '.join(SHAPES)}")
    return tuple(names) or tuple(SHAPES)
