"""A version that lifecycle rules remove, and the states that it may have."""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.index.schema import tables


class ExpireEntry(NamedTuple):
    """A version to remove.

    `states` are the states that it may have: the rules judged it as one of these.
    """

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]


OBJECT, OLDER, LONE = (tables.CURRENT,), (tables.NONCURRENT, tables.OLD_MARKER), (tables.MARKER,)
"""States of a judged version: the current object; an older version or delete marker; a delete marker that is the last
version."""
