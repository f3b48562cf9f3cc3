"""A counter that all processes of one index share.

Caches see changes by it without system calls (law 7).
"""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.index.engine.mapped_words import MappedWords


class Generation:
    """A 64-bit counter in a mapped file.

    It only goes up. A new file begins with 0.
    """

    def __init__(self, path: Path) -> None:
        self._file = MappedWords(path, 1)
        self.words = self._file.words
        """The counter, at its only place."""
        self.close = self._file.close

    def bump(self) -> None:
        """Increment the counter.

        Other processes may do so at the same time.
        """
        with self._file.locked():
            self.words[0] = (self.words[0] + 1) % (1 << 64)
