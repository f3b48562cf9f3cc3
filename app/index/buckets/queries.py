"""Long reads of buckets: those with settings, and what each bucket or store uses."""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction

NO_CLASSES: Mapping[str, str] = MappingProxyType({})


def _render_bucket(dialect: SqlDialect) -> str:
    return f"SELECT {', '.join(Bucket._fields)} FROM buckets WHERE id = {dialect.number('bucket')}"


# each condition is that of an index; the first of these covers its query
def _render_usage(dialect: SqlDialect) -> str:
    return f"""
    WITH current(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = {dialect.number("bucket")} AND state = 1
    ), older(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions
        WHERE bucket_id = {dialect.number("bucket")} AND state != 1 AND state = 0
    ), parts_of(bytes) AS (
        SELECT coalesce(sum(parts.size), 0) FROM uploads JOIN parts ON parts.upload = uploads.id
        WHERE uploads.bucket_id = {dialect.number("bucket")} AND uploads.completed_seq = 0
    )
    SELECT current.bytes + older.bytes + parts_of.bytes, current.objects + older.objects FROM current, older, parts_of
    """


def _render_totals(dialect: SqlDialect) -> str:
    bucket = dialect.number("bucket")
    return f"""
    WITH current(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = {bucket} AND state = 1
    ), older(bytes, versions, markers) AS (
        SELECT coalesce(sum(CASE WHEN state = 0 THEN size ELSE 0 END), 0),
            coalesce(sum(CASE WHEN state = 0 THEN 1 ELSE 0 END), 0),
            coalesce(sum(CASE WHEN state = 0 THEN 0 ELSE 1 END), 0)
        FROM versions WHERE bucket_id = {bucket} AND state != 1
    ), open_uploads(uploads) AS (
        SELECT count(*) FROM uploads WHERE bucket_id = {bucket} AND completed_seq = 0
    ), parts_of(bytes) AS (
        SELECT coalesce(sum(parts.size), 0) FROM uploads JOIN parts ON parts.upload = uploads.id
        WHERE uploads.bucket_id = {bucket} AND uploads.completed_seq = 0
    )
    SELECT current.objects, current.bytes, older.versions, older.bytes, older.markers, open_uploads.uploads,
        parts_of.bytes
    FROM current, older, open_uploads, parts_of
    """


def _render_stored(dialect: SqlDialect) -> str:
    return f"""
    WITH mine(id) AS MATERIALIZED (SELECT id FROM buckets WHERE store = {dialect.text("store")})
    SELECT coalesce((SELECT sum(size) FROM versions WHERE bucket_id IN (SELECT id FROM mine)), 0)
        + coalesce((SELECT sum(parts.size) FROM uploads JOIN parts ON parts.upload = uploads.id
            WHERE uploads.completed_seq = 0 AND uploads.bucket_id IN (SELECT id FROM mine)), 0)
    """


def _render_stored_with_classes(dialect: SqlDialect) -> str:
    def is_here(storage_class: str, bucket: str) -> str:
        return f"""CASE WHEN {storage_class} IN ({dialect.texts("classes")})
            AND {bucket} NOT IN (SELECT id FROM buckets WHERE store IN ({dialect.texts("trees")}))
            THEN {storage_class} IN ({dialect.texts("here")})
            ELSE {bucket} IN (SELECT id FROM buckets WHERE store = {dialect.text("store")}) END"""

    return f"""
    SELECT coalesce((SELECT sum(size) FROM versions WHERE {is_here("storage_class", "bucket_id")}), 0)
        + coalesce((SELECT sum(parts.size) FROM uploads JOIN parts ON parts.upload = uploads.id
            WHERE uploads.completed_seq = 0 AND {is_here("uploads.storage_class", "uploads.bucket_id")}), 0)
    """


BUCKET = Query(_render_bucket)
BUCKETS = Query(f"SELECT {', '.join(Bucket._fields)} FROM buckets WHERE settings != '' ORDER BY id")
USAGE = Query(_render_usage)
TOTALS = Query(_render_totals)
STORED = Query(_render_stored)
STORED_WITH_CLASSES = Query(_render_stored_with_classes)


class Usage(NamedTuple):
    """The usage of a bucket: all versions of its objects, and parts of open uploads.

    A copy counts like its source.
    """

    bytes: int
    objects: int
    """The number of versions, without delete markers."""


class Totals(NamedTuple):
    """The contents of a bucket by kind. Sizes are bytes; a copy counts like its source."""

    objects: int
    """Current objects."""
    object_bytes: int
    older_versions: int
    """Noncurrent versions, without delete markers."""
    older_bytes: int
    delete_markers: int
    """Current and noncurrent ones."""
    uploads: int
    """Open multipart uploads."""
    upload_bytes: int

    @property
    def bytes(self) -> int:
        """Everything together, as quotas count it."""
        return self.object_bytes + self.older_bytes + self.upload_bytes


def bucket(bucket_id: int) -> Transaction[Bucket | None]:
    """Return the bucket of that number, or None."""
    rows = yield BUCKET.bind(bucket=bucket_id)
    return Bucket._make(rows[0]) if rows else None


def configured_buckets(mark: str) -> Transaction[list[Bucket]]:
    """Return the buckets whose settings contain `mark`.

    Reads all buckets with settings.
    """
    buckets = [Bucket._make(row) for row in (yield BUCKETS.bind())]
    return [bucket for bucket in buckets if mark in bucket.settings]


def usage_of_bucket(bucket_id: int) -> Transaction[Usage]:
    """Return the usage of a bucket.

    Reads all of its rows.
    """
    ((size, count),) = yield USAGE.bind(bucket=bucket_id)
    return Usage(int(size), int(count))


def totals_of_bucket(bucket_id: int) -> Transaction[Totals]:
    """Return the contents of a bucket by kind.

    Reads all of its rows.
    """
    (row,) = yield TOTALS.bind(bucket=bucket_id)
    return Totals(*map(int, row))


def stored_in_buckets(store: str) -> Transaction[int]:
    """Return the bytes of objects and open parts in a store's buckets.

    A copy counts like its source.
    """
    ((total,),) = yield STORED.bind(store=store)
    return int(total)


def stored_with_classes(store: str, classes: Mapping[str, str], trees: Collection[str]) -> Transaction[int]:
    """Return the bytes on a store when storage classes have stores.

    Counts like `stored_in_buckets`, but data of a class in `classes` counts on the store of that class. Data in buckets
    on the stores `trees` (plain files) counts by its bucket alone.
    """
    own_classes = [name for name, store_of_class in classes.items() if store_of_class == store]
    values = {"classes": list(classes), "trees": list(trees), "here": own_classes, "store": store}
    ((total,),) = yield STORED_WITH_CLASSES.bind(**values)
    return int(total)


def stored_bytes(store: str, classes: Mapping[str, str] = NO_CLASSES, trees: Collection[str] = ()) -> Transaction[int]:
    """Return the bytes of a store's buckets, and of its storage classes.

    `classes` are the stores of storage classes by name. Data in buckets on the stores `trees` (plain files) counts by
    its bucket alone. Reads all rows.
    """
    if classes:
        return (yield from stored_with_classes(store, classes, trees))
    return (yield from stored_in_buckets(store))
