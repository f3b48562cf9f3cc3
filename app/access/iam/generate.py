"""Random ids, keys and tokens."""

from __future__ import annotations

import secrets
import time

from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, TEMPORARY, USER

_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
PREFIXES = {USER: "AIDA", GROUP: "AGPA", ROLE: "AROA", POLICY: "ANPA"}
"""Prefixes of unique ids ("IAM identifiers", IAM User Guide)."""


def _random(length: int) -> str:
    return "".join(secrets.choice(_SIGNS) for _ in range(length))


def unique_id(kind: str) -> str:
    """Return the id of a new user, group or role."""
    return PREFIXES[kind] + _random(17)


def key() -> tuple[str, str]:
    """Return a new access key with its secret."""
    return "AKIA" + _random(16), secrets.token_urlsafe(30)


def temporary_key() -> tuple[str, str, str]:
    """Return a new session key with its secret and token."""
    return TEMPORARY + _random(16), secrets.token_urlsafe(30), secrets.token_urlsafe(96)


def now() -> int:
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def date(milliseconds: int) -> str:
    """Return a time as IAM and STS write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds // 1000))
