"""The statements of messages that are to be sent and of access logs that are to be written."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from app.index.building import LIMIT, NO_OFFSET, insertion, number, text
from app.index.schema import log_rows, outbox
from app.index.steps import Statement

# messages
ADD_MESSAGE = insertion(outbox)
MESSAGES = Statement(
    select(outbox.c.id, outbox.c.bucket_id, outbox.c.key, outbox.c.at, outbox.c.message)
    .where(outbox.c.target == text("to"))
    .order_by(outbox.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_MESSAGE = Statement(delete(outbox).where(outbox.c.id == number("sent")))
BACKLOG = Statement(
    select(outbox.c.target, func.count(), func.min(outbox.c.at)).group_by(outbox.c.target).order_by(outbox.c.target)
)

# access logs
ADD_LINES = insertion(log_rows)
LINES = Statement(
    select(log_rows.c.id, log_rows.c.at, log_rows.c.lines)
    .where(log_rows.c.bucket_id == number("of_bucket"))
    .order_by(log_rows.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_LINES = Statement(delete(log_rows).where(log_rows.c.id == number("written")))
WAITING = Statement(
    select(
        log_rows.c.bucket_id,
        func.min(log_rows.c.bucket),
        func.min(log_rows.c.at),
    ).group_by(log_rows.c.bucket_id)
)
