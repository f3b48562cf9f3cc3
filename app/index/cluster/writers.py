"""Writer incarnations and the blob ids that they reserved."""

from __future__ import annotations

from sluice_s3.app.errors import WriterDead
from sluice_s3.app.index.cluster import gateways
from sluice_s3.app.index.cluster import transactions as cluster
from sluice_s3.app.index.cluster.rows import IdRange, Writer
from sluice_s3.app.index.cluster.statements import (
    ADD_RANGE,
    ADD_WRITER,
    RANGES,
    REMOVE_RANGE,
    REMOVE_RANGES,
    REMOVE_WRITER,
    SET_WRITER,
    WRITER,
    WRITERS,
)
from sluice_s3.app.index.cluster.transactions import LIVE
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.objects.rows import NULL_VERSION
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.packs.statements import PACKS_OF
from sluice_s3.app.index.plain_files.statements import INTENTS_OF
from sluice_s3.app.index.sql.transaction import DRAW, Draw, Transaction, now_ms

DEAD = "dead"


def register(lock_name: str) -> Transaction[int]:
    """Register a new incarnation, whose process already holds the liveness lock `lock_name`."""
    incarnation: int = yield DRAW
    yield ADD_WRITER, (incarnation, LIVE, lock_name)
    return incarnation


def retire(incarnation: int) -> Transaction[bool]:
    """Remove the caller's own live incarnation.

    Returns False when it leaves a range, open pack or intent to a sweep.
    """
    yield SET_WRITER, (LIVE, incarnation)  # its transactions on other connections end before the check
    if (yield RANGES, (incarnation,)) or (yield INTENTS_OF, (incarnation,)):
        return False
    if any(not Pack._make(row).sealed for row in (yield PACKS_OF, (incarnation,))):
        return False
    yield from _record_end(incarnation)
    yield REMOVE_WRITER, (incarnation,)
    yield from cluster.forget(incarnation)
    yield from gateways.forget_note(incarnation)
    return True


def _record_end(incarnation: int) -> Transaction[None]:
    """Journal that an incarnation commits nothing more: a rebuild restores none of its writes without a record."""
    number = yield DRAW
    yield ADD_TOMBSTONE, (number, "writer", 0, str(incarnation), now_ms(), "", NULL_VERSION)


def reserve_ids(incarnation: int, count: int) -> Transaction[IdRange]:
    """Reserve blob ids for a writer, which nothing else will ever use.

    Raises WriterDead without an incarnation. They come from the commit sequence, so that no version older than the
    range can hold one of them.
    """
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    first = yield Draw(count)
    yield ADD_RANGE, (first, first + count - 1, incarnation)
    return IdRange(incarnation, first, first + count - 1)


def retire_range(ids: IdRange) -> Transaction[None]:
    """Remove a range whose every id is committed or discarded.

    The orphan sweeper need not check it.
    """
    yield REMOVE_RANGE, (ids.first,)


def writers() -> Transaction[list[Writer]]:
    """Return all incarnations, oldest first."""
    rows = yield WRITERS, ()
    return [Writer._make(row) for row in rows]


def declare_dead(incarnation: int) -> Transaction[None]:
    """Declare an incarnation dead; from this commit on none of its transactions commits (law 5)."""
    rows = yield WRITER, (incarnation,)
    yield SET_WRITER, (DEAD, incarnation)
    if rows and rows[0][0] == LIVE:
        yield from _record_end(incarnation)


def ranges(incarnation: int) -> Transaction[list[IdRange]]:
    """Return the ranges that an incarnation has not retired."""
    rows = yield RANGES, (incarnation,)
    return [IdRange._make(row) for row in rows]


def forget_writer(incarnation: int) -> Transaction[str | None]:
    """Remove a dead incarnation and return the name of its liveness lock.

    Returns None when it is live or unknown.
    """
    rows = yield WRITER, (incarnation,)
    if not rows or rows[0][0] != DEAD:
        return None
    yield REMOVE_RANGES, (incarnation,)
    yield REMOVE_WRITER, (incarnation,)
    yield from cluster.forget(incarnation)
    yield from gateways.forget_note(incarnation)
    return str(rows[0][1])
