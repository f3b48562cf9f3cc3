"""The file lock by which a backup holds the removal of discarded bodies on one host.

A backup takes the lock before it copies the index, and keeps it until all data is copied that this copy references. The
garbage collector reads nothing new from the discard queue meanwhile. What it had read before was discarded before the
copy, which does not reference it. The kernel releases the lock when the backup dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from sluice_s3.app.errors import Overloaded
from sluice_s3.app.private_files import make_directory, open_file

NAME = "backup.lock"
TAKE_SECONDS = 2.0
"""Seconds to try: a garbage collector that looks has the lock for a moment."""
ANOTHER = "another backup of this gateway runs, or a dry run of a rebuild"


class RemovalHold:
    """The hold of the gateway with this runtime directory.

    Raises Overloaded while another backup has it, and OSError.
    """

    def __init__(self, run_dir: Path) -> None:
        make_directory(run_dir)
        self._descriptor = open_file(run_dir / NAME)
        deadline = time.monotonic() + TAKE_SECONDS
        while not _lock(self._descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                self.close()
                raise Overloaded(reason=ANOTHER)
            time.sleep(0.02)

    def close(self) -> None:
        """Release the hold."""
        os.close(self._descriptor)


def is_held(run_dir: Path) -> bool:
    """Return whether a backup holds removals. Raises OSError."""
    try:
        descriptor = open_file(run_dir / NAME, os.O_RDWR)
    except FileNotFoundError:  # no backup was ever made
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
