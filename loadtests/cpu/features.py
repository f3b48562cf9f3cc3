"""What a bucket's features cost an operation.

Buckets of one gateway get the same requests in turns.
"""

from __future__ import annotations

import base64
import json
import os
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from sluice_s3.loadtests.common.s3_calls import Calls, S3CallError
from sluice_s3.loadtests.common.targets import Keys, Running, parse_target
from sluice_s3.loadtests.cpu.client import Client, Request
from sluice_s3.loadtests.cpu.measurement import measure_cost

OPERATIONS = ("PUT", "STAT", "GET", "DELETE")
CLIENTS = 16
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::BUCKET/for-all/*",
            "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        },
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": ["arn:aws:s3:::BUCKET", "arn:aws:s3:::BUCKET/*"],
            "Condition": {"NotIpAddress": {"aws:SourceIp": ["127.0.0.0/8", "10.0.0.0/8"]}},
        },
    ],
}


def _versioned(calls: Calls, bucket: str) -> None:
    document = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    calls.ask("PUT", f"/{bucket}", "versioning=", document)


def _with_policy(calls: Calls, bucket: str) -> None:
    calls.ask("PUT", f"/{bucket}", "policy=", json.dumps(POLICY).replace("BUCKET", bucket).encode())


def _encrypted(calls: Calls, bucket: str) -> None:
    by_default = "<ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>"
    rule = f"<Rule>{by_default}</ApplyServerSideEncryptionByDefault></Rule>"
    document = f"<ServerSideEncryptionConfiguration>{rule}</ServerSideEncryptionConfiguration>"
    calls.ask("PUT", f"/{bucket}", "encryption=", document.encode())


FEATURES: dict[str, Callable[[Calls, str], None]] = {
    "plain": lambda _calls, _bucket: None,
    "versioned": _versioned,
    "policy": _with_policy,
    "sse-s3": _encrypted,
}
"""The names of buckets, and what each has that the first has not."""


class Cost(NamedTuple):
    """The cost of one operation: CPU microseconds and thousand instructions of the server's processes."""

    cpu_us: float
    kinstructions: float | None


def measure(parent: Path, keys: Keys, core: int | None, count: int, size: int, rounds: int) -> dict[str, list[Cost]]:
    """Measure costs by `FEATURE OPERATION`, one for each round.

    `size` is bytes of an object, `count` objects of a bucket in a round. Raises S3CallError.
    """
    target = parse_target("sluice", "relaxed", {})
    master = base64.b64encode(os.urandom(32)).decode()
    target = replace(target, command=f"env SLUICE_MASTER_KEY={master} {target.command}")
    found: dict[str, list[Cost]] = {}
    with Running(target, keys, parent, core) as running:
        for name, prepare in FEATURES.items():
            running.calls.ask("PUT", f"/{name}")
            prepare(running.calls, name)
        for number in range(-1, rounds):  # the first round warms up
            names = list(FEATURES) if number % 2 else list(reversed(FEATURES))
            for operation in OPERATIONS:
                for name in names:
                    cost = _measure_requests(running, operation, name, number, count, size)
                    if number >= 0:
                        found.setdefault(f"{name} {operation}", []).append(cost)
    return found


def _measure_requests(running: Running, operation: str, bucket: str, number: int, count: int, size: int) -> Cost:
    body = memoryview(os.urandom(size))
    method = {"STAT": "HEAD"}.get(operation, operation)
    requests = []
    for one in range(count):
        path = f"/{bucket}/round{number}/{one * 7_919 % count:08d}"
        if operation == "PUT":
            requests.append(Request(running.signer.head(method, path, length=size), body))
        else:
            requests.append(Request(running.signer.head(method, path), bodiless=operation == "STAT"))
    assert running.pid is not None
    client = Client(running.address, CLIENTS)
    try:
        spent = measure_cost(running.pid, client, iter(requests), 600.0, f"{operation} in {bucket}")
    finally:
        client.close()
    if (answered := len(spent.outcome.latencies)) != count:
        raise S3CallError(f"{operation} in {bucket}: {answered} of {count} answered")
    return Cost(spent.cpu_us, spent.kinstructions)


def table(found: dict[str, list[Cost]]) -> Table:
    """Render the medians, and how much each differs from a plain bucket's."""
    rendered = Table(title="one operation: CPU µs (thousand instructions), and what it has over a plain bucket's")
    rendered.add_column("")
    for name in FEATURES:
        rendered.add_column(name, justify="right")
    for operation in OPERATIONS:
        plain, *others = (_median(found[f"{name} {operation}"]) for name in FEATURES)
        cells = [_render_cost(plain)]
        for other in others:
            counted = plain.kinstructions is not None and other.kinstructions is not None
            more = (other.kinstructions or 0) - (plain.kinstructions or 0) if counted else None
            over = f"{other.cpu_us - plain.cpu_us:+.0f} µs" + ("" if more is None else f", {more:+.0f} k")
            cells.append(f"{_render_cost(other)}: {over}")
        rendered.add_row(operation, *cells)
    return rendered


def _median(costs: list[Cost]) -> Cost:
    counted = [cost.kinstructions for cost in costs if cost.kinstructions is not None]
    return Cost(statistics.median(cost.cpu_us for cost in costs), statistics.median(counted) if counted else None)


def _render_cost(cost: Cost) -> str:
    return f"{cost.cpu_us:.0f}" + ("" if cost.kinstructions is None else f" ({cost.kinstructions:.0f})")
