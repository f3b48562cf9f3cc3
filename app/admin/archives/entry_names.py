"""Names of entries that are safe to unpack anywhere, and unique.

Keys are any text: `../../etc/passwd`, `/abs`, `C:x`, `a` beside `a/b`, two that differ in case only.
"""

from __future__ import annotations

import unicodedata

PARENT, HERE = "..", "."
REPLACED = frozenset('\\:*?"<>|')
"""Separators and wildcards of Windows."""
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
"""They make `exe.txt` of `txt.exe` on the screen."""
MAX_SEGMENT_BYTES = 240
"""Most filesystems end at 255; a suffix must fit."""


class EntryNames:
    """Gives each key a name that no other entry of the archive has, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        """Files and folders, in the case that compares."""
        self._folders: dict[str, str] = {}
        """Names of folders by their paths."""
        self._numbers: dict[str, int] = {}
        """The last number by the name that was wanted, so that many equal ones cost no search each."""

    def name(self, path: str) -> str:
        """Return a name for a key's path within the archive; it ends with `/` for an empty folder."""
        is_folder = path.endswith("/")
        segments = [_clean(one) for one in path.split("/") if one not in ("", HERE)] or ["_"]
        parents, last = segments[:-1], segments[-1]
        folder = ""
        for parent in parents:
            folder = self._folder(folder, parent)
        if is_folder:
            return self._folder(folder, last)
        return self._free(folder, last)

    def _folder(self, above: str, segment: str) -> str:
        """Return the folder's name, another one where a file has it already."""
        path = (above + segment).casefold()
        if path not in self._folders:
            self._folders[path] = self._free(above, segment) + "/"
        return self._folders[path]

    def _free(self, above: str, segment: str) -> str:
        """Return the name, with a number before its suffix if it is taken, and take it."""
        stem, dot, suffix = segment.rpartition(".")
        if not stem:
            stem, dot, suffix = segment, "", ""
        name = wanted = above + segment
        number = self._numbers.get(wanted.casefold(), 1)
        while name.casefold() in self._taken:
            number += 1
            name = f"{above}{stem} ({number}){dot}{suffix}"
        self._numbers[wanted.casefold()] = number
        self._taken.add(name.casefold())
        return name


def _clean(segment: str) -> str:
    if segment == PARENT:
        return "__"
    text = "".join(
        "_" if one in REPLACED or one in BIDI_CONTROLS or unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") else one
        for one in segment
    )
    if len(text.encode()) > MAX_SEGMENT_BYTES:
        text = text.encode()[:MAX_SEGMENT_BYTES].decode(errors="ignore")
    # Windows drops them at the end, so that `.. ` would be the parent
    kept = text.rstrip(". ")
    return kept + "_" * (len(text) - len(kept))
