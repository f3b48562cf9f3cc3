"""What the operations of one worker share: settings, stores, index, quotas and caches."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable

from sluice_s3.app.access.key_uses import KeyUses
from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.audit import AuditRecorder
from sluice_s3.app.s3.request_rates import RequestRateLimits
from sluice_s3.app.s3.wire import target
from sluice_s3.app.s3.wire.request import MemoryBudget, S3Request
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.etags import MD5
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.quotas import Quotas
from sluice_s3.app.store.regions import Regions
from sluice_s3.app.store.store import Store


class Services:
    """The services of one worker. Every handler of an operation gets them."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        cache: LookupCache,
        memory: MemoryBudget,
        rates: RequestRateLimits | None = None,
    ) -> None:
        self.settings = settings
        self.store = store
        """The default store, which references the others."""
        self.index = store.index
        self.cache = cache
        """Buckets and access keys by name."""
        self.quotas = Quotas(store.index)
        self.audit = AuditRecorder(store.index)
        self.regions = Regions(settings.region)
        self.region = self.regions.default
        self.key_uses = KeyUses(store.index, self.region)
        self.memory = memory
        self.rates = rates
        """None without limits of rates."""
        self.archives = store.archives
        self.plain_file_stores = frozenset(name for name, one in store.all.items() if one.tree is not None)
        self._crc64_etags = any(one.etag_kind != MD5 for one in store.all.values())
        self.next_id = map("%X".__mod__, itertools.count((1 << 63) + secrets.randbits(62))).__next__
        """Returns a new request id."""

    def store_of(self, request: S3Request, storage_class: str = "STANDARD") -> Store:
        """Return the store for a new object of that class in the request's bucket."""
        name = request.bucket_row.store
        if storage_class in self.store.classes and name not in self.plain_file_stores:
            name = request.storage_class_store = self.store.classes[storage_class]
        return self.store.of(name)

    def etag_kind(self, request: S3Request, storage_class: str = "STANDARD") -> str:
        """Return what the ETag of that new object is made of: see `app.store.etags`."""
        return self.store_of(request, storage_class).etag_kind if self._crc64_etags else MD5

    def tree_of(self, bucket: Bucket) -> PlainFiles | None:
        """Return the plain files of a bucket; None for another layout."""
        return self.store.of(bucket.store).tree if bucket.store in self.plain_file_stores else None

    async def bucket(self, name: str) -> Bucket:
        """Return the bucket of that name. Raises InvalidBucketName, NoSuchBucket."""
        return target.require_bucket(name, await self.cache.bucket(name))

    def look_up(self, bucket: Bucket, key: str, version_id: str | None) -> Awaitable[Version | None]:
        """Return the current object of a key, or the version of that id; None if there is none."""
        tree = self.tree_of(bucket) if self.plain_file_stores else None
        if tree is None:
            return self.index.version(bucket.id, key, version_id)
        return tree.find(bucket, key, version_id)

    async def find(self, bucket: Bucket, key: str, version_id: str | None) -> Version:
        """Return the same. Raises NoSuchKey, NoSuchVersion when there is none."""
        return objects.require_version(await self.look_up(bucket, key, version_id), key, version_id)
