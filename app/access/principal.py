"""Principals that act for an account: a user, or a session.

A principal may do what its own policies allow (those of a user and its groups, or of a role), or what a bucket policy
grants directly to it; a session only the part that its session policies also allow. "Policy evaluation logic", IAM User
Guide. The account itself, by a key of its own or in a session, needs no policy and is no principal here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import orjson

from sluice_s3.app.access.account import account_number, arn_of, caller_of, session_arn
from sluice_s3.app.access.policy import CLOSED, Caller, Decision, Policy, Request, Work
from sluice_s3.app.access.policy.identity_policies import parse_stored_policy
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, KeyOwner

MANAGED_KIND = "managed"
IDENTITY_KINDS = {USER: "inline", ROLE: "inline", GROUP: "group", POLICY: MANAGED_KIND}
"""The kinds of `NamedPolicy` by the kinds of identities."""


class Principal(NamedTuple):
    """A user or a session. `policies` is None for a session of the account itself: it may do everything."""

    caller: Caller
    """The caller as bucket policies name it."""
    policies: tuple[Policy, ...] | None
    limits: tuple[Policy, ...]
    """Session policies: what none of them allows, the session may not do; empty: no limit."""
    arn: str
    """The ARN of the user or role; `…:root` for the account."""
    user_id: str
    """`aws:userid`."""
    name: str
    """The name of the user; empty for others."""
    kind: str
    """`aws:PrincipalType`: `User`, `AssumedRole` or `Account`."""
    began: int | None
    """The start of the session in milliseconds; None for a key without a session."""
    broken: bool = False
    """A policy could not be parsed: nothing is allowed."""

    def decide(self, action: str, resource: str, values: Values, work: Work | None = None) -> Decision:
        """Return the decision of the principal's own policies on an action; `resource` is an ARN.

        `work` is the budget of all of them together.
        """
        if self.broken:
            return Decision.DENY
        request = Request(None, action, resource, values)
        if work is None:
            work = Work()
        limits = {policy.decide(request, work) for policy in self.limits}
        if Decision.DENY in limits or (self.limits and Decision.ALLOW not in limits):
            return Decision.DENY
        if self.policies is None:
            return Decision.ALLOW
        own = {policy.decide(request, work) for policy in self.policies}
        if Decision.DENY in own:
            return Decision.DENY
        return Decision.ALLOW if Decision.ALLOW in own else Decision.SILENT

    def denies(self, action: str, resource: str, values: Values) -> bool:
        """Return whether a policy of the principal denies an action that needs no allow."""
        request, work = Request(None, action, resource, values), Work()
        return self.broken or any(policy.decide(request, work) is Decision.DENY for policy in (self.policies or ()))


@lru_cache(maxsize=1024)
def build_principal(holder: KeyOwner) -> Principal:
    """Return the principal of an access key."""
    identity = holder.identity
    limits, limits_broken = _parse(policy.text for policy in session_policies(holder))
    began = None if holder.session is None else holder.began
    number = account_number(holder.account_id)
    if identity is None:
        root = caller_of(holder.account_id)
        return Principal(root, None, limits, root.arn, number, "", "Account", began, limits_broken)
    policies, broken = _parse(policy.text for policy in named_policies(holder))
    arn = arn_of(identity)
    caller = Caller(holder.account_id, number, arn, unique_id=identity.id)
    user_id, kind, name = identity.id, "User", identity.name
    if identity.kind == ROLE:
        caller = caller._replace(arn=session_arn(identity, holder.session or ""), role=arn)
        user_id, kind, name = f"{identity.id}:{holder.session}", "AssumedRole", ""
    return Principal(caller, policies, limits, arn, user_id, name, kind, began, broken or limits_broken)


class NamedPolicy(NamedTuple):
    """The text of a policy, and where it comes from."""

    kind: str
    """`inline`, `group` (inline of a group), `managed` (of the account), `aws` or `session`."""
    owner: str
    """The ARN of the identity that has it; of a managed policy, its own."""
    name: str
    text: str


def named_policies(holder: KeyOwner) -> Iterator[NamedPolicy]:
    """Yield the policies of an access key in the order of `Principal.policies`. Raises KeyError, ValueError."""
    for identity in (holder.identity, *holder.groups):
        if identity is None:
            continue
        owner, document = arn_of(identity), orjson.loads(identity.document)
        kind = IDENTITY_KINDS[identity.kind]
        for name, text in document.get("policies", {}).items():
            yield NamedPolicy(kind, owner, identity.name if kind == MANAGED_KIND else name, text)
        for attached in document.get("attached", ()):
            yield NamedPolicy("aws", attached, MANAGED[attached].name, MANAGED[attached].text)


def session_policies(holder: KeyOwner) -> list[NamedPolicy]:
    """Return the policies that limit a session, in the order of `Principal.limits`."""
    texts = orjson.loads(holder.policies or "[]")
    return [NamedPolicy("session", "", str(number), text) for number, text in enumerate(texts, 1)]


def _parse(texts: Iterable[str]) -> tuple[tuple[Policy, ...], bool]:
    """Return the policies, and whether one of them cannot be parsed."""
    try:
        return tuple([parse_stored_policy(text) for text in texts]), False
    except (ValueError, KeyError):
        return (CLOSED,), True
