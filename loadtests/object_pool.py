"""The objects that a mix works on. No object is deleted while it is read."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

MAX_ATTEMPTS = 20
MIX = {"GET": 45, "STAT": 30, "PUT": 15, "DELETE": 10}
"""warp's mix, in percent."""
OPERATIONS = (*MIX, "LIST")
MOST_SHARES = 1000


def parse_mix(text: str) -> dict[str, float]:
    """Parse shares of operations like `GET=90,PUT=10`; empty: warp's mix.

    Raises ValueError.
    """
    if not text:
        return dict(MIX)
    mix: dict[str, float] = {}
    for word in text.split(","):
        operation, _, share = word.strip().upper().partition("=")
        try:
            mix[operation] = float(share)
        except ValueError:
            raise ValueError(f"{word!r} is no share (GET=90,PUT=10)") from None
        if operation not in OPERATIONS or not 0 <= mix[operation] < math.inf:
            raise ValueError(f"{word!r} is no share of {', '.join(OPERATIONS)}")
    if not sum(mix.values()):
        raise ValueError(f"{text!r} has no operation")
    return mix


def whole_shares(mix: Mapping[str, float]) -> dict[str, int]:
    """Return the shares in small whole numbers, as weights of tasks are: of 1,000 where there are no smaller ones."""
    if all(share == int(share) for share in mix.values()) and sum(mix.values()) <= MOST_SHARES:
        whole = {name: int(share) for name, share in mix.items() if share}
    else:
        least = sum(mix.values()) / MOST_SHARES
        whole = {name: max(1, round(share / least)) for name, share in mix.items() if share}
    divisor = math.gcd(*whole.values())
    return {name: share // divisor for name, share in whole.items()}


def pick_operation(mix: Mapping[str, float] = MIX) -> str:
    """Return the next operation of the mix."""
    return random.choices(tuple(mix), tuple(mix.values()))[0]


class ObjectPool:
    """The names of the existing objects."""

    def __init__(self, prefix: str) -> None:
        self.prefix = f"{prefix}/"
        self._numbers = count()
        self._names: list[str] = []
        self._used: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def name(self) -> str:
        """Return a new name that was never used before."""
        return f"{self.prefix}{next(self._numbers):08d}"

    def add(self, name: str) -> None:
        """Add an object that now exists."""
        self._names.append(name)

    def take(self) -> str:
        """Take an unused object for deletion. Returns an empty string if none was found."""
        for _ in range(MAX_ATTEMPTS if self._names else 0):
            at = random.randrange(len(self._names))
            name = self._names[at]
            if name not in self._used:
                self._names[at] = self._names[-1]
                self._names.pop()
                return name
        return ""

    @contextmanager
    def use(self) -> Iterator[str]:
        """Hold an object for reading during the block; empty if there is none."""
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
