"""The objects that a mix of operations works on: nobody deletes one that another is reading."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

TRIES = 20
MIX = {"GET": 45, "STAT": 30, "PUT": 15, "DELETE": 10}
"""warp's, in percent."""


def parse_mix(text: str) -> dict[str, float]:
    """Shares of operations as `GET=90,PUT=10`; empty: warp's. Raises ValueError."""
    if not text:
        return dict(MIX)
    mix: dict[str, float] = {}
    for word in text.split(","):
        operation, _, share = word.strip().upper().partition("=")
        try:
            mix[operation] = float(share)
        except ValueError:
            raise ValueError(f"{word!r} is no share (GET=90,PUT=10)") from None
        if operation not in MIX or not 0 <= mix[operation] < math.inf:
            raise ValueError(f"{word!r} is no share of {', '.join(MIX)}")
    if not sum(mix.values()):
        raise ValueError(f"{text!r} has no operation")
    return mix


def chosen(mix: Mapping[str, float] = MIX) -> str:
    """The next operation of the mix."""
    return random.choices(tuple(mix), tuple(mix.values()))[0]


class Pool:
    """Names of the objects that are there."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = count()
        self._names: list[str] = []
        self._used: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def name(self) -> str:
        """A name that was never given before."""
        return f"{self._prefix}/{next(self._numbers):08d}"

    def add(self, name: str) -> None:
        """It is there now."""
        self._names.append(name)

    def take(self) -> str:
        """One that nobody uses, to be deleted; empty when none was found."""
        for _ in range(TRIES if self._names else 0):
            at = random.randrange(len(self._names))
            name = self._names[at]
            if name not in self._used:
                self._names[at] = self._names[-1]
                self._names.pop()
                return name
        return ""

    @contextmanager
    def use(self) -> Iterator[str]:
        """One to be read until the end of the block; empty when there is none."""
        if not self._names:
            yield ""
            return
        name = random.choice(self._names)
        self._used[name] = self._used.get(name, 0) + 1
        try:
            yield name
        finally:
            self._used[name] -= 1
            if not self._used[name]:
                del self._used[name]
