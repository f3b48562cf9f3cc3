"""The state of the journals, and the key ring that they hold."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import ConditionalRequestConflict, IndexBehind, LeaseLost, WriterDead
from sluice_s3.app.index.journals.rows import ANNOUNCED, KEYRING, SETTLED, WATERMARK, Journal
from sluice_s3.app.index.journals.statements import (
    ADD_JOURNAL,
    JOURNALS,
    REMOVE_JOURNAL,
    REMOVE_TOMBSTONES,
    SET_JOURNAL,
)
from sluice_s3.app.index.meta.statements import META, SET_META
from sluice_s3.app.index.meta.transactions import note
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, of_store


def watermark(store: str = DEFAULT) -> Transaction[int]:
    """Return the number up to which all changes of a store are journaled."""
    rows = yield META, (of_store(WATERMARK, store),)
    return int(rows[0][0]) if rows else 0


def announced(store: str = DEFAULT) -> Transaction[int]:
    """Return the number that no journal record of a store exceeds.

    That holds if the index is the newest of this data.
    """
    rows = yield META, (of_store(ANNOUNCED, store),)
    return max(int(rows[0][0]) if rows else 0, (yield from watermark(store)))


def announce(store: str, after: int, until: int) -> Transaction[None]:
    """Record that changes from `after` to `until` are about to be journaled.

    Raises IndexBehind when the watermark is less than `after`: the index was replaced by an older state. Raises
    LeaseLost when it is greater: another writer moved it, or an earlier commit of this writer that it had given up.
    """
    current = yield from watermark(store)
    if current > after:
        raise LeaseLost(name=f"journals of store {store}")
    if current < after:
        raise IndexBehind(reason=f"the watermark of store {store} is not {after} any more")
    yield SET_META, (of_store(ANNOUNCED, store), str(until))


def open_journal(incarnation: int, snapshot: int, store: str = DEFAULT) -> Transaction[int]:
    """Register a new journal with a unique id before its file is created.

    Raises WriterDead without an incarnation.
    """
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_JOURNAL, (number, snapshot, 0, 0, store)
    return number


def journals(store: str = DEFAULT) -> Transaction[list[Journal]]:
    """Return all journals of a store, oldest first."""
    rows = yield JOURNALS, (store,)
    return [Journal._make(row) for row in rows]


def advance_watermark(journal: Journal, until: int, settled: int) -> Transaction[None]:
    """Record that changes up to `until` are journaled, and update the row of `journal`.

    Removes tombstones up to `settled`, which the journals have as their settled number: they are no longer needed.
    """
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)
    yield SET_META, (of_store(WATERMARK, journal.store), str(until))
    yield SET_META, (of_store(SETTLED, journal.store), str(settled))
    yield REMOVE_TOMBSTONES, (settled, journal.store, journal.store)


def set_journal(journal: Journal) -> Transaction[None]:
    """Update the row of a journal to its current contents."""
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)


def forget_journals(ids: Sequence[int]) -> Transaction[None]:
    """Remove journals whose files are deleted."""
    yield REMOVE_JOURNAL, [(number,) for number in ids]


def replace_keyring(old: str, new: str) -> Transaction[None]:
    """Replace the key ring `old` (empty for none).

    Raises ConditionalRequestConflict when the key ring is another one.
    """
    if (yield from note(KEYRING)) != old:
        raise ConditionalRequestConflict()
    yield SET_META, (KEYRING, new)
