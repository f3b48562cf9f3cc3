"""The audit trail: administrative changes write who made them, in their own transaction.

Within `audited`, each transaction that `Index` declares as an `AuditedWrite` also adds an event: the caller and what it
asked for, and what it changed, before and after. A change that fails adds none: its caller notes the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import orjson

from sluice_s3.app.index.audit.rows import SUCCESS, NewAuditEvent
from sluice_s3.app.index.audit.transactions import add_audit_events
from sluice_s3.app.index.sql.transaction import Transaction

MAX_STATE = 32 * 1024
"""Bytes of a state in an event; of a longer one only its size is kept."""
MAX_TEXT = 2048
"""Characters of a text in an event."""

State = Callable[..., Transaction[dict[str, Any] | None]]


@dataclass
class AuditTrail:
    """One request for an administrative change: who makes it, from where, and what it is.

    The server fills in what it learns on the way, such as the caller once its signature is verified.
    """

    source: str
    action: str
    resource: str = ""
    principal: str = ""
    account_id: str = ""
    access_key: str = ""
    address: str = ""
    request_id: str = ""
    written: bool = False
    """A transaction has added an event."""
    with_states: bool = True
    """Whether events have the states before and after."""

    def event(self, outcome: str = SUCCESS, detail: str = "") -> NewAuditEvent:
        """Return the event of the change, or of its refusal."""
        texts = (
            self.principal,
            self.account_id,
            self.access_key,
            self.address,
            self.source,
            self.action,
            self.resource,
            outcome,
            self.request_id,
        )
        return NewAuditEvent._make([*(text[:MAX_TEXT].replace("\0", "") for text in texts), detail])


TRAIL: ContextVar[AuditTrail | None] = ContextVar("trail", default=None)
"""The trail of changes that begin now."""


@contextmanager
def audited(trail: AuditTrail) -> Iterator[AuditTrail]:
    """Write an event for each administrative change that begins inside, in a task of its own."""
    token = TRAIL.set(trail)
    try:
        yield trail
    finally:
        TRAIL.reset(token)


def name_change(action: str, resource: str) -> None:
    """Say what the current request changes, where it runs within a trail. The last call counts."""
    trail = TRAIL.get()
    if trail is not None:
        trail.action, trail.resource = action, resource


def name_caller(principal: str, account_id: str, access_key: str) -> None:
    """Say who makes the current request, where it runs within a trail."""
    trail = TRAIL.get()
    if trail is not None:
        trail.principal, trail.account_id, trail.access_key = principal, account_id, access_key


class AuditedTransaction:
    """A transaction that also adds an event.

    `state` reads what it is about, before and after. `outcome` returns the state after it from its result instead.
    """

    __slots__ = ("_event", "_outcome", "_state", "_trail", "changes")

    def __init__(
        self,
        changes: Callable[..., Transaction[Any]],
        state: State | None,
        outcome: Callable[[Any], Any] | None,
        trail: AuditTrail,
    ) -> None:
        self.changes = changes
        self._state = state
        self._outcome = outcome
        self._trail = trail
        self._event = trail.event()  # as it is now: the transaction runs later

    def __call__(self, *arguments: Any) -> Transaction[Any]:
        """Run the transaction."""
        state = self._state
        if not self._trail.with_states:
            state = None
        before = None if state is None else (yield from state(*arguments))
        result = yield from self.changes(*arguments)
        after = None
        if state is not None:
            after = (yield from state(*arguments)) if self._outcome is None else self._outcome(result)
        yield from add_audit_events([self._event._replace(detail=render_detail(before, after))])
        self._trail.written = True
        return result


def render_detail(before: Any, after: Any) -> str:
    """Return the detail of an event as JSON; states that are too long are replaced by their sizes."""
    found = {name: _bounded(state) for name, state in (("before", before), ("after", after)) if state is not None}
    # Postgres has no NUL in a text
    return orjson.dumps(found).decode().replace("\\u0000", "\\ufffd") if found else ""


def _bounded(state: Any) -> Any:
    size = len(orjson.dumps(state))
    return state if size <= MAX_STATE else {"omitted_bytes": size}
