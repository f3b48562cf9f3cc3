"""Policies of buckets, users, groups and roles: parsed, judged and evaluated without I/O.

parse(text, bucket) → Policy        raises Malformed, as the next two
parse_identity(text) → Policy       of a user, a group, a role or a session
parse_trust(text) → Policy          who may assume a role
Policy.decide(Request) → Decision
is_public(Policy) → bool
"""

from app.access.policy.evaluate import CLOSED, Decision, Policy, parse
from app.access.policy.identity import parse_identity, parse_trust
from app.access.policy.malformed import Malformed
from app.access.policy.principals import Caller
from app.access.policy.public import is_public
from app.access.policy.statements import Request

__all__ = [
    "CLOSED",
    "Caller",
    "Decision",
    "Malformed",
    "Policy",
    "Request",
    "is_public",
    "parse",
    "parse_identity",
    "parse_trust",
]
