"""Whether a policy is public, for GetBucketPolicyStatus, BlockPublicPolicy and RestrictPublicBuckets.

A policy is public unless each Allow statement names fixed principals, or has a condition that fixes the caller or its
source ("Blocking public access to your Amazon S3 storage", User Guide, "The meaning of public").
"""

from __future__ import annotations

from sluice_s3.app.access.policy.conditions import Condition, Missing
from sluice_s3.app.access.policy.evaluate import Policy
from sluice_s3.app.access.policy.operators import network
from sluice_s3.app.access.policy.statements import Statement

_NAMES_FIXING = """
aws:sourcearn aws:sourcevpc aws:sourcevpce aws:sourceowner aws:sourceaccount aws:userid aws:principalarn
aws:principalaccount aws:principalorgid aws:principalorgpaths s3:x-amz-server-side-encryption-aws-kms-key-id
s3:dataaccesspointarn s3:dataaccesspointaccount
"""
FIXING = frozenset(_NAMES_FIXING.lower().split())
FIXED_BY = frozenset({"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike"})
BROAD_V4, BROAD_V6 = 8, 32
"""Networks with shorter prefixes than these are public."""


def is_public(policy: Policy) -> bool:
    """Return whether a policy allows the public anything."""
    return any(lets_public_in(statement) for statement in policy.statements)


def lets_public_in(statement: Statement) -> bool:
    """Return whether a statement allows the public anything."""
    if not statement.allow or not statement.about.principals.everyone:
        return False
    return not any(_fixes(condition) for condition in statement.conditions)


def _fixes(condition: Condition | Missing) -> bool:
    # ForAllValues: and IfExists also hold for requests without the key
    if condition.key == "aws:sourceip" and condition.name == "IpAddress":
        return all(map(_narrow, condition.policy_values))
    name = condition.name.removeprefix("ForAnyValue:")
    return condition.key in FIXING and name in FIXED_BY and not any(map(_open, condition.policy_values))


def _open(value: str) -> bool:
    return any(sign in value for sign in "*?") or "${" in value


def _narrow(value: str) -> bool:
    found = network(value)
    return found is not None and found.prefix >= (BROAD_V4 if found.version == 4 else BROAD_V6)
