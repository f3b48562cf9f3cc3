"""The statements of access logs."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from sluice_s3.app.index.schema.tables import log_rows
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, insertion, number
from sluice_s3.app.index.sql.transaction import Statement

ADD_LINES = insertion(log_rows)
LINES = Statement(
    select(log_rows.c.id, log_rows.c.at, log_rows.c.lines)
    .where(log_rows.c.bucket_id == number("of_bucket"))
    .order_by(log_rows.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_LINES = Statement(delete(log_rows).where(log_rows.c.id == number("written")))
WAITING_BUCKETS = Statement(
    select(
        log_rows.c.bucket_id,
        func.min(log_rows.c.bucket),
        func.min(log_rows.c.at),
    ).group_by(log_rows.c.bucket_id)
)
