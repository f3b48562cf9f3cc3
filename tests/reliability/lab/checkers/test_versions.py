"""The checker of versions: what is right passes, and each planted violation is found."""

from __future__ import annotations

from math import inf

import pytest

from tests.reliability.lab.checkers.histories import Kind, Operation, Outcome, Removal
from tests.reliability.lab.checkers.versions import Version, faults

FIRST = Operation(Kind.WRITE, 0, 1, Outcome.DONE, "a", version="v1")
MARKER = Operation(Kind.DELETE, 2, 3, version="v2")
LAST = Operation(Kind.WRITE, 4, 5, Outcome.DONE, "b", version="v3")
BESIDE = Operation(Kind.WRITE, 4, 5, Outcome.DONE, "c", version="v4")
LOST = Operation(Kind.WRITE, 6, inf, Outcome.UNKNOWN, "d")
HISTORY = [FIRST, MARKER, LAST]
V1, V2, V3 = Version("v1", "a", False, "1"), Version("v2", "", False, "2"), Version("v3", "b", True, "3")
REMOVED = Removal("k", "v1", 6, 7, Outcome.DONE)


@pytest.mark.parametrize(
    ("seen", "history", "removals"),
    [
        ([], [], []),
        ([V3, V2, V1], HISTORY, []),
        ([V3, V2], HISTORY, [REMOVED]),
        ([V3, V2, V1], HISTORY, [REMOVED._replace(outcome=Outcome.UNKNOWN)]),
        ([V3, V2], HISTORY, [REMOVED._replace(outcome=Outcome.UNKNOWN)]),
        ([V3, V2, V1], [*HISTORY, LOST], []),
        ([Version("v9", "d", True, "4"), V3._replace(is_latest=False), V2, V1], [*HISTORY, LOST], []),
        ([V3, Version("v4", "c", False, "3"), V2, V1], [*HISTORY, BESIDE], []),
        ([Version("v4", "c", True, "3"), V3._replace(is_latest=False), V2, V1], [*HISTORY, BESIDE], []),
    ],
)
def test_possible(seen: list[Version], history: list[Operation], removals: list[Removal]) -> None:
    assert faults(seen, history, removals) == []


@pytest.mark.parametrize(
    ("seen", "history", "removals", "kind"),
    [
        ([V3, V2], HISTORY, [], "lost"),
        ([V3, V2], HISTORY, [REMOVED._replace(outcome=Outcome.REFUSED)], "lost"),
        ([V3, V2, V1._replace(etag="x")], HISTORY, [], "wrong"),
        ([V3, V2, V1], HISTORY, [REMOVED], "ghost"),
        ([V3, V2, V1, Version("v9", "d", False, "0")], HISTORY, [], "ghost"),
        ([V3, V2, V1, *[Version(f"v{n}", "d", False, "0") for n in (8, 9)]], [*HISTORY, LOST], [], "ghost"),
        ([V3._replace(is_latest=False), V2, V1], HISTORY, [], "wrong"),
        ([V3, V2, V1._replace(is_latest=True)], HISTORY, [], "wrong"),
        ([V2._replace(is_latest=True, modified="4"), V3._replace(is_latest=False), V1], HISTORY, [], "wrong"),
        ([V3._replace(modified="0"), V2, V1], HISTORY, [], "wrong"),
    ],
)
def test_impossible(seen: list[Version], history: list[Operation], removals: list[Removal], kind: str) -> None:
    assert [found for found, _ in faults(seen, history, removals)] == [kind]


def test_locked_versions_stay_whatever_was_answered() -> None:
    gone = Removal("k", "v1", 6, 7, Outcome.UNKNOWN)
    assert [kind for kind, _ in faults([V3, V2], HISTORY, [gone], {"v1": "a"})] == ["lost"]
    assert "lost" in [kind for kind, _ in faults([V3, V2], HISTORY, [REMOVED], {"v1": "a"})]
    assert faults([V3, V2, V1], HISTORY, [gone], {"v1": "a"}) == []
