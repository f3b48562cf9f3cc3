"""Audit events, and the filter of a query for them."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import translate
from functools import lru_cache
from re import IGNORECASE, Pattern, compile
from typing import Any, NamedTuple

import orjson

SUCCESS = "Success"
"""The outcome of a change that was made. Any other outcome is the code of an error."""


class NewAuditEvent(NamedTuple):
    """An event before it has a number and a time. No field holds a secret."""

    principal: str
    """ARN of the caller; another text for callers without one, such as `admin-token`."""
    account_id: str
    """Account of the caller, or empty."""
    access_key: str
    """Access key id of the caller, or empty."""
    address: str
    """Address of the client, or empty for a command on the host."""
    source: str
    """The way in: `s3`, `iam`, `sts`, `minio`, `admin`, `console` or `command`."""
    action: str
    """As policies name it, such as `s3:PutBucketPolicy`."""
    resource: str
    """ARN, or the name of what was changed."""
    outcome: str
    request_id: str
    detail: str
    """JSON object: `before` and `after` of what was changed, or nothing."""


class AuditEvent(NamedTuple):
    """An event as it is stored. `at` is in milliseconds since the epoch."""

    id: int
    at: int
    principal: str
    account_id: str
    access_key: str
    address: str
    source: str
    action: str
    resource: str
    outcome: str
    request_id: str
    detail: str


def render_event(event: AuditEvent) -> dict[str, Any]:
    """Return an event as JSON has it."""
    fields = event._asdict()
    at, detail = fields.pop("at"), fields.pop("detail")
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return {**fields, "time": moment, "before": None, "after": None, **orjson.loads(detail or "{}")}


class Position(NamedTuple):
    """Where a page begins: after this event, newest first."""

    at: int
    id: int


class AuditFilter(NamedTuple):
    """What events a query returns.

    Times are in milliseconds since the epoch, both included. The texts are patterns with `*` and `?`, without regard
    to case; empty for all. `!` before one: what it does not match.
    """

    since: int = 0
    until: int = 1 << 62
    principal: str = ""
    access_key: str = ""
    action: str = ""
    resource: str = ""
    outcome: str = ""

    def matches(self, event: AuditEvent) -> bool:
        """Return whether an event has what the patterns describe."""
        return all(
            not pattern or (_compile(pattern.removeprefix("!")).match(text) is not None) is not pattern.startswith("!")
            for pattern, text in (
                (self.principal, event.principal),
                (self.access_key, event.access_key),
                (self.action, event.action),
                (self.resource, event.resource),
                (self.outcome, event.outcome),
            )
        )


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Pattern[str]:
    # a bracket is no wildcard here
    return compile(translate(pattern.replace("[", "[[]")), IGNORECASE)


class AuditPage(NamedTuple):
    """Events, newest first, and where the next page begins; None after the last one."""

    events: list[AuditEvent]
    next: Position | None
