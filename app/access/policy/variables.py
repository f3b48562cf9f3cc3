"""Policy texts with variables `${…}` that a request fills in.

`${key}` and `${key, 'default'}` are the value of a condition key; `${*}`, `${?}` and `${$}` are the literal characters
("IAM policy elements: Variables and tags", IAM User Guide). A variable with no value or several, and no default, leaves
its text without meaning: such a text matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.wildcards import STAR, Any, Pattern, Token, Work, begins, tokens_of

Values = Callable[[str], Sequence[str] | None]
"""Returns the values of a condition key by its name in lower case. None when the request has none."""

_DEFAULTED = re.compile(r"\s*([^\s,'{}$]+)\s*(?:,\s*'((?:[^']|'')*)'\s*)?", re.DOTALL)


class Variable(NamedTuple):
    """A placeholder that a request fills in."""

    key: str
    """In lower case, as key names are compared."""
    default: str | None

    def value(self, values: Values) -> str | None:
        """Return the value of the variable; None if it has none."""
        found = values(self.key)
        return found[0] if found is not None and len(found) == 1 else self.default


class Template:
    """A text with wildcards and variables."""

    __slots__ = ("_pattern", "_tokens", "fixed", "text")

    def __init__(self, text: str, *, variables: bool) -> None:
        """Raise Malformed for a `${` that begins no variable."""
        self.text = text
        self._tokens = _parse(text) if variables and "${" in text else list[Token | Variable](tokens_of(text))
        self.fixed = not any(isinstance(token, Variable) for token in self._tokens)
        """It means the same for every request."""
        self._pattern = Pattern(self._filled(lambda _: None) or []) if self.fixed else None

    @property
    def wild(self) -> bool:
        """It has a wildcard."""
        return any(isinstance(token, Any) for token in self._tokens)

    def may_be(self, text: str) -> bool:
        """Return whether it can match a text, for some variable values."""
        return Pattern(self._loose()).matches(text, Work())

    def may_begin(self, text: str) -> bool:
        """Return whether it can match a text with this prefix, for some variable values."""
        return begins(self._loose(), text)

    def _loose(self) -> list[Token]:
        return [STAR if isinstance(token, Variable) else token for token in self._tokens]

    def pattern(self, values: Values, work: Work) -> Pattern | None:
        """Return the pattern for a request; None when a variable has no value."""
        if self._pattern is not None:
            return self._pattern
        tokens = self._filled(values)
        if tokens is None:
            return None
        work.spend(20 * len(tokens) + (sum(len(token) for token in tokens if isinstance(token, str)) >> 6))
        return Pattern(tokens)

    def plain(self, values: Values, work: Work) -> str | None:
        """Return the text for a request, with wildcards as literal characters; None as above."""
        if self.fixed and not self.wild:
            return "".join(token for token in self._tokens if isinstance(token, str))
        tokens = self._filled(values)
        if tokens is None:
            return None
        texts = [token if isinstance(token, str) else token.sign for token in tokens]
        work.spend(8 * len(tokens) + (sum(map(len, texts)) >> 6))
        return "".join(texts)

    def _filled(self, values: Values) -> list[Token] | None:
        filled: list[Token] = []
        for token in self._tokens:
            if isinstance(token, Variable):
                value = token.value(values)
                if value is None:
                    return None
                filled.append(value)
            else:
                filled.append(token)
        return filled


def _parse(text: str) -> list[Token | Variable]:
    found: list[Token | Variable] = []
    position = 0
    while (start := text.find("${", position)) >= 0:
        found += tokens_of(text[position:start])
        token, position = _variable(text, start + 2)
        found.append(token)
    return found + tokens_of(text[position:])


def _variable(text: str, start: int) -> tuple[str | Variable, int]:
    """Return the variable after a `${`, and the place after its end."""
    if text[start : start + 1] in ("*", "?", "$") and text[start + 1 : start + 2] == "}":
        return text[start], start + 2
    match = _DEFAULTED.match(text, start)
    if match is None or text[match.end() : match.end() + 1] != "}":
        raise Malformed(errors.SYNTAX)
    default = match[2]
    return Variable(match[1].lower(), None if default is None else default.replace("''", "'")), match.end() + 1
