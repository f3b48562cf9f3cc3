"""Packs: who writes them, and how much of them no row holds any more."""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import WriterDead
from app.index.rows import Pack
from app.index.statements import ADD_DEAD, ADD_PACK, ADD_REMOVAL, PACKS_OF, REMOVE_PACK, SEAL_PACK
from app.index.steps import DRAW, Transaction, now_ms

Dead = Sequence[tuple[int, int]]
"""Packs and how many of their bytes died."""


def open_pack(incarnation: int) -> Transaction[int]:
    """A new pack of an incarnation; its id is nobody else's."""
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_PACK, (number, incarnation, 0, 0, 0)
    return number


def seal_pack(pack_id: int, size: int) -> Transaction[None]:
    """Nothing is added to a pack any more."""
    yield SEAL_PACK, (1, size, pack_id)


def packs_of(incarnation: int) -> Transaction[list[Pack]]:
    """Packs of an incarnation that are not forgotten."""
    rows = yield PACKS_OF, (incarnation,)
    return [Pack._make(row) for row in rows]


def add_dead(dead: Dead) -> Transaction[None]:
    """Count bytes that no row holds any more."""
    yield ADD_DEAD, [(size, pack_id) for pack_id, size in dead]


def refuse_blobs(refused: Sequence[tuple[str, int, int]]) -> Transaction[None]:
    """Write down records (locator, pack, bytes) whose commit was refused: dead, and never to be restored."""
    at = now_ms()
    for locator, pack_id, size in refused:
        number = yield DRAW
        yield ADD_REMOVAL, (number, "blob", 0, locator, at)
        yield ADD_DEAD, (size, pack_id)


def forget_pack(pack_id: int) -> Transaction[None]:
    """Remove a pack whose file is gone."""
    yield REMOVE_PACK, (pack_id,)
