"""The `Condition` of a statement: operator → key → values, which must all hold.

A key that is absent from a request makes an operator false and a negated one true; `…IfExists` makes both true, and
`Null` tests for just that. `ForAllValues:` holds for every value of the request (and so for none), `ForAnyValue:` for
at least one (and so never for none); both ignore `IfExists`. Without a set operator a key with several values matches
when one of them does, and a negated operator holds when none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluice_s3.app.access.policy import condition_keys, errors
from sluice_s3.app.access.policy.document import texts
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.operators import OPERATORS, Holds, boolean
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.policy.wildcards import Work

SETS = ("ForAllValues", "ForAnyValue")
IF_EXISTS = "IfExists"
NULL = "Null"
PER_CONDITION = 40
"""Steps for one lookup of a key."""
PER_TEST = 20
"""Steps for a comparison of two short values."""


class Condition:
    """One operator on one key."""

    def __init__(self, name: str, key: str, policy_values: Sequence[str], *, variables: bool) -> None:
        """Raise Malformed for an unknown operator or an invalid value."""
        self.key = key.lower()
        self.name = name
        self.policy_values = tuple(policy_values)
        self._quantifier, _, rest = name.rpartition(":")
        self._if_exists = rest.endswith(IF_EXISTS)
        operator = OPERATORS.get(rest.removesuffix(IF_EXISTS))
        if operator is None or (self._quantifier and self._quantifier not in SETS):
            raise Malformed(f"Invalid Condition type : {name}")
        self.negated = operator.negated
        self._tests: list[Holds] = [operator.prepare(value, variables) for value in policy_values]

    def is_met(self, values: Values, work: Work, *, allow: bool) -> bool:
        """Return whether the condition holds for the values of a request. Raises TooCostly.

        A policy value without meaning for a request matches nothing. For a negated operator in an Allow statement that
        would allow what is unknown: there the condition does not hold.
        """
        work.spend(PER_CONDITION)
        found = values(self.key)
        if not found:
            if self._quantifier:
                return self._quantifier == "ForAllValues"
            return self._if_exists or self.negated
        answers = [self._matches_any(value, values, work) for value in found]
        if self.negated and allow and None in answers:
            return False
        matched = [bool(answer) for answer in answers]
        if self._quantifier == "ForAllValues":
            return not any(matched) if self.negated else all(matched)
        if self._quantifier == "ForAnyValue":
            return not all(matched) if self.negated else any(matched)
        return any(matched) != self.negated

    def _matches_any(self, value: str, values: Values, work: Work) -> bool | None:
        """Return whether a value of the request matches a policy value.

        Returns None if none matches, but one has no meaning.
        """
        unknown = False
        cost = PER_TEST + (len(value) >> 7)
        for test in self._tests:
            work.spend(cost)
            answer = test(value, values, work)
            if answer:
                return True
            unknown = unknown or answer is None
        return None if unknown else False


class Missing:
    """The operator `Null`: "true" for an absent key, "false" for a present one."""

    def __init__(self, key: str, policy_values: Sequence[str]) -> None:
        self.key = key.lower()
        self.name = NULL
        self.negated = False
        self.policy_values = tuple(policy_values)
        answers = {boolean(value) for value in policy_values}
        if None in answers:
            raise Malformed(errors.CONDITION_VALUE)
        self._answers = answers

    def is_met(self, values: Values, work: Work, *, allow: bool) -> bool:
        """Return whether the condition holds. Raises TooCostly."""
        work.spend(PER_CONDITION)
        return (not values(self.key)) in self._answers


def parse(block: Any, actions: frozenset[str] | None, *, variables: bool) -> list[Condition | Missing]:
    """Return the conditions of a statement on these actions. Raises Malformed.

    `actions` None: any action, and unknown keys are allowed.
    """
    if not isinstance(block, dict):
        raise Malformed(errors.SYNTAX)
    found: list[Condition | Missing] = []
    for name, tests in block.items():
        if not isinstance(tests, dict):
            raise Malformed(errors.SYNTAX)
        for key, value in tests.items():
            policy_values = texts(_as_text(value), errors.SYNTAX)
            condition = (
                Missing(key, policy_values)
                if name == NULL
                else Condition(name, key, policy_values, variables=variables)
            )
            if actions is not None:
                condition_keys.check(condition.key, actions)
            found.append(condition)
    return found


def _as_text(value: Any) -> Any:
    """Return booleans as their texts; numbers are texts already."""
    if isinstance(value, list):
        return [str(one).lower() if isinstance(one, bool) else one for one in value]
    return str(value).lower() if isinstance(value, bool) else value
