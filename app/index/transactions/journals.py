"""The state of the journals, and the quarantine of damaged blobs."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import ConditionalRequestConflict, IndexBehind, LeaseLost, WriterDead
from sluice_s3.app.index.change_feed import ANNOUNCED, KEYRING, WATERMARK
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms, of_store
from sluice_s3.app.index.statements import META, SET_META
from sluice_s3.app.index.upkeep_rows import Journal
from sluice_s3.app.index.upkeep_statements import (
    ADD_JOURNAL,
    ADD_QUARANTINE,
    JOURNALS,
    QUARANTINE,
    REMOVE_JOURNAL,
    REMOVE_QUARANTINE,
    REMOVE_REMOVALS,
    SET_JOURNAL,
)


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
    found = yield from watermark(store)
    if found > after:
        raise LeaseLost(name=f"journals of store {store}")
    if found < after:
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

    Removes tombstones up to `settled`, which are no longer needed.
    """
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)
    yield SET_META, (of_store(WATERMARK, journal.store), str(until))
    yield REMOVE_REMOVALS, (settled, journal.store, journal.store)


def set_journal(journal: Journal) -> Transaction[None]:
    """Update the row of a journal to its current contents."""
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)


def forget_journals(ids: Sequence[int]) -> Transaction[None]:
    """Remove journals whose files are deleted."""
    yield REMOVE_JOURNAL, [(number,) for number in ids]


def quarantine() -> Transaction[list[tuple[str, str, int]]]:
    """Return damaged blobs as (locator, reason, milliseconds since the epoch)."""
    return [tuple(row) for row in (yield QUARANTINE, ())]


def add_quarantine(locator: str, reason: str) -> Transaction[None]:
    """Quarantine a damaged blob."""
    yield ADD_QUARANTINE, (locator, reason, now_ms())


def remove_quarantine(locators: Sequence[str]) -> Transaction[None]:
    """Remove blobs from quarantine that are intact or deleted."""
    yield REMOVE_QUARANTINE, [(locator,) for locator in locators]


def note(name: str) -> Transaction[str]:
    """Return a note that a job left for the next one, or an empty text."""
    rows = yield META, (name,)
    return str(rows[0][0]) if rows else ""


def set_note(name: str, value: str) -> Transaction[None]:
    """Store a note for the next job."""
    yield SET_META, (name, value)


def replace_keyring(old: str, new: str) -> Transaction[None]:
    """Replace the key ring `old` (empty for none).

    Raises ConditionalRequestConflict when the key ring is another one.
    """
    if (yield from note(KEYRING)) != old:
        raise ConditionalRequestConflict()
    yield SET_META, (KEYRING, new)
