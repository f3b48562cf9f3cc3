"""The statements of the outbox."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from sluice_s3.app.index.schema.tables import outbox
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, insertion, number, text
from sluice_s3.app.index.sql.transaction import Statement

ADD_MESSAGE = insertion(outbox)
MESSAGES = Statement(
    select(outbox.c.id, outbox.c.bucket_id, outbox.c.key, outbox.c.at, outbox.c.message)
    .where(outbox.c.target == text("to"), outbox.c.id > number("behind"))
    .order_by(outbox.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_MESSAGE = Statement(delete(outbox).where(outbox.c.id == number("sent")))
BACKLOG = Statement(
    select(outbox.c.target, func.count(), func.min(outbox.c.at)).group_by(outbox.c.target).order_by(outbox.c.target)
)
