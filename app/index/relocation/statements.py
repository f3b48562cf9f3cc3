"""The statements of bucket migrations and transitions, built once at import."""

from __future__ import annotations

from sqlalchemy import func, literal_column, select, update

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import WHOLE
from sluice_s3.app.index.schema.tables import buckets, journals, versions
from sluice_s3.app.index.sql.builder import columns, new_values, number, text
from sluice_s3.app.index.sql.transaction import Statement

MOVE_BUCKET = Statement(
    update(buckets).values(**new_values(buckets, "store", "source", "moved")).where(buckets.c.id == number("bucket"))
)
END_MOVE = Statement(
    update(buckets).values(**new_values(buckets, "source", "moved")).where(buckets.c.id == number("bucket"))
)
MOVING_BUCKETS = Statement(select(*columns(buckets, Bucket._fields)).where(buckets.c.source != literal_column("''")))
LAST_MOVED = Statement(select(func.max(buckets.c.moved)).where(buckets.c.store == text("of_store")))
LAST_MOVED_OF_ALL = Statement(select(func.max(buckets.c.moved)))
LAST_SNAPSHOT = Statement(
    select(func.max(journals.c.id)).where(
        journals.c.store == text("of_store"), journals.c.snapshot == literal_column(str(WHOLE))
    )
)

BUCKET_STATE = Statement(
    select(buckets.c.settings, buckets.c.store, buckets.c.source, buckets.c.moved).where(
        buckets.c.id == number("bucket")
    )
)
SET_STORAGE_CLASS = Statement(
    update(versions)
    .values(**new_values(versions, "seq", "headers", "storage_class", "body"))
    .where(versions.c.seq == number("old"))
)
