"""What is kept of a user, a group or a role in `identities.document`: a JSON object.

policies     name → text of an inline policy, as it was put
attached     ARNs of the policies of AWS that are attached
trust        of a role: the text that says who may assume it, as `app.access.named` keeps it
trusted      of a role of older versions: ARN → id of the users and roles that `trust` named when it was put
description, max_session (seconds)     of a role
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from app.index.identity_rows import Identity

MAX_SESSION = 3600
"""Seconds of `MaxSessionDuration` unless the role says otherwise."""


def read(identity: Identity) -> dict[str, Any]:
    """The object."""
    found: dict[str, Any] = orjson.loads(identity.document)
    return found


def write(document: dict[str, Any]) -> str:
    """As it is kept."""
    return orjson.dumps(document).decode()


def changed(change: Callable[[dict[str, Any]], None]) -> Callable[[Identity], Identity]:
    """What `Index.change_identity` takes: a change of the object."""

    def apply(identity: Identity) -> Identity:
        document = read(identity)
        change(document)
        return identity._replace(document=write(document))

    return apply


def policies(identity: Identity) -> dict[str, str]:
    """Inline policies by their names."""
    found: dict[str, str] = read(identity).get("policies", {})
    return found


def attached(identity: Identity) -> list[str]:
    """The ARNs of attached policies."""
    found: list[str] = read(identity).get("attached", [])
    return found
