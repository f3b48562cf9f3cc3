"""Temporary directories of a measurement on a user's mount."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 10.0
"""Seconds to retry the removal.

FUSE learns of a close after close(2) has returned, and until then keeps a removed file under another name.
"""
PAUSE = 0.1


@contextmanager
def scratch(prefix: str, parent: Path | None) -> Iterator[Path]:
    """Create a directory in `parent` (None: the system's default), and remove it at the end.

    Raises OSError, also if something is left in it after PATIENCE seconds.
    """
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield directory
    finally:
        _remove(directory)


def _remove(directory: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return shutil.rmtree(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)
