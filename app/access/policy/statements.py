"""One statement of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.access.policy import conditions, errors, principals, resources
from sluice_s3.app.access.policy.actions import KNOWN, match_action
from sluice_s3.app.access.policy.conditions import Condition, Missing
from sluice_s3.app.access.policy.document import VERSIONS, find_either, texts
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.principals import Caller, PrincipalFacts
from sluice_s3.app.access.policy.resources import Resources
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.policy.wildcards import Work

PER_STATEMENT = 20
"""Steps of a statement that does not apply."""


class Request(NamedTuple):
    """A request to authorize: `action` as IAM writes it, `resource` as `BUCKET` or `BUCKET/KEY`."""

    caller: Caller | None
    """None: anonymous."""
    action: str
    resource: str
    values: Values


class Statement(NamedTuple):
    """A statement: its effect, and the requests that it applies to."""

    allow: bool
    about: PrincipalFacts
    actions: frozenset[str]
    resources: Resources
    conditions: Sequence[Condition | Missing]
    sid: str = ""

    def applies(self, request: Request, work: Work) -> bool:
        """Return whether the statement applies to a request. Raises TooCostly."""
        work.spend(PER_STATEMENT)
        return (
            request.action in self.actions
            and self.about.include(request.caller)
            and self.resources.include(request.resource, request.values, work, allow=self.allow)
            and all(one.is_met(request.values, work, allow=self.allow) for one in self.conditions)
        )


def parse(statement: dict[str, Any], bucket: str, version: str) -> Statement:
    """Parse a statement of a policy of `bucket`. Raises Malformed."""
    effect = statement.get("Effect")
    if effect is None:
        raise Malformed("Missing required field Effect")
    if effect not in ("Allow", "Deny"):
        raise Malformed(f"Invalid effect: {effect}")
    allow = effect == "Allow"
    variables = version == VERSIONS[1]
    about = principals.parse(statement, allow=allow)
    found, negated = find_either(statement, "Action")
    named = [match_action(text) for text in texts(found, errors.ACTION)]
    if negated:
        named = [KNOWN.difference(*named)]
    actions = frozenset().union(*named)
    of = resources.parse(statement, bucket, named, variables=variables)
    tests = conditions.parse(statement.get("Condition", {}), actions, variables=variables)
    return Statement(allow, about, actions, of, tests, statement.get("Sid", ""))
