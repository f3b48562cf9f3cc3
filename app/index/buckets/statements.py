"""The statements of buckets, built once at import."""

from __future__ import annotations

from sqlalchemy import delete, func, literal_column, select, update

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.statements import IS_CURRENT
from sluice_s3.app.index.schema.tables import buckets, versions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, insertion, new_values, number, text
from sluice_s3.app.index.sql.transaction import Statement

BUCKET = Statement(select(*columns(buckets, Bucket._fields)).where(buckets.c.name == text("bucket_name")))
BUCKET_ID = Statement(select(buckets.c.id).where(buckets.c.id == number("bucket")))
BUCKETS = Statement(
    select(*columns(buckets, Bucket._fields))
    .where(
        buckets.c.owner_id == text("owner"),
        buckets.c.name >= text("first"),
        buckets.c.name < text("end"),
    )
    .order_by(buckets.c.name)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
COUNT_BUCKETS = Statement(select(func.count()).select_from(buckets).where(buckets.c.owner_id == text("owner")))
STORES_IN_USE = Statement(
    select(buckets.c.store, buckets.c.source, func.count()).group_by(buckets.c.store, buckets.c.source)
)
ADD_BUCKET = insertion(buckets)
SETTINGS = Statement(select(buckets.c.settings).where(buckets.c.id == number("bucket")))
SET_SETTINGS = Statement(
    update(buckets).values(**new_values(buckets, "settings")).where(buckets.c.id == number("bucket"))
)
REMOVE_BUCKET = Statement(delete(buckets).where(buckets.c.id == number("bucket")))
ANY_CURRENT = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == number("bucket"), IS_CURRENT)
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
ANY_OTHER = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == number("bucket"), versions.c.state != literal_column("1"))
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
