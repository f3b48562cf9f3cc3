"""A past with buckets that keep versions."""

from __future__ import annotations

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.schema.tables import ENABLED, SUSPENDED
from sluice_s3.app.index.versioning.rows import ListedVersionEntry
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.store import Store
from tests.unit.jobs.mixed import Past
from tests.unit.store.site import put


async def every_version(store: Store, bucket: Bucket) -> list[ListedVersionEntry]:
    """All versions of a bucket, in the order of listings."""
    return (await store.index.list_versions(bucket.id, "", "", "", "", 1_000_000)).entries


async def content_of(store: Store, bucket: Bucket, entry: ListedVersionEntry) -> bytes:
    """The bytes of a version."""
    version = await store.index.version(bucket.id, entry.key, entry.version_id)
    assert version is not None
    taken = bytearray()
    await reading.feed_bytes(store, version, 0, version.size, taken.extend)
    return bytes(taken)


async def contents(store: Store, bucket: Bucket) -> dict[tuple[str, str, int], bytes]:
    """The bytes of all versions of a bucket, by key, id and state."""
    return {
        (entry.key, entry.version_id, entry.state): await content_of(store, bucket, entry)
        for entry in await every_version(store, bucket)
    }


class VersionedPast(Past):
    """Changes of two buckets; the second comes to keep versions, stops, and goes on."""

    def __init__(self, store: Store, seed: int, keys: int, at_once: int = 8) -> None:
        super().__init__(store, seed, keys, at_once)
        self.kinds |= {self._delete_one: 25, self._switch: 2, self._describe: 4}

    async def end(self) -> None:
        """A version in each state that versions have, which chance alone might not leave."""
        bucket, store = self.buckets[1], self._store
        await store.index.set_versioning(bucket.id, ENABLED)
        await put(store, bucket, "put again", b"older")
        await put(store, bucket, "put again", b"newer")
        await put(store, bucket, "deleted", b"body")
        await objects.delete(store, bucket.id, "deleted", None, None, {})
        await objects.delete(store, bucket.id, "put after it", None, None, {})
        await put(store, bucket, "put after it", b"body")

    async def _delete_one(self, bucket: Bucket, key: str) -> None:
        """A version for good."""
        page = await self._store.index.list_versions(bucket.id, key, "", "", "", 100)
        found = [entry for entry in page.entries if entry.key == key]
        if found:
            await objects.delete(self._store, bucket.id, key, self._random.choice(found).version_id, None, {})

    async def _switch(self, bucket: Bucket, key: str) -> None:
        bucket = self.buckets[1]
        await self._store.index.set_versioning(bucket.id, self._random.choice((ENABLED, ENABLED, SUSPENDED)))

    async def _describe(self, bucket: Bucket, key: str) -> None:
        """Other headers for a version."""
        page = await self._store.index.list_versions(bucket.id, key, "", "", "", 100)
        found = [entry for entry in page.entries if entry.key == key and entry.etag]
        if found:
            entry = self._random.choice(found)
            version = await objects.find(self._store, bucket.id, key, entry.version_id)
            headers = f'{{"x-amz-meta-mark":"{self._random.randrange(1 << 30)}"}}'
            await self._store.index.set_headers(bucket.id, key, version.seq, headers)
