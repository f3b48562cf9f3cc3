"""Finds and replaces the principals in a policy. All other text stays as it was put."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SIGN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*(:?)|[{}]', re.DOTALL)
"""A string, and whether it is the name of a field, or a brace. Lists do not matter for the place within a policy."""
_FIELDS = ("Principal", "NotPrincipal")


class Name(NamedTuple):
    """A principal, its kind, and the place of its JSON string in the text."""

    kind: str
    name: str
    start: int
    end: int


def iterate_principals(text: str) -> Iterator[Name]:
    """Yield the principals of a policy in order. Other text yields anything, or raises ValueError."""
    path: list[str] = []
    for sign in _SIGN.finditer(text):
        string, is_field = sign.groups()
        if sign[0] == "{":
            path.append("")
        elif sign[0] == "}":
            del path[-1:]
        elif is_field:
            path[-1:] = [json.loads(string)]
        elif len(path) == 3 and path[0] == "Statement" and path[1] in _FIELDS:
            yield Name(path[2], json.loads(string), *sign.span(1))


def replace_principals(text: str, replacements: Mapping[str, str]) -> str:
    """Return the text with principals of the kind AWS replaced."""
    pieces, copied_to = [], 0
    for kind, name, start, end in iterate_principals(text):
        if kind == "AWS" and replacements.get(name, name) != name:
            pieces += [text[copied_to:start], json.dumps(replacements[name])]
            copied_to = end
    return "".join([*pieces, text[copied_to:]])
