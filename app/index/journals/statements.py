"""The statements of journals and tombstones, built once at import."""

from __future__ import annotations

from sqlalchemy import and_, delete, literal_column, or_, select, update

from sluice_s3.app.index.journals.rows import Journal
from sluice_s3.app.index.schema.tables import buckets, journals, tombstones
from sluice_s3.app.index.sql.builder import columns, insertion, new_values, number, text
from sluice_s3.app.index.sql.transaction import Statement

ADD_JOURNAL = insertion(journals)
JOURNALS = Statement(
    select(*columns(journals, Journal._fields)).where(journals.c.store == text("of_store")).order_by(journals.c.id)
)
SET_JOURNAL = Statement(
    update(journals)
    .values(**new_values(journals, "snapshot", "bytes", "rows"))
    .where(journals.c.id == number("journal"))
)
REMOVE_JOURNAL = Statement(delete(journals).where(journals.c.id == number("journal")))
ADD_TOMBSTONE = insertion(tombstones)
REMOVE_TOMBSTONES = Statement(
    delete(tombstones).where(
        tombstones.c.seq <= number("last"),
        or_(
            tombstones.c.store == text("of_store"),
            and_(
                tombstones.c.kind != literal_column("'blob'"),
                tombstones.c.bucket_id.not_in(select(buckets.c.id).where(buckets.c.store != text("other"))),
            ),
        ),
    )
)
"""Removes the tombstones that the journals of one store have; see `app.index.journals.queries`."""
