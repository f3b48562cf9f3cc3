"""What was written down beside the data, and the blobs that were found damaged."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import ConditionalRequestConflict, IndexBehind, LeaseLost, WriterDead
from sluice_s3.app.index.change_feed import ANNOUNCED, KEYRING, WATERMARK
from sluice_s3.app.index.rows import Journal
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms, of_store
from sluice_s3.app.index.statements import META, SET_META
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
    """Every change of a store's up to this number of the commit sequence is written down."""
    rows = yield META, (of_store(WATERMARK, store),)
    return int(rows[0][0]) if rows else 0


def announced(store: str = DEFAULT) -> Transaction[int]:
    """No journal of a store says anything behind this number, if the index is the newest of this data."""
    rows = yield META, (of_store(ANNOUNCED, store),)
    return max(int(rows[0][0]) if rows else 0, (yield from watermark(store)))


def announce(store: str, after: int, until: int) -> Transaction[None]:
    """A batch of changes from `after` to `until` is about to be written into a journal.

    Raises IndexBehind when the watermark is less than `after`: the index was replaced by an older state of it. Raises
    LeaseLost when it is more: another writer moved it, or an earlier commit of this one, which had been given up.
    """
    found = yield from watermark(store)
    if found > after:
        raise LeaseLost(name=f"journals of store {store}")
    if found < after:
        raise IndexBehind(reason=f"the watermark of store {store} is not {after} any more")
    yield SET_META, (of_store(ANNOUNCED, store), str(until))


def open_journal(incarnation: int, snapshot: int, store: str = DEFAULT) -> Transaction[int]:
    """Enter a new journal before its file is made; its id is nobody else's."""
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_JOURNAL, (number, snapshot, 0, 0, store)
    return number


def journals(store: str = DEFAULT) -> Transaction[list[Journal]]:
    """All journals of a store, oldest first."""
    rows = yield JOURNALS, (store,)
    return [Journal._make(row) for row in rows]


def advance_watermark(journal: Journal, until: int, settled: int) -> Transaction[None]:
    """Note that changes up to `until` are in journals; `journal` is as given.

    Nobody needs removals up to `settled` any more.
    """
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)
    yield SET_META, (of_store(WATERMARK, journal.store), str(until))
    yield REMOVE_REMOVALS, (settled, journal.store, journal.store)


def set_journal(journal: Journal) -> Transaction[None]:
    """What a journal holds by now."""
    yield SET_JOURNAL, (journal.snapshot, journal.bytes, journal.rows, journal.id)


def forget_journals(ids: Sequence[int]) -> Transaction[None]:
    """Remove journals whose files are gone."""
    yield REMOVE_JOURNAL, [(number,) for number in ids]


def quarantine() -> Transaction[list[tuple[str, str, int]]]:
    """Blobs that were found damaged: (locator, reason, milliseconds)."""
    return [tuple(row) for row in (yield QUARANTINE, ())]


def add_quarantine(locator: str, reason: str) -> Transaction[None]:
    """A blob was found damaged."""
    yield ADD_QUARANTINE, (locator, reason, now_ms())


def remove_quarantine(locators: Sequence[str]) -> Transaction[None]:
    """Blobs that are what they should be, or are gone."""
    yield REMOVE_QUARANTINE, [(locator,) for locator in locators]


def note(name: str) -> Transaction[str]:
    """What a job wrote down for the next one, empty when nothing."""
    rows = yield META, (name,)
    return str(rows[0][0]) if rows else ""


def set_note(name: str, value: str) -> Transaction[None]:
    """Write something down for the next job."""
    yield SET_META, (name, value)


def replace_keyring(old: str, new: str) -> Transaction[None]:
    """Put another key ring in the place of `old` (empty for none). Raises ConditionalRequestConflict when it is not."""
    if (yield from note(KEYRING)) != old:
        raise ConditionalRequestConflict()
    yield SET_META, (KEYRING, new)
