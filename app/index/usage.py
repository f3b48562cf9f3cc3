"""The usage of buckets and stores, read on a separate connection."""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sluice_s3.app.index import change_feed
from sluice_s3.app.index.sql.dialect import Query, Words
from sluice_s3.app.index.sql.transaction import Transaction

NO_CLASSES: Mapping[str, str] = MappingProxyType({})


# each condition is that of an index; the first of these covers its query
def _usage(words: Words) -> str:
    return f"""
    WITH current(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = {words.number("bucket")} AND state = 1
    ), older(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions
        WHERE bucket_id = {words.number("bucket")} AND state != 1 AND state = 0
    ), parts_of(bytes) AS (
        SELECT coalesce(sum(parts.size), 0) FROM uploads JOIN parts ON parts.upload = uploads.id
        WHERE uploads.bucket_id = {words.number("bucket")} AND uploads.completed_seq = 0
    )
    SELECT current.bytes + older.bytes + parts_of.bytes, current.objects + older.objects FROM current, older, parts_of
    """


def _stored(words: Words) -> str:
    def is_here(storage_class: str, bucket: str) -> str:
        return f"""CASE WHEN {storage_class} IN ({words.texts("classes")})
            AND {bucket} NOT IN (SELECT id FROM buckets WHERE store IN ({words.texts("trees")}))
            THEN {storage_class} IN ({words.texts("here")})
            ELSE {bucket} IN (SELECT id FROM buckets WHERE store = {words.text("store")}) END"""

    return f"""
    SELECT coalesce((SELECT sum(size) FROM versions WHERE {is_here("storage_class", "bucket_id")}), 0)
        + coalesce((SELECT sum(parts.size) FROM uploads JOIN parts ON parts.upload = uploads.id
            WHERE uploads.completed_seq = 0 AND {is_here("uploads.storage_class", "uploads.bucket_id")}), 0)
    """


USAGE = Query(_usage)
STORED = Query(_stored)


class Usage(NamedTuple):
    """The usage of a bucket: all versions of its objects, and parts of open uploads.

    A copy counts like its source.
    """

    bytes: int
    objects: int
    """The number of versions, without delete markers."""


def usage_of_bucket(bucket_id: int) -> Transaction[Usage]:
    """Return the usage of a bucket.

    Reads all of its rows.
    """
    ((size, count),) = yield USAGE.given(bucket=bucket_id)
    return Usage(int(size), int(count))


def stored_of_classes(store: str, classes: Mapping[str, str], trees: Collection[str]) -> Transaction[int]:
    """Return the bytes on a store when storage classes have stores.

    Counts like `app.index.change_feed.stored_bytes`, but data of a class in `classes` counts on the store of that
    class. Data in buckets on the stores `trees` (plain files) counts by its bucket alone.
    """
    here = [name for name, own in classes.items() if own == store]
    given = {"classes": list(classes), "trees": list(trees), "here": here, "store": store}
    ((total,),) = yield STORED.given(**given)
    return int(total)


def stored_bytes(store: str, classes: Mapping[str, str] = NO_CLASSES, trees: Collection[str] = ()) -> Transaction[int]:
    """Return the bytes of a store's buckets, and of its storage classes.

    `classes` are the stores of storage classes by name. Data in buckets on the stores `trees` (plain files) counts by
    its bucket alone. Reads all rows.
    """
    if classes:
        return (yield from stored_of_classes(store, classes, trees))
    return (yield from change_feed.stored_bytes(store))
