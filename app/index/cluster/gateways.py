"""What each writer says of the gateway that it belongs to: a note that goes with the writer."""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.index.cluster.statements import REMOVE_WRITER_NOTE
from sluice_s3.app.index.cluster.transactions import beats
from sluice_s3.app.index.meta.transactions import notes
from sluice_s3.app.index.sql.transaction import Transaction

WRITER_NOTE = "writer:"
"""Prefix of the names of these notes; the number of the incarnation follows."""


class NotedWriter(NamedTuple):
    """A writer, its last heartbeat, and what it says of its gateway (JSON, or empty)."""

    beat: Beat
    note: str


def noted_writers() -> Transaction[list[NotedWriter]]:
    """Return all writers, oldest first."""
    found = yield from notes(WRITER_NOTE)
    return [NotedWriter(beat, found.get(str(beat.incarnation), "")) for beat in (yield from beats())]


def forget_note(incarnation: int) -> Transaction[None]:
    """Remove the note of a writer that is being removed."""
    yield REMOVE_WRITER_NOTE, (f"{WRITER_NOTE}{incarnation}",)
