"""Patterns with `*` (any characters, or none) and `?` (exactly one), matched without backtracking.

Pieces without `?` are found by `str.find`. A piece with `?` is searched at all places at once, in the bits of an
integer: one step for each of its characters, as wide as the text is long. The cost is charged to `Work`, so that no
choice of pattern and text can keep a worker busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any as Anything


class Any:
    """A wildcard token of a pattern."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def __repr__(self) -> str:
        return self.sign


STAR, ONE = Any("*"), Any("?")
Token = str | Any

ALLOWED = 1 << 19
"""Steps that one decision may take. A step is about 50 ns, so this is less than 30 ms of the event loop."""
PER_MATCH = 8
"""Steps of a match that fails at once."""
LONG = 100
"""Characters above which `str.find` takes no longer for more of them."""


class TooCostly(Exception):
    """An evaluation would take longer than any honest policy: the caller is refused."""


class Work:
    """The remaining budget of an evaluation, and the character places of the current text."""

    __slots__ = ("_positions", "_text", "left", "observer")

    def __init__(self, allowed: int = ALLOWED, observer: Anything = None) -> None:
        """`observer` is a `app.access.policy.observer.PolicyObserver`; requests have none."""
        self.left = allowed
        self.observer = observer
        self._text = ""
        self._positions: dict[str, int] = {}

    def spend(self, cost: int) -> None:
        """Subtract from the budget. Raises TooCostly."""
        self.left -= cost
        if self.left < 0:
            raise TooCostly

    def find_positions(self, text: str, sign: str) -> int:
        """Return the places of a character in a text, as bits. Raises TooCostly."""
        if text != self._text:
            self._text, self._positions = text, {}
        found = self._positions.get(sign)
        if found is None:
            self.spend(PER_MATCH + (len(text) >> (5 if text.isascii() else 2)))
            found = self._positions[sign] = _find_positions(text, sign)
        return found


def _find_positions(text: str, sign: str) -> int:
    if text.isascii() and sign.isascii():
        table = bytearray(b"0" * 256)
        table[ord(sign)] = ord("1")
        return int(text.encode().translate(table)[::-1], 2)
    return int("1".join("0" * len(part) for part in text.split(sign))[::-1] or "0", 2)


class Piece:
    """The tokens between two stars: texts and `?`, of one length."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tuple(tokens)
        self.length = sum(len(token) if isinstance(token, str) else 1 for token in tokens)
        self._text = "".join(map(str, tokens)) if all(isinstance(token, str) for token in tokens) else None

    @cached_property
    def _signs(self) -> list[tuple[int, str]]:
        """The fixed characters, each with its place."""
        found: list[tuple[int, str]] = []
        position = 0
        for token in self.tokens:
            if isinstance(token, str):
                found += enumerate(token, position)
                position += len(token)
            else:
                position += 1
        return found

    def at(self, text: str, position: int) -> bool:
        """Return whether the piece matches a text at a place."""
        if self._text is not None:
            return text.startswith(self._text, position)
        if position + self.length > len(text):
            return False
        for token in self.tokens:
            if isinstance(token, str):
                if not text.startswith(token, position):
                    return False
                position += len(token)
            else:
                position += 1
        return True

    def find(self, text: str, start: int, end: int, work: Work) -> int:
        """Return the first place from `start` on where it matches entirely before `end`, or -1. Raises TooCostly."""
        if end - start < self.length:
            return -1
        if self._text is not None:
            position = text.find(self._text, start, end)
            read = (end if position < 0 else position + self.length) - start
            work.spend(1 + (read * min(self.length, LONG) >> 9))
            return position
        work.spend((self.length + 3) * (3 + (len(text) >> 11)))
        positions = (1 << (end - start - self.length + 1)) - 1
        for offset, sign in self._signs:
            positions &= work.find_positions(text, sign) >> (start + offset)
            if not positions:
                return -1
        return start + (positions & -positions).bit_length() - 1


class Pattern:
    """A pattern that matches whole texts."""

    __slots__ = ("_cost", "_exact", "_first", "_last", "_middle", "_shortest")

    def __init__(self, tokens: Sequence[Token]) -> None:
        pieces: list[list[Token]] = [[]]
        for token in tokens:
            if token is STAR:
                pieces.append([])
            elif token != "":
                pieces[-1].append(token)
        self._exact = len(pieces) == 1
        self._first = Piece(pieces[0])
        self._last = Piece(pieces[-1])
        self._middle = [Piece(piece) for piece in pieces[1:-1] if piece]
        ends = self._first.length if self._exact else self._first.length + self._last.length
        self._shortest = ends + sum(piece.length for piece in self._middle)
        self._cost = PER_MATCH + 2 * (len(self._first.tokens) + len(self._last.tokens))

    def matches(self, text: str, work: Work) -> bool:
        """Return whether it matches the whole text. Raises TooCostly."""
        work.spend(self._cost)
        if len(text) < self._shortest or not self._first.at(text, 0):
            return False
        if self._exact:
            return len(text) == self._shortest
        end = len(text) - self._last.length
        if not self._last.at(text, end):
            return False
        position = self._first.length
        for piece in self._middle:
            position = piece.find(text, position, end, work)
            if position < 0:
                return False
            position += piece.length
        return True


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a pattern without variables."""
    found: list[Token] = []
    plain = 0
    for position, sign in enumerate(text):
        if sign in "*?":
            if position > plain:
                found.append(text[plain:position])
            found.append(STAR if sign == "*" else ONE)
            plain = position + 1
    if plain < len(text):
        found.append(text[plain:])
    return found


def begins(tokens: Sequence[Token], text: str) -> bool:
    """Return whether a pattern matches any text that begins with `text`, which is short."""
    signs: list[Token] = []
    for token in tokens:
        if isinstance(token, str):
            signs.extend(token)
        elif token is ONE or signs[-1:] != [STAR]:
            signs.append(token)
    positions = {0}
    for sign in text:
        # a star may also match nothing
        positions |= {position + 1 for position in positions if signs[position : position + 1] == [STAR]}
        stay = {position for position in positions if signs[position : position + 1] == [STAR]}
        positions = stay | {position + 1 for position in positions if signs[position : position + 1] in ([sign], [ONE])}
    return bool(positions)
