"""Compaction: finds the rows that reference a record, and moves them to its new place."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.statements import (
    BODY,
    CLAIMED_PIECES,
    CLAIMED_VERSION,
    EXTENTS,
    HOLDERS,
    MOVE_EXTENTS,
    MOVE_PIECE,
    MOVE_SHARED,
    MOVE_VERSION,
    PIECE,
)
from sluice_s3.app.index.upkeep_rows import BlobReference, RecordMove, ReferenceHint
from sluice_s3.app.index.upkeep_statements import ADD_DEAD
from sluice_s3.app.index.version_statements import CLAIMED_OTHERS

Holders = tuple[BlobReference, ...]
LOOKED_AT = 4
"""Older versions of a key, from the time in the reference hint on, to search for the record."""


def find_holders(suspects: Sequence[ReferenceHint]) -> Transaction[dict[str, Holders]]:
    """Return the holders of records whose references are all where the hints say.

    Omits records with other references.
    """
    found: dict[str, Holders] = {}
    for suspect in suspects:
        holders = yield from (_in_upload(suspect) if suspect.upload else _in_bucket(suspect))
        if holders and len(holders) == (yield from _count(suspect.locator)):
            found[suspect.locator] = holders
    return found


def _count(locator: str) -> Transaction[int]:
    rows = yield HOLDERS, (locator,)
    return int(rows[0][0]) if rows else 1


def _in_bucket(suspect: ReferenceHint) -> Transaction[Holders]:
    rows = yield CLAIMED_VERSION, (suspect.bucket_id, suspect.key)
    if suspect.at and suspect.locator not in [body for _, body in rows]:
        rows = yield CLAIMED_OTHERS, (suspect.bucket_id, suspect.key, suspect.at, LOOKED_AT)
    return tuple(BlobReference("version", seq) for seq, body in rows if body == suspect.locator)


def _in_upload(suspect: ReferenceHint) -> Transaction[Holders]:
    rows = yield EXTENTS, (suspect.upload, suspect.part)
    held = [BlobReference("part", suspect.upload, suspect.part)] * (_extents(rows).count(suspect.locator))
    rows = yield CLAIMED_PIECES, (suspect.upload, suspect.part, suspect.locator)
    return (*held, *(BlobReference("piece", suspect.upload, start, suspect.part) for (start,) in rows))


def _extents(rows: list[tuple[str]]) -> list[str]:
    return [locator for locator, _, _ in orjson.loads(rows[0][0])] if rows else []


def move_records(moves: Sequence[RecordMove]) -> Transaction[list[bool]]:
    """Move records in all rows that reference them.

    Returns False for a record whose holders have changed. The place that no row references afterwards, the old or the
    new one, counts as dead at once.
    """
    answers: list[bool] = []
    dead: dict[int, int] = {}
    for move in moves:
        still = yield from _still_held(move)
        if still:
            yield from _rewrite(move)
        pack = move.old_pack if still else move.new_pack
        dead[pack] = dead.get(pack, 0) + move.total
        answers.append(still)
    yield ADD_DEAD, [(size, pack) for pack, size in dead.items()]
    return answers


def _still_held(move: RecordMove) -> Transaction[bool]:
    """Return whether the given holders still reference the record, and no others do."""
    if len(move.holders) != (yield from _count(move.old)):
        return False
    for holder in set(move.holders):
        given = move.holders.count(holder)
        if holder.kind == "version":
            rows = yield BODY, (holder.first,)
            found = [body for (body,) in rows].count(move.old)
        elif holder.kind == "part":
            found = _extents((yield EXTENTS, (holder.first, holder.second))).count(move.old)
        else:
            rows = yield PIECE, (holder.first, holder.second, holder.third)
            found = [locator for (locator,) in rows].count(move.old)
        if found != given:
            return False
    return bool(move.holders)


def _rewrite(move: RecordMove) -> Transaction[None]:
    for holder in set(move.holders):
        if holder.kind == "version":
            yield MOVE_VERSION, (move.new, holder.first)
        elif holder.kind == "part":
            rows = yield EXTENTS, (holder.first, holder.second)
            extents = [
                (move.new if locator == move.old else locator, offset, size)
                for locator, offset, size in orjson.loads(rows[0][0])
            ]
            yield MOVE_EXTENTS, (orjson.dumps(extents).decode(), holder.first, holder.second)
        else:
            yield MOVE_PIECE, (move.new, holder.first, holder.second, holder.third)
    if len(move.holders) > 1 or (yield HOLDERS, (move.old,)):
        yield MOVE_SHARED, (move.new, move.old)
