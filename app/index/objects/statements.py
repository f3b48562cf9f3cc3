"""The statements of objects, built once at import.

Parameters are positional, in the order in which the SQL names them. `state = 1` and the like are literals, because a
partial index is used only for a literal.
"""

from __future__ import annotations

from sqlalchemy import and_, delete, literal_column, select, update

from sluice_s3.app.index.objects.rows import ListedVersion, Version
from sluice_s3.app.index.schema.tables import blob_refcounts, buckets, meta, versions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, insertion, new_values, number, text
from sluice_s3.app.index.sql.transaction import Statement

IS_CURRENT = versions.c.state == literal_column("1")
VERSION = Statement(
    select(*columns(versions, Version._fields)).where(
        versions.c.bucket_id == number("bucket"), versions.c.key == text("name"), IS_CURRENT
    )
)
_WITH_CURRENT = buckets.outerjoin(
    versions, and_(versions.c.bucket_id == buckets.c.id, versions.c.key == text("name"), IS_CURRENT)
)
CURRENT_FOR_DELETE = Statement(
    select(
        *columns(versions, ("seq", "version_id", "etag", "size", "modified", "body")),
        buckets.c.versioning,
        select(blob_refcounts.c.holders).where(blob_refcounts.c.body == versions.c.body).scalar_subquery(),
    )
    .select_from(_WITH_CURRENT)
    .where(buckets.c.id == number("bucket"))
)
"""The columns that a delete reads of an object and of its bucket. The last column is NULL for a body with one
reference. There is no row when the bucket does not exist."""
CURRENT_FOR_WRITE = Statement(
    select(*columns(versions, ("seq", "etag", "size", "modified", "body")), buckets.c.id, buckets.c.versioning)
    .select_from(_WITH_CURRENT)
    .where(buckets.c.id == number("bucket"))
)
"""The columns that a write reads of the current object of a key, and of the bucket. There is no row when the bucket
does not exist."""
ADD_VERSION = insertion(versions)
REPLACE_VERSION = Statement(
    update(versions)
    .values(
        **new_values(versions, "seq", "modified", "size", "etag", "headers", "storage_class"),
        **new_values(versions, "checksum_algorithm", "checksum_type", "checksum", "body", "parts", "owner_id"),
    )
    .where(versions.c.seq == number("old"))
)
SET_HEADERS = Statement(
    update(versions)
    .values(**new_values(versions, "seq", "headers"))
    .where(versions.c.seq == number("old"), versions.c.bucket_id == number("bucket"))
)
VERSION_HEADERS = Statement(select(versions.c.headers).where(versions.c.seq == number("old")))
REMOVE_VERSION = Statement(delete(versions).where(versions.c.seq == number("old")))


def _list_current(*more: str) -> Statement:
    return Statement(
        select(*columns(versions, ListedVersion._fields + more))
        .where(
            versions.c.bucket_id == number("bucket"),
            IS_CURRENT,
            versions.c.key >= text("first"),
            versions.c.key < text("end"),
        )
        .order_by(versions.c.key)
        .limit(LIMIT)
        .offset(NO_OFFSET)
    )


LIST_CURRENT = _list_current()
LIST_CURRENT_WITH_HEADERS = _list_current("headers")
RENAME_VERSION = Statement(
    update(versions).values(**new_values(versions, "seq", "key", "modified")).where(versions.c.seq == number("old"))
)
REMOVE_RENAME_TOKENS = Statement(
    delete(meta).where(
        meta.c.name >= literal_column("'rename:'"),
        meta.c.name < literal_column("'rename;'"),
        meta.c.value < text("until"),
    )
)
"""The values of these notes begin with a time."""
