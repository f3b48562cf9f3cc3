"""The note of the index that says why a store's journals cannot be written: see `app.jobs.journals.health`."""

from __future__ import annotations

import orjson

from sluice_s3.app.index import Index
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.store.store import JournalFailure


def failure_note(store: str) -> str:
    """Return the name of a store's note."""
    return of_store("journal-failure", store)


def render_failure(failure: JournalFailure) -> str:
    """Return the text of a note."""
    return orjson.dumps(list(failure)).decode()


async def read_failure(index: Index, store: str) -> JournalFailure | None:
    """Return why the journals of a store cannot be written; None while they can. Raises DomainError."""
    note = await index.note(failure_note(store))
    return JournalFailure(*orjson.loads(note)) if note else None
