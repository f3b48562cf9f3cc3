"""Finds the principal that a question to the simulator names, with its policies and drafts of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.access.account import account_number, arn_of, caller_of, session_arn
from sluice_s3.app.access.policy import Malformed, Policy
from sluice_s3.app.access.policy.identity_policies import parse_identity, parse_stored_policy
from sluice_s3.app.access.policy.principals import ARN_START, SESSION_START
from sluice_s3.app.access.policy_principals import find_identity_by_arn
from sluice_s3.app.access.principal import (
    NamedPolicy,
    Principal,
    build_principal,
    named_policies,
    session_policies,
)
from sluice_s3.app.access.simulation import SESSION, label
from sluice_s3.app.admin.simulation.models import Draft
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import ROLE, Identity, KeyOwner

ANONYMOUS = "*"
SESSION_NAME = "simulation"
"""The name of a role's session that exists only in a question."""


class Unknown(Exception):
    """The principal does not exist."""


class Found(NamedTuple):
    """The principal of a question."""

    account_id: str | None
    """None: anonymous."""
    holder: KeyOwner | None
    """None: the account itself, or nobody."""
    disabled: str = ""
    """Why each of its requests is refused; empty if they are not."""
    by_key: bool = False
    """The question names an access key."""

    @property
    def arn(self) -> str:
        """Its ARN, as `iam:SimulatePrincipalPolicy` names it."""
        if self.account_id is None:
            return ANONYMOUS
        identity = None if self.holder is None else self.holder.identity
        return caller_of(self.account_id).arn if identity is None else arn_of(identity)


async def find_principal(index: Index, name: str) -> Found:
    """Return the principal of an access key, an ARN, an account's id or number, or `*`. Raises Unknown."""
    if name == ANONYMOUS:
        return Found(None, None)
    if name.startswith(SESSION_START):
        return await _find_session(index, name)
    if name.startswith(ARN_START) and not name.endswith(":root"):
        identity = await find_identity_by_arn(index, name)
        if identity is None:
            raise Unknown
        return await _found(index, identity, SESSION_NAME if identity.kind == ROLE else None)
    key = await index.access_key(name)
    if key is not None:
        disabled = "This access key or its account is disabled: every request is refused." if key.disabled else ""
        if key.expires and key.expires < time.time_ns() // 1_000_000:
            disabled = "This temporary key has expired: every request is refused."
        return Found(key.account_id, key.holder, disabled, by_key=True)
    return await _find_account(index, name)


async def _find_account(index: Index, name: str) -> Found:
    account = await index.account(name)
    if account is None:
        number = name.removeprefix(ARN_START).removesuffix(":root")
        account = next((one for one, _ in await index.accounts() if number in (one.id, account_number(one.id))), None)
    if account is None:
        raise Unknown
    return Found(account.id, None, "The account is disabled: every request is refused." if account.disabled else "")


async def _find_session(index: Index, name: str) -> Found:
    role_name, _, session = name.removeprefix(SESSION_START).partition(":assumed-role/")[2].partition("/")
    for role in await index.identities_named(ROLE, role_name):
        if session and session_arn(role, session) == name:
            return await _found(index, role, session)
    raise Unknown


async def _found(index: Index, identity: Identity, session: str | None) -> Found:
    holder = await index.key_owner(identity.account_id, identity.id)
    if holder is None:
        raise Unknown
    account = await index.account(identity.account_id)
    disabled = "The account is disabled: every request is refused." if account is not None and account.disabled else ""
    if session is not None:
        holder = holder._replace(session=session, began=time.time_ns() // 1_000_000)
    return Found(identity.account_id, holder, disabled)


def prepare_principal(found: Found, drafts: Sequence[Draft]) -> tuple[Principal | None, dict[int, NamedPolicy]]:
    """Return the principal with drafts in place of its policies, and the origin of each by `id(policy)`.

    `drafts` are those of the principal. Raises Malformed for one that is no policy, ValueError for one without use.
    """
    holder = found.holder
    limiting = [one for one in drafts if one.kind == SESSION]
    if found.account_id is None and drafts:
        raise ValueError("Nobody can have a policy: an anonymous request has none. Ask about a user or a role.")
    if holder is None and limiting:
        holder = KeyOwner(found.account_id or "", None, session=SESSION_NAME, began=time.time_ns() // 1_000_000)
    if (holder is None or holder.identity is None) and len(limiting) < len(drafts):
        raise ValueError("An account has no policies of its own. Ask about a user or a role.")
    if holder is None:
        return None, {}
    principal = build_principal(holder)
    if principal.broken:
        return principal, {}
    replacing = [one for one in drafts if one.kind != SESSION]
    own, sources = (
        (None, {}) if principal.policies is None else label(_replaced(list(named_policies(holder)), replacing))
    )
    limits, of_limits = label(_replaced(session_policies(holder), limiting))
    return principal._replace(policies=own, limits=limits), sources | of_limits


def _replaced(stored: Sequence[NamedPolicy], drafts: Sequence[Draft]) -> list[tuple[NamedPolicy, Policy]]:
    """Return parsed policies, drafts in place of those of the same kind and name. Raises Malformed."""
    found = {(one.kind, one.owner, one.name): (one, parse_stored_policy(one.text)) for one in stored}
    for number, draft in enumerate(drafts):
        same = [one for one in found if one[0] == draft.kind and one[2] == draft.name and draft.owner in ("", one[1])]
        place = same[0] if same else (draft.kind, draft.owner, draft.name or f"draft {number + 1}")
        found[place] = (NamedPolicy(*place, draft.text), _parse(draft.text))
    return list(found.values())


def _parse(text: str) -> Policy:
    try:
        return parse_identity(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise Malformed("The policy is no text.") from None
