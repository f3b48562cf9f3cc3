"""Is a history of one key linearizable? (Wing and Gong's search, event by event as in Lowe 2017, with memory.)

A configuration is a state of the key and which of the operations that run have taken place by then. When an operation
is answered, only configurations in which it has taken place survive; when none does, the history is wrong there.
Operations of unknown outcome run for ever and need not take place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.reliability.lab.checkers.histories import ABSENT, Kind, Operation, step


class Configuration(NamedTuple):
    """A state, and as bits which of the operations that run have taken place: those with an answer, and the others."""

    state: str
    answered: int
    unknown: int


class Verdict(NamedTuple):
    """`wrong` is the operation whose answer nothing explains, None when all are; `states` could be before it."""

    wrong: Operation | None
    states: frozenset[str]

    def __bool__(self) -> bool:
        return self.wrong is None


def check(history: Sequence[Operation], state: str = ABSENT) -> Verdict:
    """Whether there is an order that explains every answer, beginning in `state`."""
    operations = [one for one in history if not (one.is_open and one.kind is Kind.READ)]
    events = [(one.begun, 0, number) for number, one in enumerate(operations)]
    events += [(one.ended, 1, number) for number, one in enumerate(operations) if not one.is_open]
    running: set[int] = set()
    configurations = {Configuration(state, 0, 0)}
    for _, ends, number in sorted(events):  # at the same moment a begin comes first: the two may overlap
        if not ends:
            running.add(number)
            continue
        left = _with(number, configurations, [(one, operations[one]) for one in running])
        if not left:
            return Verdict(operations[number], frozenset(one.state for one in configurations))
        running.discard(number)
        done = ~(1 << number)
        configurations = {one._replace(answered=one.answered & done) for one in left}
    return Verdict(None, frozenset(one.state for one in configurations))


def _with(number: int, begin: set[Configuration], running: Sequence[tuple[int, Operation]]) -> set[Configuration]:
    """Configurations in which `number` has taken place, reached by letting operations that run take place before it.

    Those that spent fewer operations of unknown outcome are looked at first, and make the same with more needless.
    """
    wanted = 1 << number
    reached = _Least()
    levels: list[list[Configuration]] = [[] for _ in range(len(running) + 2)]
    for one in begin:
        levels[min(one.unknown.bit_count(), len(running))].append(one)
    for level in levels:
        while level:
            at = level.pop()
            if not reached.add(at) or at.answered & wanted:
                continue
            for other, operation in running:
                bit = 1 << other
                if (at.unknown if operation.is_open else at.answered) & bit:
                    continue
                state = step(operation, at.state)
                if state is None:
                    continue
                if not operation.is_open:
                    level.append(Configuration(state, at.answered | bit, at.unknown))
                elif state != at.state:
                    more = at.unknown | bit
                    levels[more.bit_count()].append(Configuration(state, at.answered, more))
    return {one for one in reached.all() if one.answered & wanted}


class _Least:
    """Configurations without those that another one makes needless."""

    def __init__(self) -> None:
        self._spent: dict[tuple[str, int], list[int]] = {}

    def add(self, one: Configuration) -> bool:
        """False when the same was reached before, with no other operations of unknown outcome spent."""
        spent = self._spent.setdefault((one.state, one.answered), [])
        if any(other & one.unknown == other for other in spent):
            return False
        spent[:] = [other for other in spent if other & one.unknown != one.unknown]
        spent.append(one.unknown)
        return True

    def all(self) -> Iterator[Configuration]:
        """Every one that is left."""
        for (state, answered), spent in self._spent.items():
            for unknown in spent:
                yield Configuration(state, answered, unknown)
