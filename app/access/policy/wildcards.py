"""Patterns with `*` (any characters, or none) and `?` (exactly one), matched without backtracking.

Pieces without `?` are found by `str.find`, which is linear. A piece with `?` is looked for at all places at once, in
the bits of an integer: as many steps as the text is long, each as wide as the piece (the "Shift-And" of Baeza-Yates and
Gonnet).
What that costs is charged to `Work`, so that nobody can keep a worker busy by his choice of pattern and text.
"""

from __future__ import annotations

from collections.abc import Sequence


class Any:
    """A token of a pattern that is no text."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def __repr__(self) -> str:
        return self.sign


STAR, ONE = Any("*"), Any("?")
Token = str | Any

ALLOWED = 1 << 20
"""Steps (each of a machine word) that one evaluation may take: about a tenth of a second."""
WORD = 64


class TooCostly(Exception):
    """An evaluation would take longer than any honest policy does: whoever asks is refused."""


class Work:
    """What an evaluation may still cost."""

    __slots__ = ("left",)

    def __init__(self, allowed: int = ALLOWED) -> None:
        self.left = allowed

    def spend(self, cost: int) -> None:
        """Raises TooCostly."""
        self.left -= cost
        if self.left < 0:
            raise TooCostly


class Piece:
    """What stands between two stars: texts and `?`, of one length."""

    __slots__ = ("_text", "_tokens", "length")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)
        self.length = sum(len(token) if isinstance(token, str) else 1 for token in tokens)
        self._text = "".join(map(str, tokens)) if all(isinstance(token, str) for token in tokens) else None

    def at(self, text: str, place: int) -> bool:
        """Whether it stands in a text at a place."""
        if self._text is not None:
            return text.startswith(self._text, place)
        if place + self.length > len(text):
            return False
        for token in self._tokens:
            if isinstance(token, str):
                if not text.startswith(token, place):
                    return False
                place += len(token)
            else:
                place += 1
        return True

    def find(self, text: str, start: int, end: int, work: Work) -> int:
        """The first place from `start` on where it stands whole before `end`, or -1. Raises TooCostly."""
        if self._text is not None:
            return text.find(self._text, start, end)
        if end - start < self.length:
            return -1
        cost = 1 + self.length // WORD
        work.spend(cost * self.length)
        signs, every = self._bits()
        last, found = 1 << (self.length - 1), 0
        stop = min(end, start + 1 + work.left // cost)
        for place in range(start, stop):
            found = ((found << 1) | 1) & (every | signs.get(text[place], 0))
            if found & last:
                work.spend(cost * (place - start))
                return place + 1 - self.length
        work.spend(cost * (stop - start))
        return -1

    def _bits(self) -> tuple[dict[str, int], int]:
        """For each character the places where it may stand, and the places where any may."""
        signs: dict[str, int] = {}
        every, place = 0, 0
        for token in self._tokens:
            if isinstance(token, str):
                for sign in token:
                    signs[sign] = signs.get(sign, 0) | 1 << place
                    place += 1
            else:
                every |= 1 << place
                place += 1
        return signs, every


class Pattern:
    """A pattern that texts are matched with from their first to their last character."""

    __slots__ = ("_exact", "_first", "_last", "_middle", "_shortest")

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

    def matches(self, text: str, work: Work) -> bool:
        """Whether it matches the whole text. Raises TooCostly."""
        if len(text) < self._shortest or not self._first.at(text, 0):
            return False
        if self._exact:
            return len(text) == self._shortest
        end = len(text) - self._last.length
        if not self._last.at(text, end):
            return False
        place = self._first.length
        for piece in self._middle:
            place = piece.find(text, place, end, work)
            if place < 0:
                return False
            place += piece.length
        return True


def tokens_of(text: str) -> list[Token]:
    """The tokens of a pattern without variables."""
    found: list[Token] = []
    plain = 0
    for place, sign in enumerate(text):
        if sign in "*?":
            if place > plain:
                found.append(text[plain:place])
            found.append(STAR if sign == "*" else ONE)
            plain = place + 1
    if plain < len(text):
        found.append(text[plain:])
    return found


def begins(tokens: Sequence[Token], text: str) -> bool:
    """Whether a pattern matches anything that begins with `text`, which is short."""
    signs: list[Token] = []
    for token in tokens:
        if isinstance(token, str):
            signs.extend(token)
        elif token is ONE or signs[-1:] != [STAR]:
            signs.append(token)
    places = {0}
    for sign in text:
        # a star may also stand for nothing
        places |= {place + 1 for place in places if signs[place : place + 1] == [STAR]}
        stay = {place for place in places if signs[place : place + 1] == [STAR]}
        places = stay | {place + 1 for place in places if signs[place : place + 1] in ([sign], [ONE])}
    return bool(places)
