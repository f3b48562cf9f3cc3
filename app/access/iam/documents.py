"""The JSON object stored in `identities.document` for a user, a group or a role.

policies     name → text of an inline policy, as it was put
attached     ARNs of the attached AWS policies
trust        of a role: the text of its trust policy, as `app.access.policy_principals` stores it
trusted      of a role of older versions: ARN → id of the users and roles that `trust` named when it was put
description, max_session (seconds)     of a role
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from sluice_s3.app.index.iam.rows import Identity

MAX_SESSION = 3600
"""Seconds of `MaxSessionDuration` unless the role sets another."""


def read(identity: Identity) -> dict[str, Any]:
    """Return the parsed object."""
    found: dict[str, Any] = orjson.loads(identity.document)
    return found


def write(document: dict[str, Any]) -> str:
    """Return the text to store."""
    return orjson.dumps(document).decode()


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[Identity], Identity]:
    """Wrap a change of the object for `Index.change_identity`."""

    def apply(identity: Identity) -> Identity:
        document = read(identity)
        change(document)
        return identity._replace(document=write(document))

    return apply


def policies(identity: Identity) -> dict[str, str]:
    """Return the inline policies by name."""
    found: dict[str, str] = read(identity).get("policies", {})
    return found


def attached(identity: Identity) -> list[str]:
    """Return the ARNs of attached policies."""
    found: list[str] = read(identity).get("attached", [])
    return found
