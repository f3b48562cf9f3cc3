"""The rows of plain files (layout *tree*), and the locators by which rows name them."""

from __future__ import annotations

from typing import NamedTuple

TREE = "t:"
"""Prefix of a plain file's locator; a store's name may stand before it. A plain file has its own rules: no
two rows reference it, and it never waits in the discard queue."""


def is_plain_file(body: str) -> bool:
    """Return whether a body is a plain file at its key's path."""
    return body.startswith(TREE) or body.startswith(TREE, body.find("/") + 1)


def tree_upload(body: str) -> int:
    """Return the upload whose pieces hold the parts of a plain file.

    Returns 0 for a file that was not made of parts. The upload follows the file's stamp, in hex: `t:STAMP+UPLOAD:PATH`.
    """
    return int(body.partition(TREE)[2].partition(":")[0].partition("+")[2] or "0", 16)


def without_upload(body: str) -> str:
    """Return the locator of a plain file as its store knows it."""
    name, _, stamp_and_path = body.partition(TREE)
    stamp, _, path = stamp_and_path.partition(":")
    return f"{name}{TREE}{stamp.partition('+')[0]}:{path}"


def with_upload(locator: str, upload: int) -> str:
    """Return the body of a plain file with the upload whose pieces hold its parts."""
    name, _, stamp_and_path = locator.partition(TREE)
    stamp, _, path = stamp_and_path.partition(":")
    return f"{name}{TREE}{stamp}+{upload:x}:{path}"


class Intent(NamedTuple):
    """A write intent: a change of a plain file, which locks the file's key.

    It is replayed or undone when its writer dies.
    """

    id: int
    incarnation: int
    bucket_id: int
    key: str
    kind: str
    """`put`, `complete` or `delete`."""
    body: str
    """The new body of the key; for a delete, the old one."""
    blob_id: int
    """The id of the file that was written aside; 0 for a delete."""
    upload: int
    """The upload of a complete, else 0."""
    new: str
    """JSON: the fields of the new version; empty for a delete."""
    parts: str
    """JSON: number, size and checksum of each part of a complete; else empty."""


class ExternalFile(NamedTuple):
    """A plain file that other programs created or changed.

    Its row is missing or does not match it.
    """

    key: str
    seen: int
    """Sequence of the key's current version when the file was examined, 0 without one."""
    size: int
    etag: str
    headers: str
    body: str
    modified: int


class PendingHash(NamedTuple):
    """A current version with a placeholder for its ETag, which is not known yet."""

    seq: int
    bucket_id: int
    key: str
    size: int
    body: str
