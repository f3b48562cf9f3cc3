"""What was written down beside the data, and the blobs that were found damaged."""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import ConditionalRequestConflict, WriterDead
from app.index.decisions import KEYRING, WATERMARK
from app.index.rows import Journal
from app.index.statements import META, SET_META
from app.index.steps import DRAW, Transaction, now_ms, of_store
from app.index.upkeep_statements import (
    ADD_JOURNAL,
    ADD_QUARANTINE,
    JOURNALS,
    QUARANTINE,
    REMOVE_JOURNAL,
    REMOVE_QUARANTINE,
    REMOVE_REMOVALS,
    SET_JOURNAL,
)


def watermark(store: str) -> Transaction[int]:
    """Every change of a store's up to this number of the commit sequence is written down."""
    rows = yield META, (of_store(WATERMARK, store),)
    return int(rows[0][0]) if rows else 0


def open_journal(incarnation: int, snapshot: int, store: str) -> Transaction[int]:
    """Enter a new journal before its file is made; its id is nobody else's."""
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number: int = yield DRAW
    yield ADD_JOURNAL, (number, snapshot, 0, 0, store)
    return number


def journals(store: str) -> Transaction[list[Journal]]:
    """All journals of a store, oldest first."""
    rows = yield JOURNALS, (store,)
    return [Journal._make(row) for row in rows]


def decided(journal: Journal, until: int, settled: int) -> Transaction[None]:
    """Changes up to `until` are written down, and nobody needs removals up to `settled` any more."""
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


def change_keyring(old: str, new: str) -> Transaction[None]:
    """Put another key ring in the place of `old` (empty for none). Raises ConditionalRequestConflict when it is not."""
    if (yield from note(KEYRING)) != old:
        raise ConditionalRequestConflict()
    yield SET_META, (KEYRING, new)
