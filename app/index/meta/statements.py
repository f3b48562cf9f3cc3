"""The statements of meta values and of the commit sequence, built once at import."""

from __future__ import annotations

from sqlalchemy import Select, and_, delete, func, literal_column, or_, select, table, update

from sluice_s3.app.index.schema.tables import GROUP_BITS, meta, sequence, versions, writers
from sluice_s3.app.index.sql.builder import excluded, new_values, number, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement

POSITION: Select[int] = select(
    literal_column(f"((last_value << {GROUP_BITS}) | {(1 << GROUP_BITS) - 1})::BIGINT").label("value")
).select_from(table("commit_sequence"))
"""The last number that Postgres has drawn. It draws one for each group of changes; the low bits hold as many numbers as
the group may need."""
META = Statement(select(meta.c.value).where(meta.c.name == text("n")))
SET_META = upsertion(meta, ("name",), excluded("value"))
NOTES = Statement(select(meta.c.name, meta.c.value).where(meta.c.name >= text("first"), meta.c.name < text("end")))
STORE_IDENTITIES = Statement(
    select(meta.c.name, meta.c.value).where(
        or_(meta.c.name == text("n"), and_(meta.c.name > text("first"), meta.c.name < text("end")))
    )
)
NEWEST_VERSION = Statement(select(func.max(versions.c.seq)))
SEQUENCE = Statement(select(sequence.c.value), lambda: POSITION)
SET_SEQUENCE = Statement(update(sequence).values(**new_values(sequence, "value")))
SEQUENCE_AND_WRITER = Statement(
    select(
        sequence.c.value,
        select(writers.c.state).where(writers.c.incarnation == number("who")).scalar_subquery(),
    )
)
FORGET_NOTE = Statement(delete(meta).where(meta.c.name == text("n"), meta.c.value == text("seen")))
MOVE_NOTE = Statement(
    update(meta).values(**new_values(meta, "value")).where(meta.c.name == text("n"), meta.c.value == text("seen"))
)
