"""Ids, keys and tokens: all drawn at random."""

from __future__ import annotations

import secrets
import time

from app.index.identity_rows import GROUP, ROLE, TEMPORARY, USER

_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
PREFIXES = {USER: "AIDA", GROUP: "AGPA", ROLE: "AROA"}
""""IAM identifiers", IAM User Guide: what a unique id begins with."""


def _random(length: int) -> str:
    return "".join(secrets.choice(_SIGNS) for _ in range(length))


def unique_id(kind: str) -> str:
    """The id of a new user, group or role."""
    return PREFIXES[kind] + _random(17)


def key() -> tuple[str, str]:
    """A new access key with its secret."""
    return "AKIA" + _random(16), secrets.token_urlsafe(30)


def temporary_key() -> tuple[str, str, str]:
    """The same of a session, with its token."""
    return TEMPORARY + _random(16), secrets.token_urlsafe(30), secrets.token_urlsafe(96)


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def date(milliseconds: int) -> str:
    """As IAM and STS write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds // 1000))
