"""Policies and texts that are made to be slow: what they cost is counted, not timed."""

from __future__ import annotations

import pytest

from app.access.policy import Decision, Malformed, parse
from app.access.policy.document import TOO_LONG
from app.access.policy.wildcards import ALLOWED, Pattern, TooCostly, Work, tokens_of
from tests.access.policy.tools import BUCKET, BUCKET_ARN, asked, decide, document, statement

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
    assert Pattern(tokens_of(pattern)).matches(text, Work(0)) is (
        set(pattern[-2:]) <= {"*", "a"} and "b" not in pattern
    )


@pytest.mark.parametrize("pattern", ["*" + "?a" * 5_000 + "b*", "*?" + "a" * 9_000 + "b*", "*a?" * 3_000 + "*?b*"])
def test_i94_question_marks_are_charged(pattern: str) -> None:
    text = "a" * 30_000
    work = Work(ALLOWED * 16)
    assert not Pattern(tokens_of(pattern)).matches(text, work)
    assert work.left < ALLOWED * 16
    with pytest.raises(TooCostly):
        Pattern(tokens_of("*" + "?a" * 5_000 + "b*")).matches(text, Work())


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
