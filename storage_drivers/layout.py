"""File names in the layout *objects*: ROOT/data/<aa>/<id>, with suffixes except for blobs.

Journals lie apart, in ROOT/journals: the few names there can be listed at every start.

`id` is 16 hex digits and `aa` its low byte, so that sequential ids spread over all directories. Further parts of a blob
lie in the next directories, since Linux creates files of one directory one after the other.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sluice_s3.storage_drivers.errors import BlobMissing

FILE = "f:"
"""Prefix of locators of blobs with files of their own."""
WHOLE_PACK = "k:"
"""Prefix of the locator of a pack itself, for its discard once every record of it is dead or has moved."""
LOCATOR = re.compile("[fk]:[0-9a-f]{16}")
PACK_SUFFIX = ".pack"
JOURNAL_SUFFIX = ".journal"
DIRECTORIES = 256
MAX_STRIPES = 8
"""Files of one blob: the number of names to check for remains of an unknown blob."""
NAME = re.compile(r"([0-9a-f]{16})(\.pack|\.journal|\.[1-7]|)")


class ObjectsLayout:
    """Paths of the store at `root`."""

    def __init__(self, root: Path | str) -> None:
        self.data = f"{root}/data"
        self.journals = f"{root}/journals"

    def directory(self, low: int) -> str:
        """Return one of the 256 directories."""
        return f"{self.data}/{low & 0xFF:02x}"

    def blob(self, blob_id: int, part: int = 0) -> str:
        """Return the file of a blob, or of one of its further parts."""
        if not part:
            return f"{self.data}/{blob_id & 0xFF:02x}/{blob_id:016x}"
        return f"{self.data}/{(blob_id + part) & 0xFF:02x}/{blob_id:016x}.{part}"

    def pack(self, pack_id: int) -> str:
        """Return the file of a pack."""
        return f"{self.blob(pack_id)}{PACK_SUFFIX}"

    def journal(self, journal_id: int) -> str:
        """Return the file of a journal."""
        return f"{self.journals}/{journal_id:016x}{JOURNAL_SUFFIX}"

    def journal_in_data(self, journal_id: int) -> str:
        """Return the file, among the blobs, of a journal of a version before 2026-11."""
        return f"{self.blob(journal_id)}{JOURNAL_SUFFIX}"

    def find(self, locator: str) -> str:
        """Return the file of a blob, or of a whole pack.

        Raises BlobMissing for a text that is no locator of either.
        """
        number = number_of(locator)
        return self.pack(number) if locator.startswith(WHOLE_PACK) else self.blob(number)


def list_ids(directory: str, suffix: str) -> list[int]:
    """Return the ids of a directory's files with this suffix, in ascending order. Raises OSError."""
    matches = map(NAME.fullmatch, os.listdir(directory))
    return sorted(int(match[1], 16) for match in matches if match is not None and match[2] == suffix)


def number_of(locator: str) -> int:
    """Return the id in a locator of a file. Raises BlobMissing for any other text."""
    if not LOCATOR.fullmatch(locator):
        raise BlobMissing(f"{locator!r} is no locator of this driver")
    return int(locator[len(FILE) :], 16)


def shard_of(path: str) -> int:
    """Return the number of the directory in which a path of ours lies."""
    return int(path.rsplit("/", 2)[1], 16)
