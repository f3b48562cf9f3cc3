"""Policies of users, groups and roles, which name no principal, and trust policies of roles, which name no resource.

"IAM JSON policy reference", IAM User Guide. They may speak of services and of condition keys that there are none of:
no request is ever about those.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from app.access.policy import conditions, document, malformed, principals
from app.access.policy.actions import STS_ACTIONS, matching_any
from app.access.policy.document import VERSIONS, one_of, texts
from app.access.policy.evaluate import CLOSED, Policy
from app.access.policy.malformed import Malformed
from app.access.policy.principals import EVERYONE, About, Principals
from app.access.policy.resources import Resources
from app.access.policy.statements import Statement
from app.access.policy.variables import Template

_ARN = re.compile(r"(?:arn|\*):[^:]*:[^:]*:[^:]*:[^:]*:.+", re.DOTALL)
_SID = re.compile(r"[A-Za-z0-9]*")
_ASSUME = re.compile(r"sts:(?:\*|(?i:AssumeRole\w*|TagSession|SetSourceIdentity|SetContext))")
_TO_ALL = About(Principals(EVERYONE), False)


def parse_identity(text: bytes) -> Policy:
    """The policy of a user, group, role or session. Resources are asked by their ARNs. Raises Malformed."""
    found = document.read(text)
    variables = found["Version"] == VERSIONS[1]
    return Policy([_statement(one, variables) for one in found["Statement"]])


def parse_trust(text: bytes) -> Policy:
    """The policy that says who may assume a role; nothing is asked of its resources. Raises Malformed."""
    found = document.read(text)
    variables = found["Version"] == VERSIONS[1]
    return Policy([_trust(one, variables) for one in found["Statement"]])


@lru_cache(maxsize=4096)
def stored(text: str) -> Policy:
    """A policy as it is kept; raises Malformed."""
    return parse_identity(text.encode("utf-8"))


@lru_cache(maxsize=1024)
def stored_trust(text: str) -> Policy:
    """The same for a trust policy; what cannot be read trusts nobody."""
    try:
        return parse_trust(text.encode("utf-8"))
    except ValueError:
        return CLOSED


def _effect(statement: dict[str, Any]) -> bool:
    if _SID.fullmatch(statement.get("Sid", "")) is None:
        raise Malformed(malformed.SID)
    effect = statement.get("Effect")
    if effect is None:
        raise Malformed("Missing required field Effect")
    if effect not in ("Allow", "Deny"):
        raise Malformed(f"Invalid effect: {effect}")
    return bool(effect == "Allow")


def _statement(statement: dict[str, Any], variables: bool) -> Statement:
    allow = _effect(statement)
    if "Principal" in statement or "NotPrincipal" in statement:
        raise Malformed(malformed.HAS_PRINCIPAL)
    found, negated = one_of(statement, "Action")
    actions = frozenset().union(*map(matching_any, texts(found, malformed.VENDOR)))
    if negated:
        actions = matching_any("*") - actions
    tests = conditions.parse(statement.get("Condition", {}), None, variables=variables)
    return Statement(allow, _TO_ALL, actions, _resources(statement, variables), tests)


def _resources(statement: dict[str, Any], variables: bool) -> Resources:
    found, negated = one_of(statement, "Resource")
    named = texts(found, malformed.NO_ARN)
    for text in named:
        if text != "*" and _ARN.fullmatch(text) is None:
            raise Malformed(malformed.NO_ARN)
    return Resources([Template(text, variables=variables) for text in named], negated)


def _trust(statement: dict[str, Any], variables: bool) -> Statement:
    allow = _effect(statement)
    if "Resource" in statement or "NotResource" in statement:
        raise Malformed(malformed.HAS_RESOURCE)
    found, negated = one_of(statement, "Action")
    named = texts(found, malformed.VENDOR)
    if negated or not all(map(_ASSUME.fullmatch, named)):
        raise Malformed(malformed.ONLY_ASSUME)
    actions = frozenset().union(*map(matching_any, named)) & STS_ACTIONS
    about = principals.parse(statement, allow=allow)
    tests = conditions.parse(statement.get("Condition", {}), None, variables=variables)
    return Statement(allow, about, actions, Resources([Template("*", variables=False)], False), tests)
