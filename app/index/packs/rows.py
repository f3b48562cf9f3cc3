"""The row of a pack."""

from __future__ import annotations

from typing import NamedTuple


class Pack(NamedTuple):
    """A file of many small blobs, written by one incarnation."""

    id: int
    incarnation: int
    sealed: int
    """0 while it is being written; else see `SEALED`, `RETIRED` and `SWEPT` in the schema."""
    size: int
    """Bytes; 0 until it is sealed."""
    dead: int
    """Bytes of records that no row references."""
    store: str = "default"
