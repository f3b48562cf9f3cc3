"""The statements of reference counts, the discard queue and compaction, built once at import."""

from __future__ import annotations

from sqlalchemy import delete, literal_column, select, update

from sluice_s3.app.index.objects.statements import IS_CURRENT
from sluice_s3.app.index.schema.tables import blob_refcounts, discards, parts, pieces, versions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, insertion, new_values, number, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement
from sluice_s3.app.index.versioning.statements import IS_OF_KEY, IS_OTHER

ADD_REFERENCE = upsertion(
    blob_refcounts,
    ("body",),
    {"holders": blob_refcounts.c.holders + literal_column("1")},
    body=text("shared_body"),
    holders=literal_column("2"),
)
DROP_REFERENCE = Statement(
    update(blob_refcounts)
    .values(holders=blob_refcounts.c.holders - literal_column("1"))
    .where(blob_refcounts.c.body == text("shared_body"))
    .returning(blob_refcounts.c.holders)
)
REMOVE_REFCOUNT = Statement(delete(blob_refcounts).where(blob_refcounts.c.body == text("shared_body")))
REFERENCE_COUNT = Statement(select(blob_refcounts.c.holders).where(blob_refcounts.c.body == text("shared_body")))
MOVE_REFCOUNT = Statement(
    update(blob_refcounts)
    .values(**new_values(blob_refcounts, "body"))
    .where(blob_refcounts.c.body == text("shared_body"))
)
ADD_DISCARD = insertion(discards)
DISCARDS = Statement(
    select(discards.c.id, discards.c.body, discards.c.queued)
    .where(discards.c.id > number("after"))
    .order_by(discards.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
QUEUED_DISCARDS = Statement(
    select(discards.c.id).where(discards.c.id >= number("lowest"), discards.c.id <= number("highest"))
)
DISCARD = Statement(select(discards.c.body).where(discards.c.id == number("discard")))
REMOVE_DISCARD = Statement(delete(discards).where(discards.c.id == number("discard")))
BODY = Statement(select(versions.c.body).where(versions.c.seq == number("version")))
HINTED_CURRENT = Statement(
    select(versions.c.seq, versions.c.body).where(
        versions.c.bucket_id == number("bucket"), versions.c.key == text("name"), IS_CURRENT
    )
)
HINTED_NONCURRENT = Statement(
    select(versions.c.seq, versions.c.body)
    .where(*IS_OF_KEY, versions.c.modified >= number("at"), IS_OTHER)
    .order_by(versions.c.modified)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
HINTED_PIECES = Statement(
    select(pieces.c.start).where(
        pieces.c.upload == number("of"), pieces.c.part_number == number("which"), pieces.c.locator == text("blob")
    )
)
MOVE_VERSION = Statement(
    update(versions).values(**new_values(versions, "body")).where(versions.c.seq == number("version"))
)
PIECE = Statement(
    select(pieces.c.locator).where(
        pieces.c.upload == number("of"), pieces.c.start == number("byte"), pieces.c.part_number == number("which")
    )
)
MOVE_PIECE = Statement(
    update(pieces)
    .values(**new_values(pieces, "locator"))
    .where(pieces.c.upload == number("of"), pieces.c.start == number("byte"), pieces.c.part_number == number("which"))
)
EXTENTS = Statement(select(parts.c.extents).where(parts.c.upload == number("of"), parts.c.number == number("which")))
MOVE_EXTENTS = Statement(
    update(parts)
    .values(**new_values(parts, "extents"))
    .where(parts.c.upload == number("of"), parts.c.number == number("which"))
)
