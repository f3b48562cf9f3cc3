"""Rows and meta values of the journals."""

from __future__ import annotations

from typing import NamedTuple

ROOT_NOTE = "root"
"""Name of the note that holds the UUID from which the first account's id is derived."""
WATERMARK = "decided"
"""Name of each store's note that holds its watermark: every change up to this number is in its journals."""
SETTLED = "settled"
"""Name of each store's note: bodies whose headers name a smaller drawn number need a journal record to be restored."""
ANNOUNCED = "announced"
"""Name of each store's note that holds the end of the batch that is being journaled, or was journaled last."""
KEYRING = "keyring"
"""Name of the note that holds the sealed key ring."""
KEYRING_JOURNALED = "keyring-kept"
"""Name of each store's note that holds the number of the key ring in its journals."""
WHOLE = 2
"""`Journal.snapshot` of a complete snapshot: it replaces all journals before it."""


class Changes(NamedTuple):
    """Changes between two numbers of the commit sequence.

    Rows are JSON arrays in the order of their columns.
    """

    until: int
    """Every change up to this number is in the batch."""
    more: bool
    number: int
    """The number of versions and tombstones, or a greater one."""
    versions: str
    removals: str
    uploads: list[int]
    """Uploads that versions among the changes reference, and that may be in no journal yet."""
    newest: int
    """The greatest number of a version at the time of the read. It may be below `until`."""


class Journal(NamedTuple):
    """A journal: a file beside the data that holds what the index committed."""

    id: int
    snapshot: int
    """0 for changes, 1 for an incomplete snapshot, 2 for a complete one."""
    bytes: int
    rows: int
    store: str = "default"
