"""Puts many small objects into a store without a server.

It bypasses HTTP and uses the same interface as the gateway.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path

from rich.console import Console

from sluice_s3.app.index import open_index
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_driver
from sluice_s3.storage_drivers.base import Buffer

TASKS = 64
OBJECTS_PER_REPORT = 500_000
SPREAD = 7_919_777


class Bytes:
    """A `BodySource` of one piece, hashed as the gateway hashes a body."""

    def __init__(self, body: bytes) -> None:
        self.size = len(body)
        self.etag = ""
        self._body = body

    async def read(self) -> Buffer:
        """Return the whole body."""
        return self._body

    def digest(self, piece: Buffer) -> None:
        """Return its ETag."""
        self.etag = hashlib.md5(piece, usedforsecurity=False).hexdigest()

    def verify(self) -> None:
        """Do nothing: no digest was promised."""


async def fill(data: Path, durability: str, bucket: str, first: int, end: int, size: int, console: Console) -> None:
    """Put objects number `first` to `end` - 1, with keys in random order."""
    settings = Settings(data=data, durability=durability)  # type: ignore[arg-type]
    index = open_index(settings)
    await index.start()
    driver = make_driver(settings)
    await driver.start()
    store = Store(index, driver)
    store.open_packs()
    try:
        row = await index.bucket(bucket)
        assert row is not None
        numbers = iter(range(first, end))
        reported_at = time.perf_counter()

        async def put_some() -> None:
            nonlocal reported_at
            for number in numbers:
                source = Bytes(number.to_bytes(8, "big") + os.urandom(size - 8))

                def describe(body: str, source: Bytes = source) -> NewVersion:
                    return NewVersion(
                        size=source.size,
                        etag=source.etag,
                        headers='{"content-type":"binary/octet-stream"}',
                        storage_class="STANDARD",
                        checksum_algorithm="",
                        checksum_type="",
                        checksum="",
                        body=body,
                        parts=0,
                        owner_id=row.owner_id,
                    )

                key = f"many/{number * SPREAD % 10**10:010d}"
                await objects.put(store, row.id, key, source, describe, None, {})
                if number and number % OBJECTS_PER_REPORT == 0:
                    now = time.perf_counter()
                    console.print(
                        f"{number:,} objects, {OBJECTS_PER_REPORT / (now - reported_at):,.0f}/s", highlight=False
                    )
                    reported_at = now

        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(put_some())
    finally:
        await store.close_packs()
        await store.ids.close()
        await index.close()
        await driver.close()
