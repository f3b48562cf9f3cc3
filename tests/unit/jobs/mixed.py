"""A store with a past: races, refusals, deletes, overwrites, copies, multipart uploads, buckets that came and went."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Extent, Part
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import multipart, objects
from sluice_s3.app.store.store import Store
from tests.unit.store.site import Bytes, opened, put

THRESHOLD = 20_000
"""What packs take in these tests, so that files of their own need not be large."""
LARGE = THRESHOLD + 1000


@asynccontextmanager
async def writing(settings: Settings) -> AsyncIterator[Store]:
    """A store that writes packs, closed as a worker closes it."""
    async with opened(settings) as store:
        store.open_packs()
        try:
            yield store
        finally:
            await store.close_packs()
            await store.ids.close()


class Past:
    """Random changes of a store; `at_once` of them run together, on keys that they share."""

    def __init__(self, store: Store, seed: int, keys: int, at_once: int = 8) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._keys = [f"dir{number % 7}/kéy {number}" for number in range(keys)]
        self._at_once = at_once
        self.buckets: list[Bucket] = []
        self.done: dict[str, int] = {}
        """How often each kind of change succeeded, and how often it was refused."""
        self.kinds: dict[Callable[[Bucket, str], Awaitable[None]], int] = {
            self._put: 40,
            self._put_large: 4,
            self._create: 14,
            self._broken: 3,
            self._delete: 12,
            self._copy: 14,
            self._upload: 4,
            self._empty: 3,
            self._tag: 6,
        }
        """Changes, and how often each is made."""

    async def begin(self) -> None:
        """Two buckets, one of them the second of its name."""
        index = self._store.index
        gone = await index.create_bucket("twice", "owner", "us-east-1", 10)
        await put(self._store, gone, "gone", b"of the first bucket")
        await objects.delete(self._store, gone.id, "gone", None, None, {})
        await index.delete_bucket(gone.id)
        self.buckets = [
            await index.create_bucket("twice", "owner", "us-east-1", 10),
            await index.create_bucket("once", "owner", "us-east-1", 10),
        ]

    async def run(self, changes: int) -> None:
        """Make that many changes."""
        for _ in range(0, changes, self._at_once):
            await asyncio.gather(*(self._change() for _ in range(self._at_once)))

    async def _change(self) -> None:
        change = self._random.choices(list(self.kinds), list(self.kinds.values()))[0]
        bucket, key = self._random.choice(self.buckets), self._random.choice(self._keys)
        name = change.__name__
        try:
            await change(bucket, key)
        except (DomainError, Broken):
            name += " refused"
        self.done[name] = self.done.get(name, 0) + 1

    def _body(self, size: int) -> bytes:
        return self._random.randbytes(size)

    async def _put(self, bucket: Bucket, key: str) -> None:
        await put(self._store, bucket, key, self._body(self._random.randrange(1, 3000)))

    async def _put_large(self, bucket: Bucket, key: str) -> None:
        await put(self._store, bucket, key, self._body(LARGE + self._random.randrange(5)))

    async def _empty(self, bucket: Bucket, key: str) -> None:
        await put(self._store, bucket, key, b"")

    async def _tag(self, bucket: Bucket, key: str) -> None:
        found = await objects.find(self._store, bucket.id, key)
        headers = f'{{"tags":{{"mark":"{self._random.randrange(1 << 30)}"}}}}'
        await self._store.index.set_headers(bucket.id, key, found.seq, headers)

    async def _create(self, bucket: Bucket, key: str) -> None:
        source = Bytes(self._body(self._random.choice((100, LARGE))))
        conditions = Conditions(if_none_match=True)
        await objects.put(self._store, bucket.id, key, source, source.describe, conditions, {})

    async def _broken(self, bucket: Bucket, key: str) -> None:
        source = Bytes(self._body(500), refuse=Broken())
        await objects.put(self._store, bucket.id, key, source, source.describe, None, {})

    async def _delete(self, bucket: Bucket, key: str) -> None:
        await objects.delete(self._store, bucket.id, key, None, None, {})

    async def _copy(self, bucket: Bucket, key: str) -> None:
        source_key = self._random.choice(self._keys)
        mark = self._random.randrange(1 << 30)

        async def source() -> Version:
            return await objects.find(self._store, bucket.id, source_key)

        async def describe(found: Version) -> NewVersion:
            fields = found._asdict()
            new = NewVersion(**{name: fields[name] for name in NewVersion._fields})
            return new._replace(headers=f'{{"x-amz-meta-copy":"{mark}"}}')

        await objects.copy(self._store, source, bucket.id, key, describe, None, {})

    async def _upload(self, bucket: Bucket, key: str) -> None:
        index = self._store.index
        upload = await index.create_upload(bucket.id, key, "{}", "STANDARD", "", "", "owner")
        size = 0
        for number in (1, 2, 5):
            # parts of any size: their least size is a matter of `choose`
            body = self._body(self._random.choice((50, LARGE)))
            source = Bytes(body)

            def describe(held: tuple[Extent, ...], number: int = number, source: Bytes = source) -> Part:
                return Part(number, source.size or 0, source.describe("").etag, 0, "CRC32", f"sum{number}", held)

            await multipart.put_part(self._store, upload, source, describe, {})
            size += len(body)
        chosen = await index.parts(upload, 0, 10)
        if self._random.random() < 0.2:
            await index.abort_upload(upload)
            return
        if self._random.random() < 0.2:
            size -= chosen.pop(1).size
        etag = hashlib.md5(str(upload.id).encode()).hexdigest() + f"-{len(chosen)}"
        new = NewVersion(size, etag, "{}", "STANDARD", "", "", "", "", len(chosen), "owner")
        await multipart.complete(self._store, upload, chosen, new, None, {})


class Broken(Exception):
    """A body that breaks off."""


COMPARED = {
    "buckets": "SELECT * FROM buckets ORDER BY id",
    "accounts": "SELECT * FROM accounts ORDER BY id",
    "access_keys": "SELECT * FROM access_keys ORDER BY access_key",
    "versions": "SELECT * FROM versions ORDER BY seq",
    "pieces": "SELECT * FROM pieces WHERE upload IN (SELECT CAST(substr(body, 8) AS INTEGER) FROM versions "
    "WHERE body LIKE 'pieces:%') ORDER BY upload, start, part_number",
    "uploads": "SELECT * FROM uploads WHERE id IN (SELECT CAST(substr(body, 8) AS INTEGER) FROM versions "
    "WHERE body LIKE 'pieces:%') ORDER BY id",
    "shared": "SELECT * FROM shared ORDER BY body",
    "packs": "SELECT id, size FROM packs ORDER BY id",
}


def tables(index: Path) -> dict[str, list[Any]]:
    """What an index says, as far as it can be made anew."""
    connection = open_connection(index)
    found = {name: connection.execute(query).fetchall() for name, query in COMPARED.items()}
    connection.close()
    # what an aborted upload or a replaced object left to the collector of garbage is held by nobody in a new index
    live = {row[13] for row in found["versions"]} | {row[4] for row in found["pieces"]}
    found["shared"] = [row for row in found["shared"] if row[0] in live]
    return found
