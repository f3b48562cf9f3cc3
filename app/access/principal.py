"""Whoever acts for an account without being it: a user, or the session of a role or of a user.

What such a one may do is what his own policies allow (those of a user and of his groups, or of a role), or what a
policy of the bucket gives just him; and of that only what the session's own policies allow too. "Policy evaluation
logic", IAM User Guide. The account itself, with a key of its own or in a session, needs no policy and is none of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from app.access.account import account_number, arn_of, caller_of, session_arn
from app.access.iam.managed import MANAGED
from app.access.policy import CLOSED, Caller, Decision, Policy, Request
from app.access.policy.identity import stored
from app.access.policy.variables import Values
from app.index.identity_rows import ROLE, Holder, Identity


class Principal(NamedTuple):
    """A user or a session. Of a session of the account itself `policies` is None: it may do all."""

    caller: Caller
    """As policies of buckets name it."""
    policies: tuple[Policy, ...] | None
    limits: tuple[Policy, ...]
    """Of the session: what none of them allows it may not do; none: no limit."""
    arn: str
    """Of the user or the role, `…:root` for the account."""
    user_id: str
    """`aws:userid`."""
    name: str
    """Of the user, empty for others."""
    kind: str
    """`aws:PrincipalType`: `User`, `AssumedRole` or `Account`."""
    began: int | None
    """When the session did, in milliseconds; None for a key without a session."""
    broken: bool = False
    """A policy could not be read: nothing is allowed."""

    def says(self, action: str, resource: str, values: Values) -> Decision:
        """What his own policies say to an action on a resource, by its ARN."""
        if self.broken:
            return Decision.DENY
        asked = Request(None, action, resource, values)
        limits = {policy.decide(asked) for policy in self.limits}
        if Decision.DENY in limits or (self.limits and Decision.ALLOW not in limits):
            return Decision.DENY
        if self.policies is None:
            return Decision.ALLOW
        own = {policy.decide(asked) for policy in self.policies}
        if Decision.DENY in own:
            return Decision.DENY
        return Decision.ALLOW if Decision.ALLOW in own else Decision.SILENT

    def denies(self, action: str, resource: str, values: Values) -> bool:
        """Whether a policy of his forbids an action that needs none to allow it."""
        asked = Request(None, action, resource, values)
        return self.broken or any(policy.decide(asked) is Decision.DENY for policy in (self.policies or ()))


@lru_cache(maxsize=1024)
def principal_of(holder: Holder) -> Principal:
    """Who uses a key."""
    identity = holder.identity
    limits, limits_broken = _parsed(orjson.loads(holder.policies or "[]"))
    began = None if holder.session is None else holder.began
    number = account_number(holder.account_id)
    if identity is None:
        root = caller_of(holder.account_id)
        return Principal(root, None, limits, root.arn, number, "", "Account", began, limits_broken)
    policies, broken = _parsed(text for one in (identity, *holder.groups) for text in _texts(one))
    arn = arn_of(identity)
    caller = Caller(holder.account_id, number, arn, unique_id=identity.id)
    user_id, kind, name = identity.id, "User", identity.name
    if identity.kind == ROLE:
        caller = caller._replace(arn=session_arn(identity, holder.session or ""), role=arn)
        user_id, kind, name = f"{identity.id}:{holder.session}", "AssumedRole", ""
    return Principal(caller, policies, limits, arn, user_id, name, kind, began, broken or limits_broken)


def _texts(identity: Identity) -> Iterable[str]:
    document: dict[str, Any] = orjson.loads(identity.document)
    yield from document.get("policies", {}).values()
    for arn in document.get("attached", ()):
        yield MANAGED[arn].text


def _parsed(texts: Iterable[str]) -> tuple[tuple[Policy, ...], bool]:
    """Policies, and whether one of them cannot be read."""
    try:
        return tuple([stored(text) for text in texts]), False
    except (ValueError, KeyError):
        return (CLOSED,), True
