"""The discard queue: bodies that no row holds, until nobody can be reading them."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.rows import QueuedDiscard
from sluice_s3.app.index.sql.transaction import DRAW, Transaction
from sluice_s3.app.index.statements import ADD_DISCARD, DISCARDS, QUEUED, REMOVE_DISCARD
from sluice_s3.app.index.transactions.packs import add_dead
from sluice_s3.app.index.upkeep_statements import REMOVE_PACK

Gone = tuple[int, int, int]
"""An entry of the queue whose bytes are gone, the pack that they lay in and how many they are there.

Pack 0 for a blob that had a file of its own, bytes 0 for a pack as a whole."""


def discards(after: int, limit: int) -> Transaction[list[QueuedDiscard]]:
    """Read the oldest entries of the discard queue with ids greater than `after`."""
    rows = yield DISCARDS, (after, limit)
    return [QueuedDiscard._make(row) for row in rows]


def quarantine_orphans(locators: Sequence[str], until_ms: int) -> Transaction[None]:
    """Queue bodies that no row holds for discard, to be taken away at `until_ms` (since the epoch) at the earliest."""
    for locator in locators:
        number = yield DRAW
        yield ADD_DISCARD, (number, locator, -until_ms)


def forget_discards(gone: Sequence[Gone]) -> Transaction[None]:
    """Remove entries whose blobs are gone, and count their bytes dead in the pack; see `Gone`.

    It may be called again for the same entries. One that is not there any more was counted before: the outcome of
    that commit was not known. More dead than there are would end in the burial of a pack that still holds
    something.
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
