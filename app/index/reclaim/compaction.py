"""Compaction: finds the rows that reference a record, and moves them to its new place."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluice_s3.app.index.packs.statements import ADD_DEAD
from sluice_s3.app.index.reclaim.rows import BlobReference, RecordMove, ReferenceHint
from sluice_s3.app.index.reclaim.statements import (
    BODY,
    EXTENTS,
    HINTED_CURRENT,
    HINTED_NONCURRENT,
    HINTED_PIECES,
    MOVE_EXTENTS,
    MOVE_PIECE,
    MOVE_REFCOUNT,
    MOVE_VERSION,
    PIECE,
    REFERENCE_COUNT,
)
from sluice_s3.app.index.sql.transaction import Transaction

Holders = tuple[BlobReference, ...]
MAX_NONCURRENT_LOOKUPS = 4
"""Older versions of a key, from the time in the reference hint on, to search for the record."""


def find_holders(hints: Sequence[ReferenceHint]) -> Transaction[dict[str, Holders]]:
    """Return the holders of records whose references are all where the hints say.

    Omits records with other references.
    """
    references: dict[str, Holders] = {}
    for hint in hints:
        holders = yield from (_references_in_upload(hint) if hint.upload else _references_in_bucket(hint))
        if holders and len(holders) == (yield from _count(hint.locator)):
            references[hint.locator] = holders
    return references


def _count(locator: str) -> Transaction[int]:
    rows = yield REFERENCE_COUNT, (locator,)
    return int(rows[0][0]) if rows else 1


def _references_in_bucket(hint: ReferenceHint) -> Transaction[Holders]:
    rows = yield HINTED_CURRENT, (hint.bucket_id, hint.key)
    if hint.at and hint.locator not in [body for _, body in rows]:
        rows = yield HINTED_NONCURRENT, (hint.bucket_id, hint.key, hint.at, MAX_NONCURRENT_LOOKUPS)
    return tuple(BlobReference("version", seq) for seq, body in rows if body == hint.locator)


def _references_in_upload(hint: ReferenceHint) -> Transaction[Holders]:
    rows = yield EXTENTS, (hint.upload, hint.part)
    part_references = [BlobReference("part", hint.upload, hint.part)] * (_extents(rows).count(hint.locator))
    rows = yield HINTED_PIECES, (hint.upload, hint.part, hint.locator)
    return (*part_references, *(BlobReference("piece", hint.upload, start, hint.part) for (start,) in rows))


def _extents(rows: list[tuple[str]]) -> list[str]:
    return [locator for locator, _, _ in orjson.loads(rows[0][0])] if rows else []


def move_records(moves: Sequence[RecordMove]) -> Transaction[list[bool]]:
    """Move records in all rows that reference them.

    Returns False for a record whose holders have changed. The place that no row references afterwards, the old or the
    new one, counts as dead at once.
    """
    moved: list[bool] = []
    dead: dict[int, int] = {}
    for move in moves:
        is_unchanged = yield from _is_unchanged(move)
        if is_unchanged:
            yield from _rewrite(move)
        pack = move.old_pack if is_unchanged else move.new_pack
        dead[pack] = dead.get(pack, 0) + move.total
        moved.append(is_unchanged)
    yield ADD_DEAD, [(size, pack) for pack, size in dead.items()]
    return moved


def _is_unchanged(move: RecordMove) -> Transaction[bool]:
    """Return whether the given holders still reference the record, and no others do."""
    if len(move.holders) != (yield from _count(move.old)):
        return False
    for holder in set(move.holders):
        expected = move.holders.count(holder)
        if holder.kind == "version":
            rows = yield BODY, (holder.first,)
            actual = [body for (body,) in rows].count(move.old)
        elif holder.kind == "part":
            actual = _extents((yield EXTENTS, (holder.first, holder.second))).count(move.old)
        else:
            rows = yield PIECE, (holder.first, holder.second, holder.third)
            actual = [locator for (locator,) in rows].count(move.old)
        if actual != expected:
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
    if len(move.holders) > 1 or (yield REFERENCE_COUNT, (move.old,)):
        yield MOVE_REFCOUNT, (move.new, move.old)
