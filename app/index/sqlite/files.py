"""Checks that the open files of an SQLite index are still in place.

SQLite continues with a file that was unlinked or replaced, and acknowledges writes that no other process can read.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from sluice_s3.app.errors import StoreUnavailable

WAL_SUFFIX = "-wal"
logger = logging.getLogger("sluice.index")


class IndexFiles:
    """The database at `path` and its write-ahead log.

    For this process, a file that was removed once stays lost.
    """

    def __init__(self, path: Path) -> None:
        self._paths = (str(path), f"{os.path.realpath(path)}{WAL_SUFFIX}")
        self._identities: dict[str, tuple[int, int]] = {}
        self._lost = ""

    def require(self) -> None:
        """Raise StoreUnavailable when one of the files was removed or replaced."""
        if not self._lost:
            self._lost = next(filter(None, map(self._check, self._paths)), "")
            if self._lost:
                logger.error(
                    "index: %s: it takes no changes any more. Stop the gateway; `sluice rebuild` makes an index from "
                    "the data, unless the old one can be put back",
                    self._lost,
                )
        if self._lost:
            raise StoreUnavailable(reason=self._lost)

    def lose(self, reason: str) -> None:
        """Refuse the files from now on."""
        self._lost = reason

    def _check(self, path: str) -> str:
        """Return why a file is not the one first seen, or an empty text."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            if path not in self._identities:
                return ""  # the first change creates the log
            return f"{os.path.basename(path)} of the index was removed"
        identity = found.st_dev, found.st_ino
        if self._identities.setdefault(path, identity) != identity:
            return f"{os.path.basename(path)} of the index was replaced"
        return ""
