"""Answers a question to the simulator: gathers what the request would have, decides, and puts it in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import orjson

from sluice_s3.app.access.authorize import SERVICE_ACTIONS, Verdict, authorize, is_payer, resource_of
from sluice_s3.app.access.bucket_access import clear_cache, policy_text
from sluice_s3.app.access.policy import Decision
from sluice_s3.app.access.policy.actions import BUCKET_ACTIONS, KNOWN, OBJECT_ACTIONS
from sluice_s3.app.access.policy.observer import ACTION, CONDITION, PRINCIPAL, Mismatch, StatementTrace
from sluice_s3.app.access.policy_principals import unbind_principals
from sluice_s3.app.access.principal import NamedPolicy
from sluice_s3.app.access.simulation import (
    BUCKET,
    DENIED,
    Deciding,
    NamedTrace,
    Question,
    SimulatedObject,
    Simulation,
    simulate,
)
from sluice_s3.app.admin.sessions.guard import Caller
from sluice_s3.app.admin.simulation.conditions import VERSION_ID, SimulatedConditions
from sluice_s3.app.admin.simulation.models import (
    ConditionOut,
    GrantOut,
    MismatchOut,
    PolicyOut,
    PolicyRef,
    SimulationIn,
    SimulationOut,
    StatementOut,
    StatementRef,
)
from sluice_s3.app.admin.simulation.principals import ANONYMOUS, Found, prepare_principal
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.wire import metadata

_ACTIONS = {action.lower(): action for action in KNOWN}
OF_ACCOUNT = SERVICE_ACTIONS
"""Actions that are authorized without a bucket, even where one of the name exists."""
_READS_OBJECT = ("s3:GetObjectAcl", "s3:GetObjectTagging")
"""What who asks needs to learn what depends on an object's ACL and tags."""


async def answer(
    index: Index, asked: SimulationIn, found: Found, bucket: Bucket | None, notes: list[str], caller: Caller
) -> SimulationOut:
    """Return the answer to a question. Raises Malformed for a draft, ValueError for what cannot be asked."""
    action, key = _action(asked), asked.key or None
    if action in OF_ACCOUNT:
        bucket = None
    principal, sources = prepare_principal(found, [one for one in asked.drafts if one.kind != BUCKET])
    version = await _find_version(index, asked, bucket, caller)
    conditions = SimulatedConditions(
        asked.conditions,
        found.account_id,
        principal,
        bucket,
        action=action,
        address=caller.address,
        tags=None if version is None else metadata.tags(version.headers),
    )
    known = None if version is None else SimulatedObject(version.owner_id, metadata.grants(version.headers))
    name = asked.bucket or None
    question = Question(found.account_id, principal, action, bucket, key, name, conditions.find_values, sources, known)
    simulation = simulate(question)
    if any(one.kind == BUCKET for one in asked.drafts):
        clear_cache()  # drafts must not fill it
    if found.disabled:
        simulation = simulation._replace(decision=DENIED, ground="disabled", reason=found.disabled, deciding=())
    if bucket is not None and is_payer(found.account_id, bucket, None) is False:
        notes.append("The bucket is Requester Pays: the request needs the header x-amz-request-payer: requester.")
    texts = {BUCKET: "" if bucket is None else await unbind_principals(index, policy_text(bucket) or "")}
    refs = _Refs(asked)
    return SimulationOut(
        decision=_literal(simulation),
        ground=simulation.ground,
        reason=simulation.reason,
        principal=ANONYMOUS if found.account_id is None else found.arn if principal is None else principal.caller.arn,
        resource=resource_of(bucket, key, name),
        deciding=[refs.statement(one) for one in simulation.deciding],
        grant=None if simulation.grant is None else GrantOut(**simulation.grant._asdict()),
        policies=[_policy(one, refs, texts.get(one.source.kind, one.source.text)) for one in simulation.traces],
        conditions=[
            ConditionOut(key=name, values=None if values is None else list(values), given=name in conditions.given)
            for name, values in sorted(conditions.asked.items())
        ],
        notes=notes,
    )


def _literal(simulation: Simulation) -> Literal["allowed", "denied", "depends"]:
    found: Literal["allowed", "denied", "depends"] = simulation.decision  # type: ignore[assignment]
    return found


def _action(asked: SimulationIn) -> str:
    """Return the action as policies match it. Raises ValueError for one that does not fit the resource."""
    action = _ACTIONS.get(asked.action.lower())
    if action is None:
        raise ValueError(f"{asked.action[:64]} is no action of S3: it is written as in policies, s3:GetObject.")
    if action in OBJECT_ACTIONS and not asked.key:
        raise ValueError(f"{action} is an action on objects: name a key.")
    if action in BUCKET_ACTIONS and asked.key:
        raise ValueError(f"{action} is an action on buckets: name no key.")
    if asked.key and not asked.bucket:
        raise ValueError("A key needs a bucket.")
    return action


async def _find_version(index: Index, asked: SimulationIn, bucket: Bucket | None, caller: Caller) -> Version | None:
    """Return the object that a question names, if it is there and who asks may read its ACL and tags."""
    if bucket is None or not asked.key:
        return None
    named = next((value for name, value in asked.conditions.items() if name.lower() == VERSION_ID), None)
    stored = await index.bucket(bucket.name)
    if stored is None or not (caller.root or all(_may(caller, action, stored, asked.key) for action in _READS_OBJECT)):
        return None
    return await index.version(bucket.id, asked.key, named if isinstance(named, str) and named else None)


def _may(caller: Caller, action: str, bucket: Bucket, key: str) -> bool:
    return authorize(caller.account_id, action, bucket, key, caller.values, principal=caller.principal) is Verdict.YES


class _Refs:
    """Names policies and statements in answers."""

    def __init__(self, asked: SimulationIn) -> None:
        self._drafts = {(one.kind, one.text) for one in asked.drafts}
        self._bucket = any(one.kind == BUCKET for one in asked.drafts)

    def policy(self, source: NamedPolicy) -> PolicyRef:
        draft = self._bucket if source.kind == BUCKET else (source.kind, source.text) in self._drafts
        return PolicyRef(kind=source.kind, owner=source.owner, name=source.name, draft=draft)

    def statement(self, one: Deciding) -> StatementRef:
        trace = one.statement
        effect: Literal["Allow", "Deny"] = "Allow" if trace.statement.allow else "Deny"
        return StatementRef(policy=self.policy(one.source), index=trace.place, sid=trace.statement.sid, effect=effect)


def _policy(one: NamedTrace, refs: _Refs, text: str) -> PolicyOut:
    statements = _statements(text)
    decision: Literal["allow", "deny", "silent"] = one.trace.decision.value
    if decision == Decision.DENY.value and one.trace.deciding is None:
        decision = "deny"
    return PolicyOut(
        policy=refs.policy(one.source),
        decision=decision,
        alone=one.trace.gifts,
        statements=[
            _statement(trace, statements[trace.place] if trace.place < len(statements) else {})
            for trace in one.trace.statements
        ],
    )


def _statements(text: str) -> Sequence[dict[str, Any]]:
    found = orjson.loads(text).get("Statement", []) if text else []
    return found if isinstance(found, list) else [found]


def _statement(trace: StatementTrace, written: dict[str, Any]) -> StatementOut:
    outcome: Literal["applies", "differs", "not-evaluated", "depends", "too-costly"] = trace.outcome  # type: ignore[assignment]
    return StatementOut(
        index=trace.place,
        sid=trace.statement.sid,
        effect="Allow" if trace.statement.allow else "Deny",
        outcome=outcome,
        mismatches=[_mismatch(one) for one in trace.mismatches],
        statement=written,
    )


def _mismatch(one: Mismatch) -> MismatchOut:
    part: Literal["action", "principal", "resource", "condition"] = one.part  # type: ignore[assignment]
    found = None if one.found is None else list(one.found)
    expected = list(one.expected)
    return MismatchOut(
        part=part, text=_sentence(one), key=one.key, operator=one.operator, expected=expected, found=found
    )


def _sentence(one: Mismatch) -> str:
    if one.part == ACTION:
        return "The action is not one of its actions."
    if one.part == PRINCIPAL:
        return "The principal is not one of its principals."
    if one.part != CONDITION:
        return "The resource is not one of its resources."
    expected = ", ".join(one.expected)
    had = "was absent" if one.found is None else f"was {', '.join(one.found)}"
    return f"{one.operator} on {one.key} wants {expected}; it {had}."
