"""Versions that get another storage class with another place, or another place alone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from sluice_s3.app.index.schema.tables import CURRENT, NONCURRENT

OBJECT, OLDER = (CURRENT,), (NONCURRENT,)
EITHER = OBJECT + OLDER
"""The states that a version may have."""


class Archive(Enum):
    """What happens to the blobs at the old places."""

    NONE = "let go"
    KEPT = "kept"
    """They stay in the archive, beside the copies that are read from now on."""
    LEFT = "taken again"
    """The version returns to its archived blobs, and its copies go."""


class MetaUpdate(NamedTuple):
    """A change of a note of the index in the same step."""

    name: str
    seen: str
    """The note is removed if its value is this, and `value` is empty."""
    value: str


class TransitionEntry(NamedTuple):
    """A version that gets another class or place, as it was found."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]
    """Those that it may have."""
    body: str
    storage_class: str
    """The new one."""
    locators: Mapping[str, str]
    """New place of each of its blobs, by the old one; empty when they stay."""
    size: int = 0
    etag: str = ""
    headers: str | None = None
    """The new ones; None: they stay."""
    note: MetaUpdate | None = None
    archive: Archive = Archive.NONE
