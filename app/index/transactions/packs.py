"""Packs: who writes them, and how much of them no row holds any more."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import WriterDead
from sluice_s3.app.index.rows import NULL_VERSION, Pack
from sluice_s3.app.index.schema.tables import DEFAULT, RETIRED, SEALED, SWEPT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms
from sluice_s3.app.index.statements import ADD_DISCARD
from sluice_s3.app.index.upkeep_statements import (
    ADD_DEAD,
    ADD_PACK,
    ADD_REMOVAL,
    ALL_PACKS,
    PACKS_OF,
    REMOVE_PACK,
    RETIRE_PACK,
    SEAL_PACK,
    SET_DEAD,
)

Dead = Sequence[tuple[int, int]]
"""Packs and how many of their bytes died."""


def open_pack(incarnation: int, store: str = DEFAULT) -> Transaction[int]:
    """A new pack of an incarnation on a store; its id is nobody else's."""
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_PACK, (number, incarnation, 0, 0, 0, store)
    return number


def seal_pack(pack_id: int, size: int, swept: bool = False) -> Transaction[None]:
    """Note that nothing is added any more to a pack of `size` bytes.

    `swept`: its writer died, and what is dead in it is still to be counted.
    """
    yield SEAL_PACK, (SWEPT if swept else SEALED, size, pack_id)


def packs_of(incarnation: int) -> Transaction[list[Pack]]:
    """Packs of an incarnation that are not forgotten."""
    rows = yield PACKS_OF, (incarnation,)
    return [Pack._make(row) for row in rows]


def all_packs() -> Transaction[list[Pack]]:
    """Every pack."""
    return [Pack._make(row) for row in (yield ALL_PACKS, ())]


def correct_dead(pack_id: int, seen: int, true: int) -> Transaction[bool]:
    """Set the count of a sealed pack's dead bytes to `true`; False when it is not `seen` any more."""
    return bool((yield SET_DEAD, (SEALED, true, pack_id, seen)))


def retire_pack(pack_id: int, overhead: int, locator: str) -> Transaction[bool]:
    """Queue a sealed pack for discard whose every byte (but `overhead`) is counted dead; False when it is not so."""
    if not (yield RETIRE_PACK, (RETIRED, pack_id, overhead)):
        return False
    number = yield DRAW
    yield ADD_DISCARD, (number, locator, now_ms())
    return True


def add_dead(dead: Dead) -> Transaction[None]:
    """Count bytes (pack, bytes) of records that no row holds any more, or ever held."""
    yield ADD_DEAD, [(size, pack_id) for pack_id, size in dead]


def refuse_blobs(refused: Sequence[tuple[str, int, int]], store: str = DEFAULT) -> Transaction[None]:
    """Write down records (locator, pack, bytes) of a store whose commit was refused: dead, and never to be restored."""
    at = now_ms()
    for locator, pack_id, size in refused:
        number = yield DRAW
        yield ADD_REMOVAL, (number, "blob", 0, locator, at, store, NULL_VERSION)
        yield ADD_DEAD, (size, pack_id)


def forget_pack(pack_id: int) -> Transaction[None]:
    """Remove a pack whose file is gone."""
    yield REMOVE_PACK, (pack_id,)
