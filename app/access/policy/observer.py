"""Watches a real evaluation of policies, statement by statement, to explain its decision.

An observer in `Work` sees each policy that is evaluated. It runs the same `Policy.decide` over statements that
also record their result, so that an explanation and a decision cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, cast

from sluice_s3.app.access.policy.evaluate import Decision, Policy
from sluice_s3.app.access.policy.statements import Request, Statement
from sluice_s3.app.access.policy.wildcards import ALLOWED, TooCostly, Work

APPLIES, DIFFERS, SKIPPED = "applies", "differs", "not-evaluated"
OPEN, COSTLY = "depends", "too-costly"
"""Outcomes of a statement. OPEN: it needs a value that is not known."""
ACTION, PRINCIPAL, RESOURCE, CONDITION = "action", "principal", "resource", "condition"
"""Parts of a statement."""


class Mismatch(NamedTuple):
    """A part of a statement that does not match a request."""

    part: str
    key: str = ""
    """Of a condition: its key in lower case, its operator, the policy's values, and those of the request."""
    operator: str = ""
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] | None = None
    """None: the request does not have the key."""


class StatementTrace(NamedTuple):
    """What became of a statement."""

    place: int
    """Its place in the policy, from 0."""
    statement: Statement
    outcome: str = SKIPPED
    mismatches: tuple[Mismatch, ...] = ()


class PolicyTrace(NamedTuple):
    """One evaluation of a policy. `gifts`: only its Allow statements, for the principal without its account."""

    policy: Policy
    gifts: bool
    decision: Decision
    statements: tuple[StatementTrace, ...]

    @property
    def deciding(self) -> StatementTrace | None:
        """The statement that decides; None when none applies, or the budget did not suffice."""
        if self.decision is Decision.SILENT:
            return None
        allow = self.decision is Decision.ALLOW
        applying = (one for one in self.statements if one.outcome == APPLIES and one.statement.allow is allow)
        return next(applying, None)


class PolicyObserver:
    """Records the policies that an authorization evaluates, in order.

    Pass `Work(observer=self)` to it. The budget of the authorization is the usual one; what explains it has another of
    the same size.
    """

    def __init__(self) -> None:
        self.traces: list[PolicyTrace] = []
        self._work, self._explaining = Work(), Work(ALLOWED)

    def decide(self, policy: Policy, request: Request, *, gifts: bool) -> Decision:
        """Return the decision of a policy, and record how it came about. Raises what `values` raises."""
        watched = [_WatchedStatement(one, self._explaining) for one in policy.statements]
        decision = Decision.SILENT
        try:
            decision = Policy(cast(Sequence[Statement], watched)).decide(request, self._work, gifts=gifts)
        finally:
            traces = (
                StatementTrace(place, one.statement, one.outcome, one.mismatches) for place, one in enumerate(watched)
            )
            self.traces.append(PolicyTrace(policy, gifts, decision, tuple(traces)))
        return decision


class _WatchedStatement:
    """A statement that records the result of `applies`."""

    def __init__(self, statement: Statement, explaining: Work) -> None:
        self.statement = statement
        self.allow = statement.allow
        self.outcome = SKIPPED
        self.mismatches: tuple[Mismatch, ...] = ()
        self._explaining = explaining

    def applies(self, request: Request, work: Work) -> bool:
        self.outcome = OPEN
        try:
            applies = self.statement.applies(request, work)
        except TooCostly:
            self.outcome = COSTLY
            raise
        self.outcome = APPLIES if applies else DIFFERS
        if not applies:
            # a value that the decision did not need may be unknown: to explain must not change the decision
            with suppress(Exception):
                self.mismatches = tuple(find_mismatches(self.statement, request, self._explaining))
        return applies


def find_mismatches(statement: Statement, request: Request, work: Work) -> list[Mismatch]:
    """Return all parts of a statement that do not match a request; none if it applies. Raises TooCostly."""
    found: list[Mismatch] = []
    if request.action not in statement.actions:
        found.append(Mismatch(ACTION))
    if not statement.about.include(request.caller):
        found.append(Mismatch(PRINCIPAL))
    if not statement.resources.include(request.resource, request.values, work, allow=statement.allow):
        found.append(Mismatch(RESOURCE))
    for condition in statement.conditions:
        if not condition.is_met(request.values, work, allow=statement.allow):
            values = request.values(condition.key)
            known = None if values is None else tuple(values)
            found.append(Mismatch(CONDITION, condition.key, condition.name, condition.policy_values, known))
    return found
