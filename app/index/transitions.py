"""Versions that get another storage class, and with it another place; or another place alone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from app.index.schema import CURRENT, NONCURRENT

OBJECT, OLDER = (CURRENT,), (NONCURRENT,)
EITHER = OBJECT + OLDER
"""The states that a version may have."""


class Archive(Enum):
    """What becomes of the blobs at the old places."""

    NONE = "let go"
    KEPT = "kept"
    """In the archive, beside the copies that are read from now on."""
    LEFT = "taken again"
    """The version is where they were kept, and its copies go."""


class Note(NamedTuple):
    """What becomes of a note of the index in the same step."""

    name: str
    seen: str
    """It is forgotten if it is this, and `value` is empty."""
    value: str


class Reclassed(NamedTuple):
    """A version that is to be of another class or place, as it was found."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]
    """Those that it may have."""
    body: str
    storage_class: str
    """The new one."""
    places: Mapping[str, str]
    """Where each blob of it is from now on, by where it was; empty when they stay."""
    size: int = 0
    etag: str = ""
    headers: str | None = None
    """The new ones; None: they stay."""
    note: Note | None = None
    archive: Archive = Archive.NONE
