"""Writer incarnations and the blob ids they reserved."""

from __future__ import annotations

from sluice_s3.app.errors import WriterDead
from sluice_s3.app.index.plain_file_statements import INTENTS_OF
from sluice_s3.app.index.rows import IdRange, Pack, Writer
from sluice_s3.app.index.sql.transaction import DRAW, Draw, Transaction
from sluice_s3.app.index.transactions import cluster
from sluice_s3.app.index.transactions.cluster import LIVE
from sluice_s3.app.index.upkeep_statements import (
    ADD_RANGE,
    ADD_WRITER,
    PACKS_OF,
    RANGES,
    REMOVE_RANGE,
    REMOVE_RANGES,
    REMOVE_WRITER,
    SET_WRITER,
    WRITER,
    WRITERS,
)

DEAD = "dead"


def register(lock_name: str) -> Transaction[int]:
    """A new incarnation, whose process holds `lock_name` locked already."""
    incarnation: int = yield DRAW
    yield ADD_WRITER, (incarnation, LIVE, lock_name)
    return incarnation


def retire(incarnation: int) -> Transaction[bool]:
    """Remove one's own incarnation, which is live, if it leaves no range, open pack or intent to a sweep."""
    yield SET_WRITER, (LIVE, incarnation)  # what it has under way on other connections ends before the look
    if (yield RANGES, (incarnation,)) or (yield INTENTS_OF, (incarnation,)):
        return False
    if any(not Pack._make(row).sealed for row in (yield PACKS_OF, (incarnation,))):
        return False
    yield REMOVE_WRITER, (incarnation,)
    yield from cluster.forget(incarnation)
    return True


def reserve_ids(incarnation: int, count: int) -> Transaction[IdRange]:
    """Reserve blob ids that nothing else will ever use, for a writer.

    They are of the commit sequence, so that no version older than the range can hold one of them.
    """
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    first = yield Draw(count)
    yield ADD_RANGE, (first, first + count - 1, incarnation)
    return IdRange(incarnation, first, first + count - 1)


def retire_range(ids: IdRange) -> Transaction[None]:
    """Forget a range whose every id is committed or discarded: the sweep need not ask for it."""
    yield REMOVE_RANGE, (ids.first,)


def writers() -> Transaction[list[Writer]]:
    """All incarnations, oldest first."""
    rows = yield WRITERS, ()
    return [Writer._make(row) for row in rows]


def declare_dead(incarnation: int) -> Transaction[None]:
    """From this commit on no transaction of that incarnation commits (law 5)."""
    yield SET_WRITER, (DEAD, incarnation)


def ranges(incarnation: int) -> Transaction[list[IdRange]]:
    """Ranges that an incarnation has not retired."""
    rows = yield RANGES, (incarnation,)
    return [IdRange._make(row) for row in rows]


def forget_writer(incarnation: int) -> Transaction[str | None]:
    """Remove a dead incarnation; the name of its lock file, or None when it is live or unknown."""
    rows = yield WRITER, (incarnation,)
    if not rows or rows[0][0] != DEAD:
        return None
    yield REMOVE_RANGES, (incarnation,)
    yield REMOVE_WRITER, (incarnation,)
    yield from cluster.forget(incarnation)
    return str(rows[0][1])
