"""The statements of writers, packs, journals and damaged blobs, for jobs and commands."""

from __future__ import annotations

from sqlalchemy import (
    and_,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)

from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.index.schema.tables import (
    buckets,
    id_ranges,
    journals,
    meta,
    packs,
    pieces,
    quarantine,
    tombstones,
    uploads,
    versions,
    writers,
)
from sluice_s3.app.index.sql.builder import columns, excluded, insertion, new_values, number, text, upsertion
from sluice_s3.app.index.sql.transaction import Statement
from sluice_s3.app.index.upkeep_rows import Journal, Pack

# writers
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

# packs
ADD_PACK = insertion(packs)
PACKS_OF = Statement(
    select(*columns(packs, Pack._fields)).where(packs.c.incarnation == number("who")).order_by(packs.c.id)
)
SEAL_PACK = Statement(update(packs).values(**new_values(packs, "sealed", "size")).where(packs.c.id == number("pack")))
ADD_DEAD = Statement(update(packs).values(dead=packs.c.dead + number("more")).where(packs.c.id == number("pack")))
PACK = Statement(select(*columns(packs, Pack._fields)).where(packs.c.id == number("pack")))
ALL_PACKS = Statement(select(*columns(packs, Pack._fields)).order_by(packs.c.id))
SET_DEAD = Statement(
    update(packs)
    .values(**new_values(packs, "dead", "sealed"))
    .where(
        packs.c.id == number("pack"),
        packs.c.dead == number("seen"),
        packs.c.sealed.in_((literal_column("1"), literal_column("3"))),
    )
    .returning(packs.c.id)
)
RETIRE_PACK = Statement(
    update(packs)
    .values(**new_values(packs, "sealed"))
    .where(
        packs.c.id == number("pack"),
        packs.c.sealed == literal_column("1"),
        packs.c.size - packs.c.dead <= number("overhead"),
    )
    .returning(packs.c.id)
)
REMOVE_PACK = Statement(delete(packs).where(packs.c.id == number("pack")))
ADD_REMOVAL = insertion(tombstones)

# moves of buckets to another store
MOVE_BUCKET = Statement(
    update(buckets).values(**new_values(buckets, "store", "source", "moved")).where(buckets.c.id == number("bucket"))
)
END_MOVE = Statement(
    update(buckets).values(**new_values(buckets, "source", "moved")).where(buckets.c.id == number("bucket"))
)
MOVING = Statement(select(*columns(buckets, Bucket._fields)).where(buckets.c.source != literal_column("''")))
LAST_MOVED = Statement(select(func.max(buckets.c.moved)).where(buckets.c.store == text("of_store")))
LAST_MOVED_OF_ALL = Statement(select(func.max(buckets.c.moved)))
LAST_SNAPSHOT = Statement(
    select(func.max(journals.c.id)).where(
        journals.c.store == text("of_store"), journals.c.snapshot == literal_column("2")
    )
)
RENAME_VERSION = Statement(
    update(versions).values(**new_values(versions, "seq", "key", "modified")).where(versions.c.seq == number("old"))
)
FORGET_TOKENS = Statement(
    delete(meta).where(
        meta.c.name >= literal_column("'rename:'"),
        meta.c.name < literal_column("'rename;'"),
        meta.c.value < text("until"),
    )
)
"""The values of these notes begin with a time."""
FORGET_NOTE = Statement(delete(meta).where(meta.c.name == text("n"), meta.c.value == text("seen")))
MOVE_NOTE = Statement(
    update(meta).values(**new_values(meta, "value")).where(meta.c.name == text("n"), meta.c.value == text("seen"))
)
WHOLE_PIECES = Statement(
    select(*pieces.c).where(pieces.c.upload == number("of")).order_by(pieces.c.start, pieces.c.part_number)
)
WHOLE_UPLOAD = Statement(select(*uploads.c).where(uploads.c.id == number("upload")))
DISOWN_UPLOAD = Statement(
    update(uploads)
    .values(**new_values(uploads, "bucket_id"))
    .where(uploads.c.id == number("upload"), uploads.c.bucket_id == number("bucket"))
)

# journals
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
REMOVE_REMOVALS = Statement(
    delete(tombstones).where(
        tombstones.c.seq <= number("last"),
        or_(
            tombstones.c.store == text("of_store"),
            and_(
                tombstones.c.kind == literal_column("'object'"),
                tombstones.c.bucket_id.not_in(select(buckets.c.id).where(buckets.c.store != text("other"))),
            ),
        ),
    )
)
"""Removes the tombstones that the journals of one store have; see `app.index.change_feed`."""

# damaged blobs
QUARANTINE = Statement(select(quarantine.c.locator, quarantine.c.reason, quarantine.c.found))
ADD_QUARANTINE = upsertion(quarantine, ("locator",), excluded("reason"))
REMOVE_QUARANTINE = Statement(delete(quarantine).where(quarantine.c.locator == text("damaged")))
