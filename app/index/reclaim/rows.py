"""Rows of what is reclaimed: references to blobs, hints of them, moved records and queued discards."""

from __future__ import annotations

from typing import NamedTuple


class QueuedDiscard(NamedTuple):
    """An unreferenced body in the discard queue, until no request can be reading it."""

    id: int
    body: str
    queued: int
    """Wall time in milliseconds since the epoch, for people; requests keep CLOCK_BOOTTIME in milliseconds. Below 0 for
    a body that fsck quarantined: the negated time before which it stays."""

    @property
    def quarantined_until_ms(self) -> int:
        """The time before which the body is not removed, 0 without one.

        It is in milliseconds since the epoch.
        """
        return max(-self.queued, 0)


class ReferenceHint(NamedTuple):
    """A record of a pack, and its probable reference, as its recovery header says.

    The reference is an object's key, or a part of an upload.
    """

    locator: str
    bucket_id: int
    key: str
    upload: int
    """0 for an object."""
    part: int
    at: int = 0
    """When the record was written, in milliseconds since the epoch, shortly before its version was created. 0 when the
    recovery header holds another time."""


class BlobReference(NamedTuple):
    """A row that references a blob.

    `kind` and its numbers are `version` (seq), `part` (upload, number) or `piece` (upload, start, part number).
    """

    kind: str
    first: int
    second: int = 0
    third: int = 0


class RecordMove(NamedTuple):
    """A record that was copied elsewhere, and all rows that referenced its old place."""

    old: str
    new: str
    old_pack: int
    new_pack: int
    total: int
    """Bytes of the record, the same at either place."""
    holders: tuple[BlobReference, ...]


class PackReferences(NamedTuple):
    """The references to records of some packs, from a read of all rows."""

    holders: dict[str, tuple[BlobReference, ...]]
    """All references to a record, by its locator."""
    others: frozenset[str]
    """Locators in the discard queue, and those whose references were not all found."""
    written: frozenset[int]
    """Packs of live writers: a commit that names one of their records may still be pending."""
    complete: bool
    """All references were found, not only the first ones."""
