"""What clients did to one key and the answers, with times: the input of the checkers."""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import NamedTuple

ABSENT = ""
"""The state of a key that has no object; any other state is its ETag."""


class Kind(Enum):
    """What an operation does to its key. Copy and Complete are writes like a PUT."""

    WRITE = "write"
    DELETE = "delete"
    READ = "read"


class Outcome(Enum):
    """What the answer says of the operation."""

    DONE = "done"
    REFUSED = "refused"
    """412: the condition did not hold, and (with If-Match) there was an object."""
    MISSING = "missing"
    """404 for If-Match: there was no object."""
    UNKNOWN = "unknown"
    """No answer, or one that says nothing: it may have happened at any time since, or never."""
    UNSENT = "unsent"
    """Nobody took the connection: it did not happen, and no history has it."""


NO_CONDITION = None
IF_NONE_MATCH = "*"
"""The condition that there is no object. Any other text is If-Match of that ETag."""


class Operation(NamedTuple):
    """One call. Times are of one clock, in seconds."""

    kind: Kind
    begun: float
    ended: float = inf
    outcome: Outcome = Outcome.DONE
    value: str = ABSENT
    """The ETag that a write gives the key, or that a read saw."""
    condition: str | None = NO_CONDITION
    who: str = ""
    """For reports."""
    version: str = ""
    """The id of the version or delete marker that it made, where there are versions."""

    @property
    def is_open(self) -> bool:
        """It may have happened, or not."""
        return self.outcome is Outcome.UNKNOWN


class Removal(NamedTuple):
    """A DELETE of one version. It is refused where a lock keeps the version."""

    key: str
    version: str
    begun: float
    ended: float
    outcome: Outcome


def step(operation: Operation, state: str) -> str | None:
    """The state after it when it takes place in `state`; None when it cannot, since the answer says otherwise.

    One of unknown outcome takes place only where it changes the state: else it is as if it never had.
    """
    kind, condition = operation.kind, operation.condition
    if kind is Kind.READ:
        return state if operation.value == state else None
    if condition is NO_CONDITION:
        holds, missing = True, False
    elif condition == IF_NONE_MATCH:
        holds, missing = state == ABSENT, False
    else:
        holds, missing = state == condition, state == ABSENT
    if operation.outcome is Outcome.REFUSED:
        return None if holds or missing else state
    if operation.outcome is Outcome.MISSING:
        return state if missing else None
    if not holds:
        return None
    return operation.value if kind is Kind.WRITE else ABSENT
