"""What a listing costs the index, counted and not timed; and buckets filled fast."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import apsw

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.sqlite.index import SqliteIndex

TOGETHER = 5000
"""Puts that are queued at a time; the writer commits them in groups."""


@dataclass
class Cost:
    """Statements, and passages through loops, seeks and ends of SQLite's virtual machine (rows looked at, about)."""

    statements: int = 0
    steps: int = 0


@contextmanager
def counting(index: SqliteIndex) -> Iterator[Cost]:
    """Count what the index's reading connection does."""
    cost = Cost()
    connection = index._cursor.connection

    def step() -> bool:
        cost.steps += 1
        return False

    def statement(_: dict[str, object]) -> None:
        cost.statements += 1

    connection.set_progress_handler(step, 1)
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, statement)
    try:
        yield cost
    finally:
        connection.set_progress_handler(None, 0)
        connection.trace_v2(0)


async def fill(index: SqliteIndex, bucket: Bucket, keys: list[str]) -> None:
    """Put empty objects in random order, as they come in life: pages of the index are then split and half full."""
    new = NewVersion(
        size=0,
        etag="d41d8cd98f00b204e9800998ecf8427e",
        headers='{"content-type":"application/octet-stream"}',
        storage_class="STANDARD",
        checksum_algorithm="CRC64NVME",
        checksum_type="FULL_OBJECT",
        checksum="AAAAAAAAAAA=",
        body="",
        parts=0,
        owner_id=bucket.owner_id,
    )
    shuffled = random.Random(len(keys)).sample(keys, len(keys))
    for begin in range(0, len(shuffled), TOGETHER):
        await asyncio.gather(*(index.put_version(bucket.id, key, new) for key in shuffled[begin : begin + TOGETHER]))
