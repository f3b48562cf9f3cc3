"""The row of a bucket."""

from __future__ import annotations

from typing import NamedTuple


class Bucket(NamedTuple):
    """A bucket.

    `id` is never reused for another bucket, whatever its name.
    """

    id: int
    name: str
    owner_id: str
    region: str
    created: int
    store: str = "default"
    """The store for new data."""
    source: str = ""
    """The store from which older data is being moved; empty for none."""
    moved: int = 0
    """The commit sequence number at which its last move began or ended, 0 without a move."""
    settings: str = ""
    """The settings: a JSON object by name of the setting; empty when nothing was ever configured."""
    versioning: int = 0
    """0 for a bucket that was never versioned; else see `ENABLED` and `SUSPENDED` in the schema."""
