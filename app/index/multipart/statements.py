"""The statements of multipart uploads, built once at import.

`completed_seq = 0` is a literal, because a partial index is used only for a literal.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, cast, delete, func, insert, literal_column, select, tuple_, update

from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.restore.state import ARCHIVE_OFFSET
from sluice_s3.app.index.schema.tables import parts, pieces, uploads
from sluice_s3.app.index.sql.builder import (
    LIMIT,
    NO_OFFSET,
    columns,
    excluded,
    insertion,
    new_values,
    number,
    postgres_insert,
    text,
)
from sluice_s3.app.index.sql.transaction import Statement

IS_OPEN = uploads.c.completed_seq == literal_column("0")
UPLOAD = Statement(select(*columns(uploads, Upload._fields)).where(uploads.c.id == number("upload")))
UPLOAD_STATE = Statement(
    select(uploads.c.completed_seq, uploads.c.completed_version_id, uploads.c.completed_modified).where(
        uploads.c.id == number("upload")
    )
)
UPLOADS = Statement(
    select(*columns(uploads, Upload._fields))
    .where(
        uploads.c.bucket_id == number("bucket"),
        IS_OPEN,
        tuple_(uploads.c.key, uploads.c.id) > tuple_(text("first"), number("after")),
        uploads.c.key < text("end"),
    )
    .order_by(uploads.c.key, uploads.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OPEN_UPLOADS = Statement(select(uploads.c.id).where(uploads.c.bucket_id == number("bucket"), IS_OPEN))
ADD_UPLOAD = insertion(uploads)
END_UPLOAD = Statement(
    update(uploads)
    .values(**new_values(uploads, "completed_seq", "completed_version_id", "completed_modified"))
    .where(uploads.c.id == number("upload"))
)
REMOVE_UPLOAD = Statement(delete(uploads).where(uploads.c.id == number("upload")))

_PART = (
    parts.c.number,
    parts.c.size,
    parts.c.etag,
    parts.c.modified,
    parts.c.checksum_algorithm,
    parts.c.checksum,
    parts.c.extents,
)
PARTS = Statement(
    select(*_PART)
    .where(parts.c.upload == number("of"), parts.c.number > number("after"))
    .order_by(parts.c.number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
ALL_PARTS = Statement(select(*_PART).where(parts.c.upload == number("of")).order_by(parts.c.number))
PART = Statement(select(*_PART).where(parts.c.upload == number("of"), parts.c.number == number("which")))
PUT_PART = Statement(
    insert(parts).prefix_with("OR REPLACE", dialect="sqlite"),
    lambda: postgres_insert()(parts).on_conflict_do_update(
        index_elements=["upload", "number"],
        set_=excluded(*(column.name for column in parts.c if column.name not in ("upload", "number"))),
    ),
)
REMOVE_PART = Statement(delete(parts).where(parts.c.upload == number("of"), parts.c.number == number("which")))
REMOVE_PARTS = Statement(delete(parts).where(parts.c.upload == number("of")))

_PIECE = (pieces.c.start, pieces.c.size, pieces.c.part_number, pieces.c.locator, pieces.c.blob_offset)
ADD_PIECE = insertion(pieces)
PIECES_FROM = Statement(
    select(*_PIECE)
    .where(
        pieces.c.upload == number("of"),
        pieces.c.start
        >= func.coalesce(
            select(func.max(pieces.c.start))
            .where(pieces.c.upload == number("of_too"), pieces.c.start <= number("byte"))
            .scalar_subquery(),
            literal_column("0"),
        ),
        pieces.c.size > literal_column("0"),
    )
    .order_by(pieces.c.start)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
FIRST_PIECES = Statement(
    select(*_PIECE)
    .where(pieces.c.upload == number("of"))
    .order_by(pieces.c.start, pieces.c.part_number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_PIECE = Statement(
    delete(pieces).where(
        pieces.c.upload == number("of"), pieces.c.start == number("byte"), pieces.c.part_number == number("which")
    )
)
PIECE_LOCATORS = Statement(select(pieces.c.locator).where(pieces.c.upload == number("of")))
OBJECT_PARTS = Statement(
    select(
        pieces.c.part_number,
        func.min(pieces.c.start),
        cast(func.sum(pieces.c.size), BigInteger),  # a sum is numeric on Postgres
        func.max(pieces.c.checksum),
    )
    .where(
        pieces.c.upload == number("of"),
        pieces.c.part_number > number("after"),
        pieces.c.start < literal_column(str(ARCHIVE_OFFSET)),
    )
    .group_by(pieces.c.part_number)
    .order_by(pieces.c.part_number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)

WHOLE_PIECES = Statement(
    select(*pieces.c).where(pieces.c.upload == number("of")).order_by(pieces.c.start, pieces.c.part_number)
)
WHOLE_UPLOAD = Statement(select(*uploads.c).where(uploads.c.id == number("upload")))
DETACH_UPLOAD = Statement(
    update(uploads)
    .values(**new_values(uploads, "bucket_id"))
    .where(uploads.c.id == number("upload"), uploads.c.bucket_id == number("bucket"))
)
