"""Bucket policies: parsed, judged and evaluated without I/O.

parse(text, bucket) → Policy        raises Malformed
Policy.decide(Request) → Decision
is_public(Policy) → bool
"""

from app.access.policy.evaluate import CLOSED, Decision, Policy, parse
from app.access.policy.malformed import Malformed
from app.access.policy.principals import Caller
from app.access.policy.public import is_public
from app.access.policy.statements import Request

__all__ = ["CLOSED", "Caller", "Decision", "Malformed", "Policy", "Request", "is_public", "parse"]
