"""The checker of histories: known good and bad ones, and small random ones against trying every order."""

from __future__ import annotations

import random
from itertools import permutations
from math import inf

import pytest

from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Kind, Operation, Outcome, step
from tests.reliability.lab.checkers.registers import check
from tests.support.environment import sized

DONE, REFUSED, MISSING, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.MISSING, Outcome.UNKNOWN


def write(begun: float, ended: float, value: str, condition: str | None = None, outcome: Outcome = DONE) -> Operation:
    return Operation(Kind.WRITE, begun, ended, outcome, value, condition)


def delete(begun: float, ended: float, condition: str | None = None, outcome: Outcome = DONE) -> Operation:
    return Operation(Kind.DELETE, begun, ended, outcome, ABSENT, condition)


def read(begun: float, ended: float, value: str) -> Operation:
    return Operation(Kind.READ, begun, ended, DONE, value)


def lost(begun: float, value: str, condition: str | None = None) -> Operation:
    return Operation(Kind.WRITE, begun, inf, UNKNOWN, value, condition)


GOOD = {
    "nothing": [],
    "one after the other": [read(0, 1, ""), write(2, 3, "a"), read(4, 5, "a"), delete(6, 7), read(8, 9, "")],
    "either order of two writes": [write(0, 3, "a"), write(1, 2, "b"), read(4, 5, "a")],
    "a read beside a write sees old": [write(0, 1, "a"), write(2, 5, "b"), read(3, 4, "a"), read(6, 7, "b")],
    "a lost write happened": [lost(0, "a"), read(1, 2, "a")],
    "a lost write never happened": [lost(0, "a"), read(1, 2, ""), read(3, 4, "")],
    "a lost write happened late": [lost(0, "a"), read(1, 2, ""), write(3, 4, "b"), read(5, 6, "b"), read(7, 8, "a")],
    "a lost delete happened": [write(0, 1, "a"), delete(2, inf, outcome=UNKNOWN), read(3, 4, "")],
    "one of two creates": [write(0, 2, "a", IF_NONE_MATCH), write(0, 2, "b", IF_NONE_MATCH, REFUSED), read(3, 4, "a")],
    "a lost create explains a refusal": [lost(0, "a", IF_NONE_MATCH), write(1, 2, "b", IF_NONE_MATCH, REFUSED)],
    "If-Match of what is there": [write(0, 1, "a"), write(2, 3, "b", "a"), write(4, 5, "c", "a", REFUSED)],
    "If-Match where nothing is": [write(0, 1, "a", "x", MISSING), delete(2, 3)],
    "a lost read says nothing": [Operation(Kind.READ, 0, inf, UNKNOWN), read(1, 2, "")],
}
BAD = {
    "a read of what nobody wrote": [read(0, 1, "a")],
    "an acknowledged write is lost": [write(0, 1, "a"), read(2, 3, "")],
    "an older write comes back": [write(0, 1, "a"), write(2, 3, "b"), read(4, 5, "b"), read(6, 7, "a")],
    "a deleted object comes back": [write(0, 1, "a"), delete(2, 3), read(4, 5, "a")],
    "reads disagree on the order": [
        write(0, 9, "a"),
        write(0, 9, "b"),
        read(1, 2, "a"),
        read(3, 4, "b"),
        read(5, 6, "a"),
    ],
    "two creates": [write(0, 2, "a", IF_NONE_MATCH), write(0, 2, "b", IF_NONE_MATCH)],
    "no create": [write(0, 2, "a", IF_NONE_MATCH, REFUSED), write(0, 2, "b", IF_NONE_MATCH, REFUSED)],
    "a swap of what was replaced": [write(0, 1, "a"), write(2, 3, "b"), write(4, 5, "c", "a")],
    "two swaps of one": [write(0, 1, "a"), write(2, 5, "b", "a"), write(2, 5, "c", "a")],
    "a lost write happens twice": [lost(0, "a"), read(1, 2, "a"), delete(3, 4), read(5, 6, "a")],
    "a lost write before it began": [read(0, 1, "a"), lost(2, "a")],
    "refused by what was deleted": [write(0, 1, "a"), delete(2, 3), write(4, 5, "b", IF_NONE_MATCH, REFUSED)],
    "missing where something is": [write(0, 1, "a"), write(2, 3, "b", "a", MISSING)],
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str) -> None:
    assert check(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_bad(name: str) -> None:
    assert not check(BAD[name])


def test_what_is_wrong_is_named() -> None:
    verdict = check([write(0, 1, "a"), read(2, 3, "a"), delete(4, 5), read(6, 7, "a")])
    assert verdict.wrong == read(6, 7, "a")
    assert verdict.states == {""}


def by_trying(history: list[Operation]) -> bool:
    """Whether some order explains everything, by trying all of them."""
    answered = [one for one in history if not one.is_open]
    unknown = [one for one in history if one.is_open]
    for chosen in range(1 << len(unknown)):
        some = answered + [one for number, one in enumerate(unknown) if chosen >> number & 1]
        for order in permutations(some):
            if any(later.ended < earlier.begun for at, earlier in enumerate(order) for later in order[at + 1 :]):
                continue
            state: str | None = ABSENT
            for one in order:
                state = step(one, state)
                if state is None:
                    break
            else:
                return True
    return False


def random_history(rng: random.Random) -> list[Operation]:
    """Operations of few values at few times, with the answers of a true register that are sometimes spoiled."""
    history = []
    moments = sorted((rng.random(), number) for number in range(rng.randint(1, 5)))
    state = ABSENT
    for moment, _ in moments:
        begun, ended = round(moment - rng.random() * 0.4, 1), round(moment + rng.random() * 0.4, 1)
        kind = rng.choice(list(Kind))
        condition = rng.choice([None, None, IF_NONE_MATCH, "a", "b"]) if kind is not Kind.READ else None
        value = rng.choice("ab") if kind is Kind.WRITE else state if kind is Kind.READ else ABSENT
        for outcome in (DONE, REFUSED, MISSING):
            made = Operation(kind, begun, ended, outcome, value, condition)
            if (after := step(made, state)) is not None:
                break
        if rng.random() < 0.25:
            made = made._replace(outcome=UNKNOWN, ended=inf)
            after = after if rng.random() < 0.5 else state
        elif rng.random() < 0.2:
            made = made._replace(outcome=rng.choice([DONE, REFUSED, MISSING] if condition else [DONE]))
            made = made._replace(value=rng.choice(["", "a", "b"]) if kind is Kind.READ else value)
        history.append(made)
        state = after or ABSENT
    return history


def test_the_same_as_trying_every_order() -> None:
    rng = random.Random(7)
    verdicts = []
    for _ in range(sized(ci=4000, soak=100_000)):
        history = random_history(rng)
        verdicts.append(bool(check(history)))
        assert verdicts[-1] == by_trying(history), history
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.95, "both kinds are tried"


def test_a_long_history_with_many_lost_writes_is_checked_soon() -> None:
    rng = random.Random(3)
    history, state, now = [], ABSENT, 0.0
    for number in range(400):
        now += 1.0
        value = f"v{number}"
        if rng.random() < 0.1:
            happened = rng.random() < 0.5
            history.append(lost(now, value))
            state = value if happened else state
        elif rng.random() < 0.5:
            history.append(write(now, now + 0.5, value))
            state = value
        else:
            history.append(read(now, now + 0.5, state))
    assert check(history)
    assert not check([*history, read(now + 1, now + 2, "never written")])
