"""Versions that get another storage class or other places, and rows that get another blob."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.index.schema.tables import CURRENT, NONCURRENT

OBJECT, OLDER = (CURRENT,), (NONCURRENT,)
EITHER = OBJECT + OLDER
"""The states that a version may have."""


class Archive(Enum):
    """The fate of the blobs at the old places."""

    NONE = "let go"
    KEPT = "kept"
    """The blobs stay in the archive, beside the copies that are read from now on."""
    LEFT = "taken again"
    """The version returns to its archived blobs, and its copies are released."""


class MetaUpdate(NamedTuple):
    """A change of a note of the index in the same transaction."""

    name: str
    seen: str
    """The note is removed if its value is `seen`, and `value` is empty."""
    value: str


class TransitionEntry(NamedTuple):
    """A version that gets another class or place, as it was found."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]
    """The states that it may have."""
    body: str
    storage_class: str
    """The new storage class."""
    locators: Mapping[str, str]
    """The new place of each of its blobs, by the old one; empty when the blobs stay."""
    size: int = 0
    etag: str = ""
    headers: str | None = None
    """The new headers; None keeps the old ones."""
    note: MetaUpdate | None = None
    archive: Archive = Archive.NONE


class ReferenceSwap(NamedTuple):
    """A row that is to reference a copy instead of a body."""

    holder: BlobReference
    old: str
    new: str
    existing_copy: BlobReference | None = None
    """Another row that already references the copy; None without one."""


def progress_note(bucket_id: int) -> str:
    """Return the name of the note of a move's progress.

    The note is a JSON object: `rows` looked at, `of` how many, `bytes` copied, `stuck` blobs; or empty.
    """
    return f"move:{bucket_id}"
