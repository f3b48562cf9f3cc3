"""The commit witness: records the last commit of an SQLite index outside of its files.

It makes a lost log noticeable. Commits after the last journaled batch exist in the write-ahead log alone. Without that
log the index is a complete, older state of itself, and no journal is newer. A page of the runtime directory that all
processes map outlives the processes. It costs a commit one store. It tells nothing across a boot: a power cut may lose
both the page and the log.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from xxhash import xxh3_64_intdigest

from sluice_s3.app.index.engine.mapped_words import MappedWords

NAME = "last-commit"
IDENTITY, SEQUENCE = 0, 1
"""Positions of the two words: the identity of file and boot, and the commit number."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class CommitWitness:
    """The witness of the index at `index_path`.

    It is the file `NAME` in the runtime directory of its server. A witness of another file, of another boot or written
    incompletely restarts with 0. Device and inode identify the file: a copy over the index is the same file, a file
    that a rename puts in its place is another.
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
                self._words[SEQUENCE] = 0  # first: a process killed between the two writes leaves no wrong number
                self._words[IDENTITY] = identity

    def read(self) -> int:
        """Return the number of the last known commit, 0 when none is known."""
        return self._words[SEQUENCE]

    def record(self, sequence: int) -> None:
        """Record a commit.

        The caller holds the file lock of the commits.
        """
        self._words[SEQUENCE] = sequence


def forget(run_dir: Path) -> None:
    """Remove the witness of an index before a new index is created.

    The new file may have the same inode.
    """
    (run_dir / NAME).unlink(missing_ok=True)


def _identity(index_path: Path) -> int:
    found = os.stat(index_path)
    return xxh3_64_intdigest(f"{_boot()}\0{found.st_dev}\0{found.st_ino}".encode())


def _boot() -> str:
    try:
        return BOOT_ID.read_text()
    except OSError:
        return secrets.token_hex()  # a system without a boot id: a random identity never matches
