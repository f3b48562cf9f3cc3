"""A store with a real index and a real driver in a temporary directory, without a server."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sluice_s3.app.index import open_index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_driver
from sluice_s3.storage_drivers.base import Buffer


class Bytes:
    """A source of given bytes."""

    def __init__(self, body: bytes, refuse: Exception | None = None) -> None:
        self.size: int | None = len(body)
        self._left = body
        self._refuse = refuse
        self._md5 = hashlib.md5()

    async def read(self) -> Buffer:
        """Everything at once."""
        body, self._left = self._left, b""
        return body

    def digest(self, piece: Buffer) -> None:
        """MD5."""
        self._md5.update(piece)

    def verify(self) -> None:
        """Refuse, if told to."""
        if self._refuse is not None:
            raise self._refuse

    def describe(self, locator: str) -> NewVersion:
        """The version that this body makes."""
        size = self.size or 0
        return NewVersion(size, self._md5.hexdigest(), "{}", "STANDARD", "", "", "", locator, 0, "owner")


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    """A store that was prepared before, with a writer of its own."""
    index = open_index(settings)
    await index.start()
    driver = make_driver(settings)
    await driver.start()
    try:
        yield Store(index, driver)
    finally:
        await driver.close()
        await index.close()


async def put(store: Store, bucket: Bucket, key: str, body: bytes) -> CommitResult:
    """PutObject."""
    source = Bytes(body)
    return await objects.put(store, bucket.id, key, source, source.describe, None, {})


def files(settings: Settings) -> list[str]:
    """Names of all blob files."""
    return sorted(path.name for path in (settings.data / "data").glob("*/*"))


__all__ = ["Bytes", "files", "opened", "prepare", "put"]
