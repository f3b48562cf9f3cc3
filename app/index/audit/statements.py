"""The statements of audit events."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, func, literal_column, select, tuple_

from sluice_s3.app.index.audit.rows import SUCCESS, AuditEvent
from sluice_s3.app.index.schema.tables import audit_events, buckets
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, insertion, number
from sluice_s3.app.index.sql.transaction import Statement

_OUTCOME: ColumnElement[str] = literal_column(f"'{SUCCESS}'")

ADD_EVENT = insertion(audit_events)
EVENTS = Statement(
    select(*columns(audit_events, AuditEvent._fields))
    .where(
        audit_events.c.at >= number("since"),
        tuple_(audit_events.c.at, audit_events.c.id) < tuple_(number("before"), number("before_id")),
    )
    .order_by(audit_events.c.at.desc(), audit_events.c.id.desc())
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OLD_EVENTS = Statement(
    select(audit_events.c.id)
    .where(audit_events.c.at < number("until"))
    .order_by(audit_events.c.at, audit_events.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OLDEST_CHANGES = Statement(
    select(audit_events.c.id)
    .where(audit_events.c.outcome == _OUTCOME)
    .order_by(audit_events.c.at, audit_events.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OLDEST_REFUSALS = Statement(
    select(audit_events.c.id)
    .where(audit_events.c.outcome != _OUTCOME)
    .order_by(audit_events.c.at, audit_events.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
COUNT_CHANGES = Statement(select(func.count()).select_from(audit_events).where(audit_events.c.outcome == _OUTCOME))
COUNT_REFUSALS = Statement(select(func.count()).select_from(audit_events).where(audit_events.c.outcome != _OUTCOME))
REMOVE_EVENT = Statement(delete(audit_events).where(audit_events.c.id == number("old")))
BUCKET_STATE = Statement(
    select(
        buckets.c.name,
        buckets.c.owner_id,
        buckets.c.region,
        buckets.c.store,
        buckets.c.source,
        buckets.c.versioning,
        buckets.c.settings,
    ).where(buckets.c.id == number("bucket"))
)
