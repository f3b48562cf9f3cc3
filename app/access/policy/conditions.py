"""The `Condition` of a statement: blocks of operator → key → values, which must all hold.

A key that a request has not makes an operator false, a negated one true; `…IfExists` makes both true, `Null` asks for
just that. `ForAllValues:` holds for every value of the request (and so for none), `ForAnyValue:` for at least one (and
so never for none); neither of them heeds `IfExists`. Without a set operator a key with several values matches when one
of them does, and a negated operator holds when none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.access.policy import keys, malformed
from app.access.policy.document import texts
from app.access.policy.malformed import Malformed
from app.access.policy.operators import OPERATORS, Holds, boolean
from app.access.policy.variables import Values
from app.access.policy.wildcards import Work

SETS = ("ForAllValues", "ForAnyValue")
IF_EXISTS = "IfExists"
NULL = "Null"


class Condition:
    """One operator on one key. `holds` is given the values of a request's keys."""

    def __init__(self, name: str, key: str, wanted: Sequence[str], *, variables: bool) -> None:
        """Raises Malformed for an operator or a value that there is none of."""
        self.key = key.lower()
        self.name = name
        self.wanted = tuple(wanted)
        self._quantifier, _, rest = name.rpartition(":")
        self._if_exists = rest.endswith(IF_EXISTS)
        operator = OPERATORS.get(rest.removesuffix(IF_EXISTS))
        if operator is None or (self._quantifier and self._quantifier not in SETS):
            raise Malformed(f"Invalid Condition type : {name}")
        self.negated = operator.negated
        self._tests: list[Holds] = [operator.prepare(value, variables) for value in wanted]

    def holds(self, values: Values, work: Work, *, allow: bool) -> bool:
        """Whether it holds. Raises TooCostly.

        A value of the policy without meaning for a request matches nothing; of a negated operator in a statement that
        allows, that would be a yes to what nobody can know: then it does not hold.
        """
        found = values(self.key)
        if not found:
            if self._quantifier:
                return self._quantifier == "ForAllValues"
            return self._if_exists or self.negated
        one = [self._one(value, values, work) for value in found]
        if self.negated and allow and None in one:
            return False
        matched = [bool(answer) for answer in one]
        if self._quantifier == "ForAllValues":
            return not any(matched) if self.negated else all(matched)
        if self._quantifier == "ForAnyValue":
            return not all(matched) if self.negated else any(matched)
        return any(matched) != self.negated

    def _one(self, value: str, values: Values, work: Work) -> bool | None:
        """Whether a value of the request matches a value of the policy; None: none, but one has no meaning."""
        unknown = False
        for test in self._tests:
            answer = test(value, values, work)
            if answer:
                return True
            unknown = unknown or answer is None
        return None if unknown else False


class Missing:
    """The operator `Null`: "true" for a key that is not there, "false" for one that is."""

    def __init__(self, key: str, wanted: Sequence[str]) -> None:
        self.key = key.lower()
        self.name = NULL
        self.negated = False
        self.wanted = tuple(wanted)
        answers = {boolean(value) for value in wanted}
        if None in answers:
            raise Malformed(malformed.CONDITION_VALUE)
        self._answers = answers

    def holds(self, values: Values, work: Work, *, allow: bool) -> bool:
        """Whether it holds."""
        return (not values(self.key)) in self._answers


def parse(block: Any, actions: frozenset[str] | None, *, variables: bool) -> list[Condition | Missing]:
    """The conditions of a statement on these actions; None: of any, on keys that may be unknown. Raises Malformed."""
    if not isinstance(block, dict):
        raise Malformed(malformed.SYNTAX)
    found: list[Condition | Missing] = []
    for name, tests in block.items():
        if not isinstance(tests, dict):
            raise Malformed(malformed.SYNTAX)
        for key, value in tests.items():
            wanted = texts(_as_text(value), malformed.SYNTAX)
            condition = Missing(key, wanted) if name == NULL else Condition(name, key, wanted, variables=variables)
            if actions is not None:
                keys.check(condition.key, actions)
            found.append(condition)
    return found


def _as_text(value: Any) -> Any:
    """Truth values as the texts that they mean; numbers are texts already."""
    if isinstance(value, list):
        return [str(one).lower() if isinstance(one, bool) else one for one in value]
    return str(value).lower() if isinstance(value, bool) else value
