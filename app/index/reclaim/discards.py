"""The discard queue: unreferenced bodies, until no request can be reading them."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.packs.statements import REMOVE_PACK
from sluice_s3.app.index.packs.transactions import add_dead
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.index.reclaim.statements import ADD_DISCARD, DISCARDS, QUEUED_DISCARDS, REMOVE_DISCARD
from sluice_s3.app.index.sql.transaction import DRAW, Transaction

Discarded = tuple[int, int, int]
"""A queue entry whose bytes are removed: its id, its pack and its size in bytes there.

The pack is 0 for a blob with a file of its own. The size is 0 for a whole pack.
"""


def discards(after: int, limit: int) -> Transaction[list[QueuedDiscard]]:
    """Return the oldest entries of the discard queue with ids greater than `after`."""
    rows = yield DISCARDS, (after, limit)
    return [QueuedDiscard._make(row) for row in rows]


def quarantine_orphans(locators: Sequence[str], until_ms: int) -> Transaction[None]:
    """Queue unreferenced bodies for discard at `until_ms` (milliseconds since the epoch) or later."""
    for locator in locators:
        number = yield DRAW
        yield ADD_DISCARD, (number, locator, -until_ms)


def forget_discards(discarded: Sequence[Discarded]) -> Transaction[None]:
    """Remove entries of removed blobs, and count their bytes dead in the pack.

    See `Discarded`. It may be called again for the same entries, after a commit whose outcome was unknown. An entry
    that is no longer in the queue was counted before, and is skipped. A count of dead bytes that is too high would
    remove a pack that still holds live records.
    """
    if not discarded:
        return
    numbers = [number for number, _, _ in discarded]
    queued = {number for (number,) in (yield QUEUED_DISCARDS, (min(numbers), max(numbers)))}
    dead: dict[int, int] = {}
    for number, pack_id, size in discarded:
        if number not in queued:
            continue
        if size:
            dead[pack_id] = dead.get(pack_id, 0) + size
        elif pack_id:
            yield REMOVE_PACK, (pack_id,)
    yield REMOVE_DISCARD, [(number,) for number in numbers]
    yield from add_dead(list(dead.items()))
