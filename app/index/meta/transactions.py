"""Meta values: notes of jobs, and the identity of the stores that the index belongs to."""

from __future__ import annotations

from collections.abc import Callable

from sluice_s3.app.index.meta.statements import META, NEWEST_VERSION, NOTES, SET_META, STORE_IDENTITIES
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import Transaction, of_store

STORE_IDENTITY_NOTE = "store"


def identities() -> Transaction[dict[str, tuple[str, int]]]:
    """Return the UUID and generation of each store that this index belongs to, by name."""
    stores = {}
    bounds = of_store(STORE_IDENTITY_NOTE, ""), of_store(STORE_IDENTITY_NOTE, "\x7f")
    for note, value in (yield STORE_IDENTITIES, (STORE_IDENTITY_NOTE, *bounds)):
        store, _, generation = value.partition(" ")
        stores[note.partition(":")[2] or DEFAULT] = store, int(generation)
    return stores


def set_identity(store: str, generation: int, name: str = DEFAULT) -> Transaction[None]:
    """Bind this index to a store."""
    yield SET_META, (of_store(STORE_IDENTITY_NOTE, name), f"{store} {generation}")


def any_row() -> Transaction[None]:
    """Read a row of the table that every request reads, if it has one."""
    yield NEWEST_VERSION, ()


def note(name: str) -> Transaction[str]:
    """Return a note that a job left for the next one, or an empty text."""
    rows = yield META, (name,)
    return str(rows[0][0]) if rows else ""


def set_note(name: str, value: str) -> Transaction[None]:
    """Store a note for the next job."""
    yield SET_META, (name, value)


def notes(prefix: str) -> Transaction[dict[str, str]]:
    """Return the notes whose names begin with `prefix`, in ASCII, by the rest of their names."""
    rows = yield NOTES, (prefix, prefix + "\x7f")
    return {name[len(prefix) :]: value for name, value in rows}


def change_note(name: str, function: Callable[[str], str]) -> Transaction[None]:
    """Replace a note by what a function makes of it, which may be called more than once."""
    yield SET_META, (name, function((yield from note(name))))
