"""Policies of users, groups and roles, without principals, and trust policies of roles, without resources.

"IAM JSON policy reference", IAM User Guide. They may name services and condition keys that this gateway does not have:
no request ever concerns those.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from sluice_s3.app.access.policy import conditions, document, errors, principals
from sluice_s3.app.access.policy.actions import STS_ACTIONS, match_any_action
from sluice_s3.app.access.policy.document import VERSIONS, find_either, texts
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.evaluate import CLOSED, Policy
from sluice_s3.app.access.policy.principals import EVERYONE, PrincipalFacts, Principals
from sluice_s3.app.access.policy.resources import Resources
from sluice_s3.app.access.policy.statements import Statement
from sluice_s3.app.access.policy.variables import Template

_ARN = re.compile(r"(?:arn|\*):[^:]*:[^:]*:[^:]*:[^:]*:.+", re.DOTALL)
_SID = re.compile(r"[A-Za-z0-9]*")
_ASSUME = re.compile(r"sts:(?:\*|(?i:AssumeRole\w*|TagSession|SetSourceIdentity|SetContext))")
_TO_ALL = PrincipalFacts(Principals(EVERYONE), False)


def parse_identity(text: bytes) -> Policy:
    """Parse the policy of a user, group, role or session; resources are ARNs. Raises Malformed."""
    found = document.parse_document(text)
    variables = found["Version"] == VERSIONS[1]
    return Policy([_statement(one, variables) for one in found["Statement"]])


def parse_trust(text: bytes) -> Policy:
    """Parse the trust policy of a role, which has no resources. Raises Malformed."""
    found = document.parse_document(text)
    variables = found["Version"] == VERSIONS[1]
    return Policy([_trust(one, variables) for one in found["Statement"]])


@lru_cache(maxsize=4096)
def parse_stored_policy(text: str) -> Policy:
    """Parse a stored policy. Raises Malformed."""
    return parse_identity(text.encode("utf-8"))


@lru_cache(maxsize=1024)
def parse_stored_trust(text: str) -> Policy:
    """Parse a stored trust policy; one that cannot be parsed trusts nobody."""
    try:
        return parse_trust(text.encode("utf-8"))
    except ValueError:
        return CLOSED


def _effect(statement: dict[str, Any]) -> bool:
    if _SID.fullmatch(statement.get("Sid", "")) is None:
        raise Malformed(errors.SID)
    effect = statement.get("Effect")
    if effect is None:
        raise Malformed("Missing required field Effect")
    if effect not in ("Allow", "Deny"):
        raise Malformed(f"Invalid effect: {effect}")
    return bool(effect == "Allow")


def _statement(statement: dict[str, Any], variables: bool) -> Statement:
    allow = _effect(statement)
    if "Principal" in statement or "NotPrincipal" in statement:
        raise Malformed(errors.HAS_PRINCIPAL)
    found, negated = find_either(statement, "Action")
    actions = frozenset().union(*map(match_any_action, texts(found, errors.VENDOR)))
    if negated:
        actions = match_any_action("*") - actions
    tests = conditions.parse(statement.get("Condition", {}), None, variables=variables)
    return Statement(allow, _TO_ALL, actions, _resources(statement, variables), tests, statement.get("Sid", ""))


def _resources(statement: dict[str, Any], variables: bool) -> Resources:
    found, negated = find_either(statement, "Resource")
    named = texts(found, errors.NO_ARN)
    for text in named:
        if text != "*" and _ARN.fullmatch(text) is None:
            raise Malformed(errors.NO_ARN)
    return Resources([Template(text, variables=variables) for text in named], negated)


def _trust(statement: dict[str, Any], variables: bool) -> Statement:
    allow = _effect(statement)
    if "Resource" in statement or "NotResource" in statement:
        raise Malformed(errors.HAS_RESOURCE)
    found, negated = find_either(statement, "Action")
    named = texts(found, errors.VENDOR)
    if negated or not all(map(_ASSUME.fullmatch, named)):
        raise Malformed(errors.ONLY_ASSUME)
    actions = frozenset().union(*map(match_any_action, named)) & STS_ACTIONS
    about = principals.parse(statement, allow=allow)
    tests = conditions.parse(statement.get("Condition", {}), None, variables=variables)
    return Statement(allow, about, actions, Resources([Template("*", variables=False)], False), tests)
