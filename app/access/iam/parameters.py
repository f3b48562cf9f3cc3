"""The parameters of a call, validated as IAM does. Methods raise ValidationError unless documented otherwise.

Patterns and lengths are those of the IAM and STS API references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from sluice_s3.app.access.iam.errors import MalformedInput, NotImplemented, ValidationError

T = TypeVar("T")

NAME = re.compile(r"[\w+=,.@-]+", re.ASCII)
PATH = re.compile(r"/|/[\x21-\x7e]+/")
PATH_PREFIX = re.compile(r"/[\x21-\x7e]*")
KEY_ID = re.compile(r"\w{16,128}", re.ASCII)
MAX_ITEMS = 1000
COMMON_PARAMETERS = frozenset({"Action", "Version"})
LISTS = frozenset({"PolicyArns"})
"""Parameters read by `members`."""


class Parameters:
    """Names and values of a call. A list is `Name.member.1`, `Name.member.2`, and so on."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def reject_unknown(self, names: frozenset[str]) -> None:
        """Refuse parameters that the operation does not support.

        Raises NotImplemented for a parameter that it would have to ignore, and MalformedInput for a list in place of a
        text.
        """
        for name in self._values:
            base, dot, _ = name.partition(".")
            if base not in names and base not in COMMON_PARAMETERS:
                raise NotImplemented(f"The parameter {base[:64]} is not implemented.")
            if dot and base not in LISTS:
                raise MalformedInput(f"{base[:64]} may not be treated as a list or a structure")

    def has(self, name: str) -> bool:
        """Return whether the parameter is present."""
        return name in self._values

    def get(self, name: str, default: str = "") -> str:
        """Return a text of any form."""
        return self._values.get(name, default)

    def require(self, name: str) -> str:
        """Return a required text."""
        found = self._values.get(name)
        if not found:
            raise ValidationError(
                f"1 validation error detected: Value at '{_lower(name)}' failed to satisfy constraint:"
                " Member must not be null"
            )
        return found

    def members(self, name: str, field: str = "") -> list[str]:
        """Return the texts of a list, or that field of each, in order.

        Raises MalformedInput for members of any other form. They must not be skipped: they may be limits.
        """
        found = []
        for number in range(1, MAX_ITEMS + 1):
            value = self._values.get(f"{name}.member.{number}{field and '.' + field}")
            if value is None:
                break
            found.append(value)
        # the query protocol writes an empty list as its bare name
        if self.get(name) or sum(numbers.startswith(f"{name}.") for numbers in self._values) != len(found):
            raise MalformedInput(f"Members of the list {name} could not be read")
        return found

    def name(self, name: str, longest: int = 64) -> str:
        """Return a required name of a user, group, role, policy or session."""
        return _matching(name, self.require(name), NAME, longest)

    def path(self, name: str = "Path", default: str = "/") -> str:
        """Return a path that begins and ends with a slash."""
        return _matching(name, self.get(name, default), PATH, 512)

    def path_prefix(self) -> str:
        """Return the requested prefix of paths."""
        return _matching("PathPrefix", self.get("PathPrefix", "/"), PATH_PREFIX, 512)

    def key_id(self) -> str:
        """Return an access key."""
        found = self.require("AccessKeyId")
        if not 3 <= len(found) <= 128 or not found.isprintable():
            raise _pattern_error("AccessKeyId", found, KEY_ID.pattern)
        return found

    def limit(self) -> int:
        """Return MaxItems."""
        return self.number("MaxItems", 100, 1, MAX_ITEMS)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Return a number within bounds."""
        text = self._values.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit()) or not least <= int(text[:18]) <= most or len(text) > 18:
            raise ValidationError(
                f"1 validation error detected: Value '{text[:64]}' at '{_lower(name)}' failed to satisfy constraint:"
                f" Member must have value between {least} and {most}"
            )
        return int(text)

    def parse_choice(self, name: str, values: Mapping[str, T]) -> T:
        """Return the value for one of these texts."""
        found = self.require(name)
        if found not in values:
            raise _pattern_error(name, found, ", ".join(values))
        return values[found]


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _pattern_error(name: str, value: str, pattern: str) -> ValidationError:
    return ValidationError(
        f"1 validation error detected: Value '{value[:128]}' at '{_lower(name)}' failed to satisfy constraint:"
        f" Member must satisfy regular expression pattern: {pattern}"
    )


def _matching(name: str, value: str, pattern: re.Pattern[str], longest: int) -> str:
    if len(value) > longest:
        raise ValidationError(
            f"1 validation error detected: Value at '{_lower(name)}' failed to satisfy constraint:"
            f" Member must have length less than or equal to {longest}"
        )
    if pattern.fullmatch(value) is None:
        raise _pattern_error(name, value, pattern.pattern)
    return value
