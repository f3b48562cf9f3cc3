"""A store whose small bodies lie in small packs, and looks at what becomes of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Extent, Part, Upload
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import multipart, objects, reading
from sluice_s3.app.store.store import Store
from tests.unit.store.site import Bytes, opened, put

PACK = 1 << 20
BODY = 18_000


@asynccontextmanager
async def packed(settings: Settings, *, holes: bool = False) -> AsyncIterator[Store]:
    """An opened store that writes packs. Without holes, since packs that were punched are not worth compaction."""
    async with opened(settings) as store:
        if not holes:
            store.driver._packs.page = 0  # type: ignore[attr-defined]
        store.open_packs()
        try:
            yield store
        finally:
            await store.close_packs()


def body(key: str, size: int = BODY) -> bytes:
    """Bytes that only this key has."""
    return (key.encode() + b"/") * (size // (len(key) + 1) + 1)


async def fill(store: Store, bucket: Bucket, keys: range, name: str = "k") -> dict[str, bytes]:
    """Objects of `BODY` bytes or a bit more; returns what was put."""
    put_now = {}
    for number in keys:
        key = f"{name}{number:04}"
        await put(store, bucket, key, body(key))
        put_now[key] = body(key)
    return put_now


async def content(store: Store, bucket: Bucket, key: str) -> bytes:
    """The bytes of an object."""
    version = await objects.find(store, bucket.id, key)
    taken = bytearray()
    await reading.feed_bytes(store, version, 0, version.size, taken.extend)
    return bytes(taken)


async def collect(store: Store) -> int:
    """Take away what is in the discard queue, at once."""
    return await GarbageCollector(store, lambda: 2, lambda: 1, 0).run_once()


async def packs_of(store: Store) -> dict[int, Pack]:
    """Rows of all packs."""
    return {pack.id: pack for pack in await store.index.packs()}


async def delete(store: Store, bucket: Bucket, *keys: str) -> None:
    """DeleteObject of each."""
    for key in keys:
        await objects.delete(store, bucket.id, key, None, None, {})


def files(settings: Settings) -> list[Path]:
    """The files of packs."""
    return sorted((settings.data / "data").glob("*/*.pack"))


def allocated(settings: Settings) -> int:
    """Bytes that packs take up."""
    return sum(os.stat(path).st_blocks * 512 for path in files(settings))


class Counts:
    """What a compactor counted."""

    def __init__(self) -> None:
        self.moved = 0
        self.freed = 0

    def __call__(self, moved: int, freed: int) -> None:
        self.moved += moved
        self.freed += freed


async def compact(store: Store, counts: Counts | None = None, rounds: int = 6, rate: int = 1 << 30) -> None:
    """Compaction and garbage in turn, as the elected worker runs them; time passes between the rounds."""
    clock = [1000.0]
    compactor = Compactor(store, rate, 0, counts or Counts(), lambda: clock[0])
    for _ in range(rounds):
        clock[0] += 10_000
        await compactor.run_once()
        await collect(store)


async def start_upload(store: Store, bucket: Bucket, key: str) -> Upload:
    """CreateMultipartUpload."""
    return await store.index.create_upload(bucket.id, key, "{}", "STANDARD", "", "", "owner")


async def put_part(store: Store, upload: Upload, number: int, content: bytes) -> Part:
    """UploadPart."""
    source = Bytes(content)

    def describe(extents: tuple[Extent, ...]) -> Part:
        return Part(number, len(content), f"etag{number}", 0, "", "", extents)

    await multipart.put_part(store, upload, source, describe, {})
    return next(part for part in await store.index.parts(upload, 0, 10_000) if part.number == number)


async def copy(store: Store, bucket: Bucket, source: str, key: str) -> None:
    """CopyObject."""

    async def find() -> object:
        return await objects.find(store, bucket.id, source)

    async def describe(found: object) -> object:
        return Bytes(b"").describe(found.body)._replace(size=found.size, etag=found.etag)  # type: ignore[attr-defined]

    await objects.copy(store, find, bucket.id, key, describe, None, {})  # type: ignore[arg-type]


async def copy_part(store: Store, bucket: Bucket, source: str, upload: Upload, number: int) -> None:
    """UploadPartCopy of a whole object."""

    async def find() -> object:
        return await objects.find(store, bucket.id, source)

    async def describe(found: object) -> tuple[Part, int, int]:
        size: int = found.size  # type: ignore[attr-defined]
        return Part(number, size, f"etag{number}", 0, "", "", ()), 0, size

    await multipart.copy_part(store, find, upload, describe, {})  # type: ignore[arg-type]


async def complete(store: Store, bucket: Bucket, upload: Upload) -> None:
    """CompleteMultipartUpload of all parts."""
    parts = await store.index.parts(upload, 0, 10_000)
    new = Bytes(b"").describe("")._replace(size=sum(part.size for part in parts), parts=len(parts))
    await multipart.complete(store, upload, parts, new, None, {})
