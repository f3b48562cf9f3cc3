"""The statements of writers, heartbeats and leases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, literal_column, or_, select, update
from sqlalchemy.dialects import sqlite

from sluice_s3.app.index.schema.tables import heartbeats, id_ranges, leases, meta, writers
from sluice_s3.app.index.sql.builder import excluded, insertion, new_values, number, postgres_insert, text
from sluice_s3.app.index.sql.transaction import Statement

ADD_WRITER = insertion(writers)
WRITERS = Statement(select(writers.c.incarnation, writers.c.state, writers.c.lock_name).order_by(writers.c.incarnation))
WRITER = Statement(select(writers.c.state, writers.c.lock_name).where(writers.c.incarnation == number("who")))
SET_WRITER = Statement(
    update(writers).values(**new_values(writers, "state")).where(writers.c.incarnation == number("who"))
)
REMOVE_WRITER = Statement(delete(writers).where(writers.c.incarnation == number("who")))
ADD_RANGE = insertion(id_ranges)
REMOVE_RANGE = Statement(delete(id_ranges).where(id_ranges.c.first == number("lowest")))
REMOVE_RANGES = Statement(delete(id_ranges).where(id_ranges.c.incarnation == number("who")))
RANGES = Statement(
    select(id_ranges.c.incarnation, id_ranges.c.first, id_ranges.c.last)
    .where(id_ranges.c.incarnation == number("who"))
    .order_by(id_ranges.c.first)
)

_LEASE = (
    select(leases.c.holder, leases.c.term, writers.c.state)
    .select_from(leases.outerjoin(writers, writers.c.incarnation == leases.c.holder))
    .where(leases.c.name == text("n"))
)
LEASE = Statement(_LEASE)
LEASE_FOR_UPDATE = Statement(_LEASE.with_for_update(of=leases))
LEASE_FOR_SHARE = Statement(
    select(leases.c.term)
    .where(leases.c.name == text("n"), leases.c.holder == number("who"), leases.c.term == number("of_term"))
    .with_for_update(read=True)
)
ADD_LEASE = insertion(leases)
SET_LEASE = Statement(update(leases).values(**new_values(leases, "holder", "term")).where(leases.c.name == text("n")))
RELEASE_LEASE = Statement(
    update(leases)
    .values(holder=literal_column("0"))
    .where(leases.c.name == text("n"), leases.c.holder == number("who"), leases.c.term == number("of_term"))
)
RELEASE_LEASES = Statement(update(leases).values(holder=literal_column("0")).where(leases.c.holder == number("who")))


def _beat(kind: Any) -> Any:
    statement = kind(heartbeats)
    return statement.on_conflict_do_update(
        index_elements=["incarnation"],
        set_=excluded("number", "settled"),
        # a heartbeat whose connection was lost may be executed late
        where=heartbeats.c.number < statement.excluded.number,
    )


BEAT = Statement(_beat(sqlite.insert), lambda: _beat(postgres_insert()))
BEATS = Statement(
    select(
        writers.c.incarnation,
        writers.c.state,
        func.coalesce(heartbeats.c.number, literal_column("0")),
        func.coalesce(heartbeats.c.settled, literal_column("0")),
    )
    .select_from(writers.outerjoin(heartbeats, heartbeats.c.incarnation == writers.c.incarnation))
    .order_by(writers.c.incarnation)
)
REMOVE_BEATS = Statement(
    delete(heartbeats).where(
        or_(heartbeats.c.incarnation == number("who"), heartbeats.c.incarnation.not_in(select(writers.c.incarnation)))
    )
)
"""Removes the heartbeats of one writer, and those that were written after their writer was removed."""

REMOVE_WRITER_NOTE = Statement(delete(meta).where(meta.c.name == text("n")))
