"""One statement of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from app.access.policy import conditions, malformed, principals, resources
from app.access.policy.actions import KNOWN, matching
from app.access.policy.conditions import Condition, Missing
from app.access.policy.document import VERSIONS, one_of, texts
from app.access.policy.malformed import Malformed
from app.access.policy.principals import About, Caller
from app.access.policy.resources import Resources
from app.access.policy.variables import Values
from app.access.policy.wildcards import Work


class Request(NamedTuple):
    """What is asked: who wants to do `action` (as IAM writes it) to `resource` (`BUCKET` or `BUCKET/KEY`)."""

    caller: Caller | None
    """None: anonymous."""
    action: str
    resource: str
    values: Values


class Statement(NamedTuple):
    """What it says to those requests that it is about."""

    allow: bool
    about: About
    actions: frozenset[str]
    resources: Resources
    conditions: Sequence[Condition | Missing]

    def applies(self, request: Request, work: Work) -> bool:
        """Whether it is about a request. Raises TooCostly."""
        return (
            request.action in self.actions
            and self.about.include(request.caller)
            and self.resources.include(request.resource, request.values, work, allow=self.allow)
            and all(one.holds(request.values, work, allow=self.allow) for one in self.conditions)
        )


def parse(statement: dict[str, Any], bucket: str, version: str) -> Statement:
    """A statement of a policy of `bucket`. Raises Malformed."""
    effect = statement.get("Effect")
    if effect is None:
        raise Malformed("Missing required field Effect")
    if effect not in ("Allow", "Deny"):
        raise Malformed(f"Invalid effect: {effect}")
    allow = effect == "Allow"
    variables = version == VERSIONS[1]
    about = principals.parse(statement, allow=allow)
    found, negated = one_of(statement, "Action")
    named = [matching(text) for text in texts(found, malformed.ACTION)]
    if negated:
        named = [KNOWN.difference(*named)]
    actions = frozenset().union(*named)
    of = resources.parse(statement, bucket, named, variables=variables)
    tests = conditions.parse(statement.get("Condition", {}), actions, variables=variables)
    return Statement(allow, about, actions, of, tests)
