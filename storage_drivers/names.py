"""Names of files in a store of the layout *objects*: ROOT/data/<aa>/<id>, with a suffix for all but blobs.

`id` is 16 hex digits and `aa` its low byte, so that ids drawn in sequence spread over all directories. Further parts of
a blob lie in the directories that follow, since Linux makes files of one directory one after the other.
"""

from __future__ import annotations

import re
from pathlib import Path

from storage_drivers.errors import BlobMissing

FILE = "f:"
"""Locators of blobs with files of their own."""
WHOLE_PACK = "k:"
"""Locator of a pack itself, for its discard once every record of it is dead or has moved."""
LOCATOR = re.compile("[fk]:[0-9a-f]{16}")
PACK_SUFFIX = ".pack"
JOURNAL_SUFFIX = ".journal"
DIRECTORIES = 256
MOST_PARTS = 8
"""Files of one blob: what is left of a blob that nobody knows is looked for under so many names."""
NAME = re.compile(r"([0-9a-f]{16})(\.pack|\.journal|\.[1-7]|)")


class Names:
    """Paths of the store at `root`."""

    def __init__(self, root: Path | str) -> None:
        self.data = f"{root}/data"

    def directory(self, low: int) -> str:
        """One of the 256 directories."""
        return f"{self.data}/{low & 0xFF:02x}"

    def blob(self, blob_id: int, part: int = 0) -> str:
        """The file of a blob, or of one of its further parts."""
        if not part:
            return f"{self.data}/{blob_id & 0xFF:02x}/{blob_id:016x}"
        return f"{self.data}/{(blob_id + part) & 0xFF:02x}/{blob_id:016x}.{part}"

    def pack(self, pack_id: int) -> str:
        """The file of a pack."""
        return f"{self.blob(pack_id)}{PACK_SUFFIX}"

    def journal(self, journal_id: int) -> str:
        """The file of a journal."""
        return f"{self.blob(journal_id)}{JOURNAL_SUFFIX}"

    def find(self, locator: str) -> str:
        """The file of a blob, or of a whole pack. Raises BlobMissing for what is no locator of either."""
        number = number_of(locator)
        return self.pack(number) if locator.startswith(WHOLE_PACK) else self.blob(number)


def number_of(locator: str) -> int:
    """The id in a locator of a file. Raises BlobMissing for any other text."""
    if not LOCATOR.fullmatch(locator):
        raise BlobMissing(f"{locator!r} is no locator of this driver")
    return int(locator[len(FILE) :], 16)


def low_of(path: str) -> int:
    """The number of the directory that a path of ours lies in."""
    return int(path.rsplit("/", 2)[1], 16)
