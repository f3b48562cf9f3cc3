"""Bodies that cost the generator nothing: pieces of one random buffer.

Each piece is cut at a random place.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

PIECE = 1 << 20
_BUFFER = 16 * PIECE
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_UNITS |= {"kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_random = memoryview(b"")


def fill_buffer() -> None:
    """Make the random bytes unless they are there: once, since threads that begin together would each make them."""
    global _random
    if not _random:
        _random = memoryview(os.urandom(_BUFFER))


def pieces(size: int) -> Iterator[memoryview]:
    """Yield `size` random bytes in pieces of at most 1 MiB.

    Bodies hardly ever repeat.
    """
    fill_buffer()
    while size > 0:
        length = min(size, PIECE)
        offset = random.randrange(_BUFFER - length + 1)
        yield _random[offset : offset + length]
        size -= length


def parse_size(text: str) -> int:
    """Parse `100KB` (thousands), `10MiB` or `4k` (1024s), or a plain number, into bytes.

    Raises ValueError.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is no size (100KB, 10MiB, 4k)")
    return int(float(match[1]) * _UNITS[match[2]])


def size_text(size: int) -> str:
    """Return a number of bytes as it is written for `parse_size`: `10 MiB`, `100 KB`, `7 B`."""
    for unit, name in (
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
        (10**9, "GB"),
        (10**6, "MB"),
        (1000, "KB"),
    ):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def parse_sizes(text: str) -> tuple[int, ...]:
    """Parse sizes separated by commas. Raises ValueError."""
    return tuple(parse_size(one) for one in text.split(","))
