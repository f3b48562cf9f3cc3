"""Policies of buckets, users, groups and roles: parsed and evaluated without I/O.

parse(text, bucket) → Policy        raises Malformed, as the next two
parse_identity(text) → Policy       of a user, a group, a role or a session
parse_trust(text) → Policy          the principals that may assume a role
Policy.decide(Request, Work) → Decision    Work: the remaining budget
is_public(Policy) → bool
"""

from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.evaluate import CLOSED, Decision, Policy, parse
from sluice_s3.app.access.policy.identity_policies import parse_identity, parse_trust
from sluice_s3.app.access.policy.principals import Caller
from sluice_s3.app.access.policy.public import is_public
from sluice_s3.app.access.policy.statements import Request
from sluice_s3.app.access.policy.wildcards import ALLOWED, Work

__all__ = [
    "ALLOWED",
    "CLOSED",
    "Caller",
    "Decision",
    "Malformed",
    "Policy",
    "Request",
    "Work",
    "is_public",
    "parse",
    "parse_identity",
    "parse_trust",
]
