"""The discard queue: bodies that no row holds, until nobody can be reading them."""

from __future__ import annotations

from collections.abc import Sequence

from app.index.rows import Discard
from app.index.statements import DISCARDS, REMOVE_DISCARD
from app.index.steps import Transaction
from app.index.transactions.packs import Dead, add_dead


def discards(after: int, limit: int) -> Transaction[list[Discard]]:
    """The oldest entries behind `after`."""
    rows = yield DISCARDS, (after, limit)
    return [Discard._make(row) for row in rows]


def forget_discards(ids: Sequence[int], dead: Dead = ()) -> Transaction[None]:
    """Remove entries, and count the bytes of packs that died with them."""
    yield REMOVE_DISCARD, [(number,) for number in ids]
    yield from add_dead(dead)
