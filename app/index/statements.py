"""Every statement of the index, built once at import. Parameters by place, in the order in which the SQL names them.

`state = 1` and the like are literals: a partial index is only used for a literal.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from app.index.rows import Account, Bucket, Journal, ListedVersion, Pack, Upload, Version
from app.index.schema import (
    access_keys,
    accounts,
    buckets,
    discards,
    id_ranges,
    journals,
    meta,
    packs,
    parts,
    pieces,
    quarantine,
    removals,
    sequence,
    shared,
    uploads,
    versions,
    writers,
)
from app.index.steps import Statement

IS_CURRENT = versions.c.state == literal_column("1")
IS_OPEN = uploads.c.completed_seq == literal_column("0")


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger())


def _text(name: str) -> Any:
    return bindparam(name, type_=Text())


LIMIT = bindparam("limit", type_=Integer())
NO_OFFSET: ColumnElement[int] = literal_column("0")
"""SQLAlchemy would bind a 0 otherwise."""


def _columns(table: Table, fields: tuple[str, ...]) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in fields]


def _insert(table: Table) -> Statement:
    return Statement(insert(table))


def _set(table: Table, *names: str) -> dict[str, Any]:
    return {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}


# meta and sequence
META = Statement(select(meta.c.value).where(meta.c.name == _text("n")))
SET_META = Statement(
    upsert(meta).on_conflict_do_update(index_elements=["name"], set_={"value": literal_column("excluded.value")})
)
SEQUENCE = Statement(select(sequence.c.value))
SET_SEQUENCE = Statement(update(sequence).values(**_set(sequence, "value")))
BEGIN_AS = Statement(
    select(
        sequence.c.value,
        select(writers.c.state).where(writers.c.incarnation == _number("who")).scalar_subquery(),
    )
)

# accounts
ACCESS_KEY = Statement(
    select(
        access_keys.c.access_key,
        access_keys.c.secret,
        access_keys.c.account_id,
        accounts.c.display_name,
        (access_keys.c.disabled + accounts.c.disabled).label("disabled"),
    )
    .join_from(access_keys, accounts, accounts.c.id == access_keys.c.account_id)
    .where(access_keys.c.access_key == _text("ak"))
)
ACCOUNT = Statement(select(*_columns(accounts, Account._fields)).where(accounts.c.id == _text("account")))
ACCOUNTS = Statement(select(*_columns(accounts, Account._fields)).order_by(accounts.c.created, accounts.c.id))
ACCESS_KEYS = Statement(
    select(
        access_keys.c.access_key,
        access_keys.c.secret,
        access_keys.c.account_id,
        accounts.c.display_name,
        (access_keys.c.disabled + accounts.c.disabled).label("disabled"),
    )
    .join_from(access_keys, accounts, accounts.c.id == access_keys.c.account_id)
    .order_by(access_keys.c.created, access_keys.c.access_key)
)
EMAIL_TAKEN = Statement(select(accounts.c.id).where(accounts.c.email == _text("mail")))
ADD_ACCOUNT = _insert(accounts)
ADD_ACCESS_KEY = _insert(access_keys)
REMOVE_ACCOUNT = Statement(delete(accounts).where(accounts.c.id == _text("account")))
REMOVE_ACCESS_KEYS = Statement(delete(access_keys).where(access_keys.c.account_id == _text("account")))
SET_DISABLED = Statement(update(accounts).values(**_set(accounts, "disabled")).where(accounts.c.id == _text("account")))

# buckets
BUCKET = Statement(select(*_columns(buckets, Bucket._fields)).where(buckets.c.name == _text("bucket_name")))
BUCKET_ID = Statement(select(buckets.c.id).where(buckets.c.id == _number("bucket")))
BUCKETS = Statement(
    select(*_columns(buckets, Bucket._fields))
    .where(
        buckets.c.owner_id == _text("owner"),
        buckets.c.name >= _text("first"),
        buckets.c.name < _text("end"),
    )
    .order_by(buckets.c.name)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
COUNT_BUCKETS = Statement(select(func.count()).select_from(buckets).where(buckets.c.owner_id == _text("owner")))
ADD_BUCKET = _insert(buckets)
REMOVE_BUCKET = Statement(delete(buckets).where(buckets.c.id == _number("bucket")))
ANY_CURRENT = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == _number("bucket"), IS_CURRENT)
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
ANY_OTHER = Statement(
    select(versions.c.seq)
    .where(versions.c.bucket_id == _number("bucket"), versions.c.state != literal_column("1"))
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)

# versions
VERSION = Statement(
    select(*_columns(versions, Version._fields)).where(
        versions.c.bucket_id == _number("bucket"), versions.c.key == _text("name"), IS_CURRENT
    )
)
OTHER_VERSION = Statement(
    select(*_columns(versions, Version._fields)).where(
        versions.c.bucket_id == _number("bucket"),
        versions.c.key == _text("name"),
        versions.c.version_id == _text("version"),
        versions.c.state == literal_column("0"),
        versions.c.state != literal_column("1"),
    )
)
BODY = Statement(select(versions.c.body).where(versions.c.seq == _number("version")))
REPLACED = Statement(
    select(versions.c.seq, versions.c.etag, versions.c.size, versions.c.modified, versions.c.body, buckets.c.id)
    .select_from(
        buckets.outerjoin(
            versions, and_(versions.c.bucket_id == buckets.c.id, versions.c.key == _text("name"), IS_CURRENT)
        )
    )
    .where(buckets.c.id == _number("bucket"))
)
"""The current object of a key as far as a write must know it, and the bucket; no row when the bucket is gone."""
ADD_VERSION = _insert(versions)
REPLACE_VERSION = Statement(
    update(versions)
    .values(
        **_set(versions, "seq", "modified", "size", "etag", "headers", "storage_class"),
        **_set(versions, "checksum_algorithm", "checksum_type", "checksum", "body", "parts", "owner_id"),
    )
    .where(versions.c.seq == _number("old"))
)
REMOVE_VERSION = Statement(delete(versions).where(versions.c.seq == _number("old")))
LIST_CURRENT = Statement(
    select(*_columns(versions, ListedVersion._fields))
    .where(
        versions.c.bucket_id == _number("bucket"),
        IS_CURRENT,
        versions.c.key >= _text("first"),
        versions.c.key < _text("end"),
    )
    .order_by(versions.c.key)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)

# counted bodies and discards
SHARE = Statement(
    upsert(shared)
    .values(body=_text("shared_body"), holders=literal_column("2"))
    .on_conflict_do_update(index_elements=["body"], set_={"holders": shared.c.holders + literal_column("1")})
)
UNSHARE = Statement(
    update(shared)
    .values(holders=shared.c.holders - literal_column("1"))
    .where(shared.c.body == _text("shared_body"))
    .returning(shared.c.holders)
)
FORGET_SHARED = Statement(delete(shared).where(shared.c.body == _text("shared_body")))
ADD_DISCARD = _insert(discards)
DISCARDS = Statement(
    select(discards.c.id, discards.c.body, discards.c.queued)
    .where(discards.c.id > _number("after"))
    .order_by(discards.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
QUEUED = Statement(select(discards.c.id).where(discards.c.id >= _number("lowest"), discards.c.id <= _number("highest")))
HOLDERS = Statement(select(shared.c.holders).where(shared.c.body == _text("shared_body")))
MOVE_SHARED = Statement(update(shared).values(**_set(shared, "body")).where(shared.c.body == _text("shared_body")))
CLAIMED_VERSION = Statement(
    select(versions.c.seq, versions.c.body).where(
        versions.c.bucket_id == _number("bucket"), versions.c.key == _text("name"), IS_CURRENT
    )
)
MOVE_VERSION = Statement(update(versions).values(**_set(versions, "body")).where(versions.c.seq == _number("version")))
CLAIMED_PIECES = Statement(
    select(pieces.c.start).where(
        pieces.c.upload == _number("of"), pieces.c.part_number == _number("which"), pieces.c.locator == _text("blob")
    )
)
PIECE = Statement(
    select(pieces.c.locator).where(
        pieces.c.upload == _number("of"), pieces.c.start == _number("byte"), pieces.c.part_number == _number("which")
    )
)
MOVE_PIECE = Statement(
    update(pieces)
    .values(**_set(pieces, "locator"))
    .where(
        pieces.c.upload == _number("of"), pieces.c.start == _number("byte"), pieces.c.part_number == _number("which")
    )
)
EXTENTS = Statement(select(parts.c.extents).where(parts.c.upload == _number("of"), parts.c.number == _number("which")))
MOVE_EXTENTS = Statement(
    update(parts)
    .values(**_set(parts, "extents"))
    .where(parts.c.upload == _number("of"), parts.c.number == _number("which"))
)
DISCARD = Statement(select(discards.c.body).where(discards.c.id == _number("discard")))
REMOVE_DISCARD = Statement(delete(discards).where(discards.c.id == _number("discard")))

# multipart
UPLOAD = Statement(select(*_columns(uploads, Upload._fields)).where(uploads.c.id == _number("upload")))
UPLOAD_STATE = Statement(
    select(uploads.c.completed_seq, uploads.c.completed_version_id, uploads.c.completed_modified).where(
        uploads.c.id == _number("upload")
    )
)
UPLOADS = Statement(
    select(*_columns(uploads, Upload._fields))
    .where(
        uploads.c.bucket_id == _number("bucket"),
        IS_OPEN,
        tuple_(uploads.c.key, uploads.c.id) > tuple_(_text("first"), _number("after")),
        uploads.c.key < _text("end"),
    )
    .order_by(uploads.c.key, uploads.c.id)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
OPEN_UPLOADS = Statement(select(uploads.c.id).where(uploads.c.bucket_id == _number("bucket"), IS_OPEN))
ADD_UPLOAD = _insert(uploads)
END_UPLOAD = Statement(
    update(uploads)
    .values(**_set(uploads, "completed_seq", "completed_version_id", "completed_modified"))
    .where(uploads.c.id == _number("upload"))
)
REMOVE_UPLOAD = Statement(delete(uploads).where(uploads.c.id == _number("upload")))

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
    .where(parts.c.upload == _number("of"), parts.c.number > _number("after"))
    .order_by(parts.c.number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
ALL_PARTS = Statement(select(*_PART).where(parts.c.upload == _number("of")).order_by(parts.c.number))
PART = Statement(select(*_PART).where(parts.c.upload == _number("of"), parts.c.number == _number("which")))
PUT_PART = Statement(insert(parts).prefix_with("OR REPLACE", dialect="sqlite"))
REMOVE_PART = Statement(delete(parts).where(parts.c.upload == _number("of"), parts.c.number == _number("which")))
REMOVE_PARTS = Statement(delete(parts).where(parts.c.upload == _number("of")))

_PIECE = (pieces.c.start, pieces.c.size, pieces.c.part_number, pieces.c.locator, pieces.c.blob_offset)
ADD_PIECE = _insert(pieces)
PIECES_FROM = Statement(
    select(*_PIECE)
    .where(
        pieces.c.upload == _number("of"),
        pieces.c.start
        >= func.coalesce(
            select(func.max(pieces.c.start))
            .where(pieces.c.upload == _number("of_too"), pieces.c.start <= _number("byte"))
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
    .where(pieces.c.upload == _number("of"))
    .order_by(pieces.c.start, pieces.c.part_number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
REMOVE_PIECE = Statement(
    delete(pieces).where(
        pieces.c.upload == _number("of"), pieces.c.start == _number("byte"), pieces.c.part_number == _number("which")
    )
)
PIECE_LOCATORS = Statement(select(pieces.c.locator).where(pieces.c.upload == _number("of")))
OBJECT_PARTS = Statement(
    select(pieces.c.part_number, func.min(pieces.c.start), func.sum(pieces.c.size), func.max(pieces.c.checksum))
    .where(pieces.c.upload == _number("of"), pieces.c.part_number > _number("after"))
    .group_by(pieces.c.part_number)
    .order_by(pieces.c.part_number)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)

# writers
ADD_WRITER = _insert(writers)
WRITERS = Statement(select(writers.c.incarnation, writers.c.state, writers.c.lock_name).order_by(writers.c.incarnation))
WRITER = Statement(select(writers.c.state, writers.c.lock_name).where(writers.c.incarnation == _number("who")))
SET_WRITER = Statement(update(writers).values(**_set(writers, "state")).where(writers.c.incarnation == _number("who")))
REMOVE_WRITER = Statement(delete(writers).where(writers.c.incarnation == _number("who")))
ADD_RANGE = _insert(id_ranges)
REMOVE_RANGE = Statement(delete(id_ranges).where(id_ranges.c.first == _number("lowest")))
REMOVE_RANGES = Statement(delete(id_ranges).where(id_ranges.c.incarnation == _number("who")))
RANGES = Statement(
    select(id_ranges.c.incarnation, id_ranges.c.first, id_ranges.c.last)
    .where(id_ranges.c.incarnation == _number("who"))
    .order_by(id_ranges.c.first)
)

# packs
ADD_PACK = _insert(packs)
PACKS_OF = Statement(
    select(*_columns(packs, Pack._fields)).where(packs.c.incarnation == _number("who")).order_by(packs.c.id)
)
SEAL_PACK = Statement(update(packs).values(**_set(packs, "sealed", "size")).where(packs.c.id == _number("pack")))
ADD_DEAD = Statement(update(packs).values(dead=packs.c.dead + _number("more")).where(packs.c.id == _number("pack")))
PACK = Statement(select(*_columns(packs, Pack._fields)).where(packs.c.id == _number("pack")))
ALL_PACKS = Statement(select(*_columns(packs, Pack._fields)).order_by(packs.c.id))
SET_DEAD = Statement(
    update(packs)
    .values(**_set(packs, "dead", "sealed"))
    .where(
        packs.c.id == _number("pack"),
        packs.c.dead == _number("seen"),
        packs.c.sealed.in_((literal_column("1"), literal_column("3"))),
    )
    .returning(packs.c.id)
)
RETIRE_PACK = Statement(
    update(packs)
    .values(**_set(packs, "sealed"))
    .where(
        packs.c.id == _number("pack"),
        packs.c.sealed == literal_column("1"),
        packs.c.size - packs.c.dead <= _number("overhead"),
    )
    .returning(packs.c.id)
)
REMOVE_PACK = Statement(delete(packs).where(packs.c.id == _number("pack")))
ADD_REMOVAL = _insert(removals)

# what is written down beside the data
ADD_JOURNAL = _insert(journals)
JOURNALS = Statement(select(*_columns(journals, Journal._fields)).order_by(journals.c.id))
SET_JOURNAL = Statement(
    update(journals).values(**_set(journals, "snapshot", "bytes", "rows")).where(journals.c.id == _number("journal"))
)
REMOVE_JOURNAL = Statement(delete(journals).where(journals.c.id == _number("journal")))
REMOVE_REMOVALS = Statement(delete(removals).where(removals.c.seq <= _number("last")))

# blobs that were found damaged
QUARANTINE = Statement(select(quarantine.c.locator, quarantine.c.reason, quarantine.c.found))
ADD_QUARANTINE = Statement(
    upsert(quarantine).on_conflict_do_update(
        index_elements=["locator"], set_={"reason": literal_column("excluded.reason")}
    )
)
REMOVE_QUARANTINE = Statement(delete(quarantine).where(quarantine.c.locator == _text("damaged")))
