"""The note of the index with the progress of a store's scrubber: see `app.jobs.integrity.scrub`."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from sluice_s3.app.index import Index
from sluice_s3.app.index.sql.transaction import of_store


class ScrubProgress(NamedTuple):
    """How far a pass is."""

    began: int
    """Milliseconds since the epoch; 0 before the first pass."""
    kind: str = ""
    """The kind of rows that are read; empty after the end of a pass."""
    position: tuple[int, int, int] | None = None
    """The last row that was read."""


def progress_note(store: str) -> str:
    """Return the name of a store's note."""
    return of_store("scrub", store)


def render_progress(progress: ScrubProgress) -> str:
    """Return the text of a note."""
    began, kind, position = progress
    return orjson.dumps([began] if position is None else [began, kind, *position]).decode()


async def read_progress(index: Index, store: str) -> ScrubProgress:
    """Return how far the pass of a store is. Raises DomainError."""
    began, *rest = orjson.loads(await index.note(progress_note(store)) or b"[0]")
    if not rest:
        return ScrubProgress(began)
    kind, first, second, third = rest
    return ScrubProgress(began, kind, (first, second, third))
