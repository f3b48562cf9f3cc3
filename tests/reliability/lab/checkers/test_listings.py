"""The checker of listings."""

from __future__ import annotations

from math import inf

import pytest

from tests.reliability.lab.checkers.histories import Kind, Operation, Outcome
from tests.reliability.lab.checkers.listings import Listing, faults

WRITTEN = Operation(Kind.WRITE, 0, 1, Outcome.DONE, "a")
OVER = Operation(Kind.WRITE, 2, 3, Outcome.DONE, "b")
DELETED = Operation(Kind.DELETE, 2, 3)
LOST_WRITE = Operation(Kind.WRITE, 2, inf, Outcome.UNKNOWN, "b")
LOST_DELETE = Operation(Kind.DELETE, 2, inf, Outcome.UNKNOWN)
REFUSED = Operation(Kind.WRITE, 0, 1, Outcome.REFUSED, "a", "*")


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([WRITTEN], "a"),
        ([WRITTEN, OVER], "b"),
        ([WRITTEN, DELETED], None),
        ([WRITTEN, LOST_WRITE], "a"),
        ([WRITTEN, LOST_WRITE], "b"),
        ([WRITTEN, LOST_DELETE], "a"),
        ([WRITTEN, LOST_DELETE], None),
        ([WRITTEN._replace(ended=6)], None),
        ([WRITTEN._replace(ended=6)], "a"),
        ([WRITTEN, DELETED._replace(begun=4.5, ended=6)], None),
        ([WRITTEN, OVER._replace(begun=4.5, ended=6)], "a"),
        ([WRITTEN, DELETED._replace(begun=0.5)], "a"),
        ([REFUSED], None),
    ],
)
def test_possible(history: list[Operation], found: str | None) -> None:
    assert faults(Listing(4, 5, {"k": found} if found else {}), {"k": history}) == []


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([WRITTEN], None),
        ([WRITTEN, LOST_WRITE], None),
        ([WRITTEN, OVER], "a"),
        ([WRITTEN, DELETED], "a"),
        ([WRITTEN], "b"),
        ([REFUSED], "a"),
        ([WRITTEN._replace(begun=6, ended=7)], "a"),
    ],
)
def test_impossible(history: list[Operation], found: str | None) -> None:
    assert faults(Listing(4, 5, {"k": found} if found else {}), {"k": history}) != []


def test_a_key_of_nobody() -> None:
    assert faults(Listing(4, 5, {"k": "a"}), {}) == ["k: nobody wrote it"]
