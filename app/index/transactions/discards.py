"""The discard queue: bodies that no row holds, until nobody can be reading them."""

from __future__ import annotations

from collections.abc import Sequence

from app.index.rows import Discard
from app.index.statements import DISCARDS, QUEUED, REMOVE_DISCARD
from app.index.steps import Transaction
from app.index.transactions.packs import add_dead
from app.index.upkeep_statements import REMOVE_PACK

Gone = tuple[int, int, int]
"""An entry of the queue whose bytes are gone, the pack that they lay in and how many they are there.

Pack 0 for a blob that had a file of its own, bytes 0 for a pack as a whole."""


def discards(after: int, limit: int) -> Transaction[list[Discard]]:
    """The oldest entries behind `after`."""
    rows = yield DISCARDS, (after, limit)
    return [Discard._make(row) for row in rows]


def forget_discards(gone: Sequence[Gone]) -> Transaction[None]:
    """Remove entries, and count the bytes of packs that died with them.

    An entry that is not there any more was counted before: the outcome of that commit was not known, and it is asked
    again. More dead than there are would end in the burial of a pack that still holds something.
    """
    if not gone:
        return
    numbers = [number for number, _, _ in gone]
    queued = {number for (number,) in (yield QUEUED, (min(numbers), max(numbers)))}
    dead: dict[int, int] = {}
    for number, pack_id, size in gone:
        if number not in queued:
            continue
        if size:
            dead[pack_id] = dead.get(pack_id, 0) + size
        elif pack_id:
            yield REMOVE_PACK, (pack_id,)
    yield REMOVE_DISCARD, [(number,) for number in numbers]
    yield from add_dead(list(dead.items()))
