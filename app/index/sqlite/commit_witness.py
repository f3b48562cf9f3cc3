"""Remembers the number of an SQLite index's last commit outside of its files, so that a lost log does not go unnoticed.

What was committed after the last batch of the journals stands in the write-ahead log alone: without that the index is a
whole, older state of itself, and nothing beside the data is newer. A page of the runtime directory that all processes
map outlives them. It costs a commit one store, and says nothing across a boot: a power cut may take it and the log.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from xxhash import xxh3_64_intdigest

from sluice_s3.app.index.engine.mapped_words import MappedWords

NAME = "last-commit"
IDENTITY, SEQUENCE = 0, 1
"""The two words: of which file and boot, and the number."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class CommitWitness:
    """The witness of the index at `index_path`, in the file NAME of its server's runtime directory.

    A witness of another file, of another boot or not written whole starts again with 0. Device and inode identify the
    file: a copy over the index is the same file, one put in its place by a rename is another.
    """

    def __init__(self, run_dir: Path, index_path: Path) -> None:
        identity = _identity(index_path)
        self._file = MappedWords(run_dir / NAME, 2)
        self._words = self._file.words
        self.close = self._file.close
        self._begin(identity)

    def _begin(self, identity: int) -> None:
        if self._words[IDENTITY] == identity:
            return
        with self._file.locked():
            if self._words[IDENTITY] != identity:
                self._words[SEQUENCE] = 0  # first: a process killed in between leaves nothing that is wrong
                self._words[IDENTITY] = identity

    def read(self) -> int:
        """Return the number of the last known commit; 0 when none is known."""
        return self._words[SEQUENCE]

    def record(self, sequence: int) -> None:
        """Record a commit, under the file lock of the commits."""
        self._words[SEQUENCE] = sequence


def forget(run_dir: Path) -> None:
    """Remove the witness of an index before a new one is made, whose file may have the same inode."""
    (run_dir / NAME).unlink(missing_ok=True)


def _identity(index_path: Path) -> int:
    found = os.stat(index_path)
    return xxh3_64_intdigest(f"{_boot()}\0{found.st_dev}\0{found.st_ino}".encode())


def _boot() -> str:
    try:
        return BOOT_ID.read_text()
    except OSError:
        return secrets.token_hex()  # a system without a boot id: nothing is ever compared
