"""The main statements of the index, built once at import.

Parameters are positional, in the order in which the SQL names them. `state = 1` and the like are literals, because a
partial index is used only for a literal.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Select,
    and_,
    cast,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    table,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql

from sluice_s3.app.index.restore_state import ARCHIVE_OFFSET
from sluice_s3.app.index.rows import Bucket, ListedVersion, Upload, Version
from sluice_s3.app.index.schema.tables import (
    GROUP_BITS,
    blob_refcounts,
    buckets,
    discards,
    meta,
    parts,
    pieces,
    sequence,
    uploads,
    versions,
    writers,
)
from sluice_s3.app.index.sql.builder import (
    LIMIT,
    NO_OFFSET,
    columns,
    excluded,
    insertion,
    new_values,
    number,
    text,
    upsertion,
)
from sluice_s3.app.index.sql.transaction import Statement

IS_CURRENT = versions.c.state == literal_column("1")
IS_OPEN = uploads.c.completed_seq == literal_column("0")


# meta and sequence
POSITION: Select[int] = select(
    literal_column(f"((last_value << {GROUP_BITS}) | {(1 << GROUP_BITS) - 1})::BIGINT").label("value")
).select_from(table("commit_sequence"))
"""The last number that Postgres has drawn. It draws one for each group of changes; the low bits hold as many numbers as
the group may need."""
META = Statement(select(meta.c.value).where(meta.c.name == text("n")))
SET_META = upsertion(meta, ("name",), excluded("value"))
IDENTITIES = Statement(
    select(meta.c.name, meta.c.value).where(
        or_(meta.c.name == text("n"), and_(meta.c.name > text("first"), meta.c.name < text("end")))
    )
)
NEWEST_VERSION = Statement(select(func.max(versions.c.seq)))
SEQUENCE = Statement(select(sequence.c.value), POSITION)
SET_SEQUENCE = Statement(update(sequence).values(**new_values(sequence, "value")))
BEGIN_AS = Statement(
    select(
        sequence.c.value,
        select(writers.c.state).where(writers.c.incarnation == number("who")).scalar_subquery(),
    )
)

# buckets
BUCKET = Statement(select(*columns(buckets, Bucket._fields)).where(buckets.c.name == text("bucket_name")))
BUCKET_ID = Statement(select(buckets.c.id).where(buckets.c.id == number("bucket")))
BUCKETS = Statement(
    select(*columns(buckets, Bucket._fields))
    .where(
        buckets.c.owner_id == text("owner"),
        buckets.c.name >= text("first"),
        buckets.c.name < text("end"),
    )
    .order_by(buckets.c.name)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
COUNT_BUCKETS = Statement(select(func.count()).select_from(buckets).where(buckets.c.owner_id == text("owner")))
STORES_IN_USE = Statement(
    select(buckets.c.store, buckets.c.source, func.count()).group_by(buckets.c.store, buckets.c.source)
)
ADD_BUCKET = insertion(buckets)
SETTINGS = Statement(select(buckets.c.settings).where(buckets.c.id == number("bucket")))
SET_SETTINGS = Statement(
    update(buckets).values(**new_values(buckets, "settings")).where(buckets.c.id == number("bucket"))
)
REMOVE_BUCKET = Statement(delete(buckets).where(buckets.c.id == number("bucket")))
ANY_CURRENT = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == number("bucket"), IS_CURRENT)
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
ANY_OTHER = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == number("bucket"), versions.c.state != literal_column("1"))
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)

# versions
VERSION = Statement(
    select(*columns(versions, Version._fields)).where(
        versions.c.bucket_id == number("bucket"), versions.c.key == text("name"), IS_CURRENT
    )
)
_WITH_CURRENT = buckets.outerjoin(
    versions, and_(versions.c.bucket_id == buckets.c.id, versions.c.key == text("name"), IS_CURRENT)
)
TO_DELETE = Statement(
    select(
        *columns(versions, ("seq", "version_id", "etag", "size", "modified", "body")),
        buckets.c.versioning,
        select(blob_refcounts.c.holders).where(blob_refcounts.c.body == versions.c.body).scalar_subquery(),
    )
    .select_from(_WITH_CURRENT)
    .where(buckets.c.id == number("bucket"))
)
"""The columns that a delete reads of an object and of its bucket. The last column is NULL for a body with one
reference. There is no row when the bucket does not exist."""
BODY = Statement(select(versions.c.body).where(versions.c.seq == number("version")))
REPLACED = Statement(
    select(*columns(versions, ("seq", "etag", "size", "modified", "body")), buckets.c.id, buckets.c.versioning)
    .select_from(_WITH_CURRENT)
    .where(buckets.c.id == number("bucket"))
)
"""The columns that a write reads of the current object of a key, and of the bucket. There is no row when the bucket
does not exist."""
ADD_VERSION = insertion(versions)
REPLACE_VERSION = Statement(
    update(versions)
    .values(
        **new_values(versions, "seq", "modified", "size", "etag", "headers", "storage_class"),
        **new_values(versions, "checksum_algorithm", "checksum_type", "checksum", "body", "parts", "owner_id"),
    )
    .where(versions.c.seq == number("old"))
)
RENEW_HEADERS = Statement(
    update(versions)
    .values(**new_values(versions, "seq", "headers"))
    .where(versions.c.seq == number("old"), versions.c.bucket_id == number("bucket"))
)
VERSION_HEADERS = Statement(select(versions.c.headers).where(versions.c.seq == number("old")))
REMOVE_VERSION = Statement(delete(versions).where(versions.c.seq == number("old")))


def _list_current(*more: str) -> Statement:
    return Statement(
        select(*columns(versions, ListedVersion._fields + more))
        .where(
            versions.c.bucket_id == number("bucket"),
            IS_CURRENT,
            versions.c.key >= text("first"),
            versions.c.key < text("end"),
        )
        .order_by(versions.c.key)
        .limit(LIMIT)
        .offset(NO_OFFSET)
    )


LIST_CURRENT = _list_current()
LIST_CURRENT_WITH_HEADERS = _list_current("headers")

# counted bodies and discards
SHARE = upsertion(
    blob_refcounts,
    ("body",),
    {"holders": blob_refcounts.c.holders + literal_column("1")},
    body=text("shared_body"),
    holders=literal_column("2"),
)
UNSHARE = Statement(
    update(blob_refcounts)
    .values(holders=blob_refcounts.c.holders - literal_column("1"))
    .where(blob_refcounts.c.body == text("shared_body"))
    .returning(blob_refcounts.c.holders)
)
FORGET_SHARED = Statement(delete(blob_refcounts).where(blob_refcounts.c.body == text("shared_body")))
ADD_DISCARD = insertion(discards)
DISCARDS = Statement(
    select(discards.c.id, discards.c.body, discards.c.queued)
    .where(discards.c.id > number("after"))
    .order_by(discards.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
QUEUED = Statement(select(discards.c.id).where(discards.c.id >= number("lowest"), discards.c.id <= number("highest")))
HOLDERS = Statement(select(blob_refcounts.c.holders).where(blob_refcounts.c.body == text("shared_body")))
MOVE_SHARED = Statement(
    update(blob_refcounts)
    .values(**new_values(blob_refcounts, "body"))
    .where(blob_refcounts.c.body == text("shared_body"))
)
CLAIMED_VERSION = Statement(
    select(versions.c.seq, versions.c.body).where(
        versions.c.bucket_id == number("bucket"), versions.c.key == text("name"), IS_CURRENT
    )
)
MOVE_VERSION = Statement(
    update(versions).values(**new_values(versions, "body")).where(versions.c.seq == number("version"))
)
CLAIMED_PIECES = Statement(
    select(pieces.c.start).where(
        pieces.c.upload == number("of"), pieces.c.part_number == number("which"), pieces.c.locator == text("blob")
    )
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
DISCARD = Statement(select(discards.c.body).where(discards.c.id == number("discard")))
REMOVE_DISCARD = Statement(delete(discards).where(discards.c.id == number("discard")))

# multipart
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
    postgresql.insert(parts).on_conflict_do_update(
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
SOME_PIECES = Statement(
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
