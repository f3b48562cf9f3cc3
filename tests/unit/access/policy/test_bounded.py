"""Policies and texts that are made to be slow: what they cost is counted, not timed."""

from __future__ import annotations

from time import process_time

import pytest

from sluice_s3.app.access.policy import Decision, Malformed, parse
from sluice_s3.app.access.policy.document import TOO_LONG
from sluice_s3.app.access.policy.wildcards import ALLOWED, Pattern, TooCostly, Work, tokens_of
from tests.unit.access.policy.tools import BUCKET, BUCKET_ARN, asked, decide, document, statement

MIB = 1024 * 1024


@pytest.mark.parametrize("text", [b" " * MIB + b"{}", b'{"Id":"' + b"x" * MIB + b'"}', b"{" + b"[" * MIB])
def test_i94_policies_of_a_mebibyte_are_refused(text: bytes) -> None:
    with pytest.raises(Malformed, match=TOO_LONG):
        parse(text, BUCKET)


def test_i94_deep_nesting() -> None:
    deep = b'{"Statement":' + b"[" * 5000 + b"]" * 5000 + b"}"
    with pytest.raises(Malformed):
        parse(deep, BUCKET)
    block = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Condition":{"StringEquals":{"aws:Referer":'
    with pytest.raises(Malformed):
        parse((block + "[" * 400 + "]" * 400 + "}}}}").encode(), BUCKET)


@pytest.mark.parametrize(
    "pattern",
    ["*" * 20_000, "*a" * 10_000, "a*" * 10_000 + "b", "*" + "a" * 10_000 + "b*", "*" + "a" * 15_000 + "*c"],
)
def test_i94_stars_do_not_backtrack(pattern: str) -> None:
    """They would take longer than the universe has been there."""
    text = "a" * MIB
    work = Work()
    expected = set(pattern[-2:]) <= {"*", "a"} and "b" not in pattern
    assert Pattern(tokens_of(pattern)).matches(text, work) is expected
    assert work.left > 0, "what is read once is charged once"


@pytest.mark.parametrize("pattern", ["*" + "?a" * 5_000 + "b*", "*?" + "a" * 9_000 + "b*", "*a?" * 3_000 + "*?b*"])
def test_i94_question_marks_are_charged(pattern: str) -> None:
    text = "a" * 30_000
    work = Work(ALLOWED * 16)
    assert not Pattern(tokens_of(pattern)).matches(text, work)
    assert work.left < ALLOWED * 16
    with pytest.raises(TooCostly):
        Pattern(tokens_of(pattern)).matches(text, Work(10_000))


def test_i94_the_costliest_patterns_take_a_fraction_of_a_decision() -> None:
    """A policy as long as one may be, on a key as long as one may be."""
    arns = [BUCKET_ARN + "/*" + "a?" * 400 + f"b{number:02}" for number in range(22)]
    work = Work()
    assert parse(document(statement(Resource=arns)), BUCKET).decide(asked("a" * 1000), work) is Decision.SILENT
    assert 0 < ALLOWED - work.left < ALLOWED // 8


def test_i94_all_that_a_policy_asks_is_charged() -> None:
    numbers = [str(number) for number in range(2_000)]
    for condition in (
        {"StringEqualsIgnoreCase": {"aws:UserAgent": numbers}},
        {"DateEquals": {"aws:UserAgent": numbers}},
        {"StringEquals": {"aws:UserAgent": "${aws:UserAgent}" * 1_000}},
    ):
        work = Work()
        parse(document(statement(Condition=condition)), BUCKET).decide(
            asked(context={"aws:UserAgent": ["a" * 8_000]}), work
        )
        assert ALLOWED - work.left > 10_000, condition


def test_i94_decisions_share_what_a_request_may_cost() -> None:
    policy, work = parse(document(statement(Resource=BUCKET_ARN + "/*a?b*c")), BUCKET), Work(1_000)
    assert policy.decide(asked("aabc"), work) is Decision.ALLOW
    said = {policy.decide(asked("aabc"), work) for _ in range(100)}
    assert policy.decide(asked("aabc"), work) is Decision.DENY
    assert said == {Decision.ALLOW, Decision.DENY}


def test_i94_thousands_of_actions_are_found_at_once() -> None:
    """One by one they took a third of a second."""
    actions = [f"s3:*?e?*{sign}*" for sign in "abcdeglmnoprstu"] * 90
    before = process_time()
    assert parse(document(statement(Action=actions)), BUCKET).decide(asked()) is Decision.ALLOW
    assert process_time() - before < 0.15


def test_i94_what_is_too_costly_is_denied() -> None:
    patterns = ["*?" + "a" * 60 + f"b{n}*1" for n in range(200)]
    found = statement(Condition={"StringLike": {"aws:UserAgent": patterns}})
    assert decide(found, asked(context={"aws:UserAgent": ["a" * 60_000 + "1"]})) is Decision.DENY
    assert decide(found, asked(context={"aws:UserAgent": ["a" * 60 + "1"]})) is Decision.SILENT


def test_i94_variables_do_not_multiply() -> None:
    """A long value many times in many patterns."""
    arns = [BUCKET_ARN + "/" + "${aws:UserAgent}" * 40 + f"*?{n}" for n in range(25)]
    found = statement(Resource=arns)
    agent = "a" * 60_000
    assert parse(document(found), BUCKET).decide(asked("k", context={"aws:UserAgent": [agent]})) is not Decision.ALLOW
