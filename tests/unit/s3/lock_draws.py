"""What the walk over locked objects draws, and rules that hang on what is there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from sluice_s3.app.index.object_lock.protection import COMPLIANCE, GOVERNANCE, NONE, Lock
from tests.unit.s3.lock_stores import THRESHOLD

KEYS = st.sampled_from(["a", "b/c"])
BODIES = st.tuples(st.integers(1, 99), st.sampled_from([10, 500, THRESHOLD + 100])).map(
    lambda two: bytes(two[:1]) * two[1]
)
HOLDS = st.sampled_from([None, None, False, True])
LOCKS = st.one_of(
    st.just(NONE),
    st.builds(Lock, st.sampled_from([GOVERNANCE, COMPLIANCE]), st.integers(1, 8), HOLDS),
    HOLDS.map(lambda hold: Lock(hold=hold)),
)
CLASSES = st.sampled_from(["", "", "", "GLACIER"])
Rule = Callable[..., None]


class Who(NamedTuple):
    """Who asks: the account or its user, with or without the header that passes over GOVERNANCE."""

    root: bool
    bypass: bool


CALLERS = st.builds(Who, st.sampled_from([True, True, False]), st.sampled_from([True, True, False]))
PICKS = st.integers(0, 99)
"""Number of a version among those that are there. What is drawn must not hang on these: which they are after a loss of
the index hangs on the moment, and Hypothesis calls that flaky."""


def when(true: Callable[[Any], object]) -> Callable[[Rule], Rule]:
    """A rule that does nothing unless; `precondition` would have what is drawn hang on what is there."""

    def conditional(function: Rule) -> Rule:
        @functools.wraps(function)
        def applied(self: Any, **drawn: Any) -> None:
            if true(self):
                function(self, **drawn)

        return applied

    return conditional
