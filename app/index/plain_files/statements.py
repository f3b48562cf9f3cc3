"""The statements of plain files (layout *tree*): write intents, and versions without hashes."""

from __future__ import annotations

from sqlalchemy import delete, literal_column, select, update

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.statements import IS_CURRENT
from sluice_s3.app.index.plain_files.rows import Intent
from sluice_s3.app.index.schema.tables import buckets, intents, tombstones, unhashed, versions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, insertion, new_values, number, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement

_INTENT = columns(intents, Intent._fields)

ADD_INTENT = insertion(intents)
INTENT = Statement(select(*_INTENT).where(intents.c.id == number("intent")))
INTENT_FOR_KEY = Statement(
    select(*_INTENT).where(intents.c.bucket_id == number("bucket"), intents.c.key == text("name"))
)
INTENTS_OF = Statement(select(*_INTENT).where(intents.c.incarnation == number("who")).order_by(intents.c.id))
ANY_INTENT = Statement(
    select(intents.c.id).where(intents.c.bucket_id == number("bucket")).limit(literal_column("1")).offset(NO_OFFSET)
)
REMOVE_INTENT = Statement(delete(intents).where(intents.c.id == number("intent")))

INTENT_AND_VERSION = Statement(
    select(intents.c.id, versions.c.seq, versions.c.modified, versions.c.body).select_from(
        select(literal_column("1").label("one"))
        .subquery("one")
        .outerjoin(intents, (intents.c.bucket_id == number("bucket")) & (intents.c.key == text("name")))
        .outerjoin(
            versions,
            (versions.c.bucket_id == number("bucket_too")) & (versions.c.key == text("name_too")) & IS_CURRENT,
        )
    )
)
"""The write intent on a file's key, and the key's current version; each may be NULL."""
TOMBSTONES_SINCE = Statement(
    select(tombstones.c.key).where(
        tombstones.c.seq > number("since"),
        tombstones.c.bucket_id == number("bucket"),
        tombstones.c.kind == literal_column("'object'"),
    )
)

ADD_PENDING_HASH = upsertion(unhashed, ("seq",))
REMOVE_PENDING_HASH = Statement(delete(unhashed).where(unhashed.c.seq == number("version")))
MOVE_PENDING_HASH = Statement(
    update(unhashed).values(**new_values(unhashed, "seq")).where(unhashed.c.seq == number("old"))
)
"""Gives a version that waits for its hashes another number."""
PENDING_HASHES = Statement(
    select(
        unhashed.c.seq,
        versions.c.bucket_id,
        versions.c.key,
        versions.c.size,
        versions.c.body,
    )
    .select_from(unhashed.outerjoin(versions, (versions.c.seq == unhashed.c.seq) & IS_CURRENT))
    .where(unhashed.c.seq > number("after"))
    .order_by(unhashed.c.seq)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
SET_HASHES = Statement(
    update(versions)
    .values(**new_values(versions, "seq", "etag", "checksum_algorithm", "checksum_type", "checksum"))
    .where(versions.c.seq == number("old"), versions.c.body == text("as_read"), IS_CURRENT)
    .returning(versions.c.seq)
)
CURRENT_AFTER = Statement(
    select(versions.c.key, versions.c.seq, versions.c.body)
    .where(versions.c.bucket_id == number("bucket"), IS_CURRENT, versions.c.key > text("after"))
    .order_by(versions.c.key)
    .limit(LIMIT)
    .offset(NO_OFFSET)
)
BUCKETS_ON = Statement(
    select(*columns(buckets, Bucket._fields))
    .where((buckets.c.store == text("of")) | (buckets.c.source == text("of_too")))
    .order_by(buckets.c.name)
)
