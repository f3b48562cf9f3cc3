"""Where objects lie whose storage class has a store of its own."""

from __future__ import annotations

from app.index import restores
from app.index.rows import PIECES, Bucket, Version
from app.store.place import owner
from app.store.store import Store


def shares(store: Store, bucket: Bucket, version: Version, target: Store) -> bool:
    """Whether what is written to `target` can hold the blobs of a version of a bucket: they lie there.

    Where those of many parts lie, their class says.
    """
    if not store.classes or not version.body:
        return True
    if version.body.startswith(PIECES):
        back = restores.of(version.headers) is not None
        return not back and store.classes.get(version.storage_class, bucket.store) == target.name
    return owner(version.body) == target.name
