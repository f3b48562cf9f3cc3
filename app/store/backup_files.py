"""The files in which the blobs of locators lie, for backups. Makes no calls to a mount."""

from __future__ import annotations

import re
from typing import NamedTuple

from sluice_s3.app.index.plain_files.rows import is_plain_file, tree_upload, with_upload, without_upload
from sluice_s3.app.store.named_driver import locator_prefix, store_of_locator
from sluice_s3.storage_drivers.errors import BlobMissing
from sluice_s3.storage_drivers.layout import MAX_STRIPES, ObjectsLayout, number_of
from sluice_s3.storage_drivers.packs.reader import PREFIX as PACKED
from sluice_s3.storage_drivers.packs.reader import parse_locator
from sluice_s3.storage_drivers.tree.paths import validated_key
from sluice_s3.storage_drivers.tree.types import Stamp, locator, parse

_LAYOUT = ObjectsLayout(".")
_OBJECTS = re.compile(r"data/[0-9a-f]{2}/[0-9a-f]{16}(\.pack|\.[1-7]|)")
_FURTHER = re.compile(r"data/[0-9a-f]{2}/[0-9a-f]{16}\.[1-7]")
PLAIN = "plain:"
"""What the path of a plain file begins with here: `data/00/…` may also be a key of the bucket `data`."""


class NeededFile(NamedTuple):
    """A file that a backup needs."""

    store: str
    path: str
    """Relative to the directory of the store; of a plain file `PLAIN` and its path below that of the store."""
    end: int
    """Bytes of a pack from its beginning that are needed; 0: the whole file."""
    stamp: str
    """The stamp of a plain file; empty for other files."""


def needed_file(body: str) -> NeededFile:
    """Return the file in which the blob of a row's locator begins. Raises BlobMissing for another text."""
    store = store_of_locator(body)
    bare = body.removeprefix(locator_prefix(store))
    if is_plain_file(body):
        path, stamp = parse(without_upload(bare))
        return NeededFile(store, PLAIN + path, 0, str(stamp))
    if bare.startswith(PACKED):
        place = parse_locator(bare)
        return NeededFile(store, _relative(_LAYOUT.pack(place.pack)), place.offset + place.total, "")
    return NeededFile(store, _relative(_LAYOUT.blob(number_of(bare))), 0, "")


def further_files(path: str) -> list[str]:
    """Return the paths at which further files of a blob may lie, whose first one is at `path`."""
    blob_id = int(path.rpartition("/")[2], 16)
    return [_relative(_LAYOUT.blob(blob_id, part)) for part in range(1, MAX_STRIPES)]


def check_path(path: str) -> None:
    """Raise BlobMissing for a path that none of these functions returns."""
    if path.startswith(PLAIN):
        validated_key(path.removeprefix(PLAIN))
    elif not _OBJECTS.fullmatch(path):
        raise BlobMissing(f"{path!r} is no path of a store")


def is_further_file(path: str) -> bool:
    """Return whether a path of `further_files` is meant, and not the first file of a blob, a pack or a plain file."""
    return _FURTHER.fullmatch(path) is not None


def restamp(body: str, stamp: Stamp) -> str:
    """Return the body of a plain file's row with another stamp."""
    store = store_of_locator(body)
    path, _ = parse(without_upload(body.removeprefix(locator_prefix(store))))
    moved = locator_prefix(store) + locator(path, stamp)
    upload = tree_upload(body)
    return with_upload(moved, upload) if upload else moved


def _relative(path: str) -> str:
    return path.removeprefix("./")
