"""64-bit words in a mapped file that all processes of a server share.

The file is in the runtime directory.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice_s3.app.private_files import open_file

_WORD = 8


class MappedWords:
    """The first `count` words of a file.

    A new file is zeros. One store instruction writes a word, so that no word is ever torn.
    """

    def __init__(self, path: Path, count: int) -> None:
        size = count * _WORD
        self._descriptor = open_file(path)
        try:
            if os.fstat(self._descriptor).st_size < size:
                # a write to a mapped hole on a full disk would kill the process
                os.posix_fallocate(self._descriptor, 0, size)
            self._map = mmap.mmap(self._descriptor, size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.words = memoryview(self._map).cast("Q")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes during a change of several steps."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Unmap the file.

        The words must not be used afterwards.
        """
        if self._descriptor >= 0:
            self.words.release()
            self._map.close()
            os.close(self._descriptor)
            self._descriptor = -1
