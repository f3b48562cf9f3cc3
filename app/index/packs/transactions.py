"""Packs: their writers, and the number of their dead bytes."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import WriterDead
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.objects.rows import NULL_VERSION
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.packs.statements import (
    ADD_DEAD,
    ADD_PACK,
    ALL_PACKS,
    PACKS_OF,
    REMOVE_PACK,
    RETIRE_PACK,
    SEAL_PACK,
    SET_DEAD,
)
from sluice_s3.app.index.reclaim.statements import ADD_DISCARD
from sluice_s3.app.index.schema.tables import DEFAULT, RETIRED, SEALED, SWEPT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms

Dead = Sequence[tuple[int, int]]
"""Pairs of a pack and the number of its bytes that died."""


def open_pack(incarnation: int, store: str = DEFAULT) -> Transaction[int]:
    """Register a new pack of an incarnation on a store, with a unique id.

    Raises WriterDead without an incarnation.
    """
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_PACK, (number, incarnation, 0, 0, 0, store)
    return number


def seal_pack(pack_id: int, size: int, swept: bool = False) -> Transaction[None]:
    """Record that a pack of `size` bytes is sealed.

    `swept` says that its writer died, so that its dead bytes are still to be counted.
    """
    yield SEAL_PACK, (SWEPT if swept else SEALED, size, pack_id)


def packs_of(incarnation: int) -> Transaction[list[Pack]]:
    """Return the packs of an incarnation."""
    rows = yield PACKS_OF, (incarnation,)
    return [Pack._make(row) for row in rows]


def all_packs() -> Transaction[list[Pack]]:
    """Return all packs."""
    return [Pack._make(row) for row in (yield ALL_PACKS, ())]


def correct_dead(pack_id: int, counted: int, actual: int) -> Transaction[bool]:
    """Set a sealed pack's count of dead bytes to `actual`.

    Returns False when the count is no longer `counted`.
    """
    return bool((yield SET_DEAD, (SEALED, actual, pack_id, counted)))


def retire_pack(pack_id: int, overhead: int, locator: str) -> Transaction[bool]:
    """Queue a sealed pack for discard when all its bytes except `overhead` are dead.

    Returns False otherwise.
    """
    if not (yield RETIRE_PACK, (RETIRED, pack_id, overhead)):
        return False
    number = yield DRAW
    yield ADD_DISCARD, (number, locator, now_ms())
    return True


def add_dead(dead: Dead) -> Transaction[None]:
    """Count bytes (pack, bytes) of records that no row holds any more, or ever held."""
    yield ADD_DEAD, [(size, pack_id) for pack_id, size in dead]


def refuse_blobs(refused: Sequence[tuple[str, int, int]], store: str = DEFAULT) -> Transaction[None]:
    """Add tombstones for records (locator, pack, bytes) whose commit was refused.

    They are dead and never restored.
    """
    at = now_ms()
    for locator, pack_id, size in refused:
        number = yield DRAW
        yield ADD_TOMBSTONE, (number, "blob", 0, locator, at, store, NULL_VERSION)
        yield ADD_DEAD, (size, pack_id)


def forget_pack(pack_id: int) -> Transaction[None]:
    """Remove a pack whose file is deleted."""
    yield REMOVE_PACK, (pack_id,)
