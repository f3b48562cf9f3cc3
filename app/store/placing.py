"""Placement of objects whose storage class has a store of its own."""

from __future__ import annotations

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store


def can_share_blobs(store: Store, bucket: Bucket, version: Version, target: Store) -> bool:
    """Return whether a version in `target` can reference the blobs of `version`.

    It can if they lie on that store. The storage class determines the store for the blobs of a version of many parts.
    """
    if not store.classes or not version.body:
        return True
    if version.body.startswith(PIECES):
        back = restore_state.restore_state(version.headers) is not None
        return not back and store.classes.get(version.storage_class, bucket.store) == target.name
    return store_of_locator(version.body) == target.name
