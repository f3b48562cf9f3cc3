"""Each operator, with its key there, not there, and several times; in `Allow`, where a wrong yes would let in."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_s3.app.access.policy import Decision
from tests.unit.access.policy.tools import allows, asked, decide, statement


def holds(name: str, key: str, wanted: Any, *values: str) -> bool:
    """Whether a condition holds, with these values of the key."""
    found = statement(Condition={name: {key: wanted}})
    return allows(found, asked(context={key: list(values)} if values else {}))


REFERER, TAGS, AGE = "aws:Referer", "aws:TagKeys", "aws:MultiFactorAuthAge"
NOW, SOURCE, ARN, TLS = "aws:CurrentTime", "aws:SourceIp", "aws:SourceArn", "aws:SecureTransport"

CASES: list[tuple[str, str, Any, str, bool]] = [
    ("StringEquals", REFERER, "Abc", "Abc", True),
    ("StringEquals", REFERER, "Abc", "abc", False),
    ("StringEquals", REFERER, "a*", "ab", False),
    ("StringEquals", REFERER, "a*", "a*", True),
    ("StringEquals", REFERER, ["x", "y"], "y", True),
    ("StringEquals", REFERER, "", "", True),
    ("StringNotEquals", REFERER, ["x", "y"], "y", False),
    ("StringNotEquals", REFERER, ["x", "y"], "z", True),
    ("StringEqualsIgnoreCase", REFERER, "ABC", "abc", True),
    ("StringEqualsIgnoreCase", REFERER, "ABC", "abcd", False),
    ("StringNotEqualsIgnoreCase", REFERER, "ABC", "abc", False),
    ("StringNotEqualsIgnoreCase", REFERER, "ABC", "x", True),
    ("StringLike", REFERER, "https://*.example.com/*", "https://www.example.com/a", True),
    ("StringLike", REFERER, "https://*.example.com/*", "https://example.com/a", False),
    ("StringLike", REFERER, "a?c", "abc", True),
    ("StringLike", REFERER, "a?c", "ABC", False),
    ("StringLike", REFERER, "a${*}c", "abc", False),
    ("StringLike", REFERER, "a${*}c", "a*c", True),
    ("StringNotLike", REFERER, "a*", "abc", False),
    ("StringNotLike", REFERER, "a*", "bc", True),
    ("NumericEquals", AGE, "10", "10.0", True),
    ("NumericEquals", AGE, 10, "10", True),
    ("NumericEquals", AGE, "10", "ten", False),
    ("NumericNotEquals", AGE, "10", "11", True),
    ("NumericNotEquals", AGE, ["10", "11"], "11", False),
    ("NumericLessThan", AGE, "10", "9", True),
    ("NumericLessThan", AGE, "10", "10", False),
    ("NumericLessThan", AGE, "100", "99.999999999999999999999", True),
    ("NumericLessThanEquals", AGE, "10", "10", True),
    ("NumericLessThanEquals", AGE, "10", "10.1", False),
    ("NumericGreaterThan", AGE, "-1", "0", True),
    ("NumericGreaterThan", AGE, "0", "0", False),
    ("NumericGreaterThanEquals", AGE, "0", "0", True),
    ("NumericGreaterThanEquals", AGE, "0", "-0.5", False),
    ("DateEquals", NOW, "2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", True),
    ("DateEquals", NOW, "2026-11-21T12:00:00+02:00", "2026-11-21T10:00:00Z", True),
    ("DateEquals", NOW, "1795255200", "2026-11-21T10:00:00Z", True),
    ("DateNotEquals", NOW, "2026-11-21T10:00:00Z", "2026-11-21T10:00:01Z", True),
    ("DateLessThan", NOW, "2027", "2026-12-31T23:59:59Z", True),
    ("DateLessThan", NOW, "2026-12", "2026-12-01T00:00:00Z", False),
    ("DateLessThanEquals", NOW, "2026-12", "2026-12-01T00:00:00Z", True),
    ("DateGreaterThan", NOW, "2026-11-21", "2026-11-21T00:00:00.5Z", True),
    ("DateGreaterThan", NOW, "2026-11-21", "2026-11-20T23:59:59Z", False),
    ("DateGreaterThanEquals", NOW, "2026-11-21", "2026-11-21T00:00:00Z", True),
    ("DateGreaterThanEquals", "aws:EpochTime", "2020-01-01", "1577836799", False),
    ("Bool", TLS, "true", "true", True),
    ("Bool", TLS, True, "true", True),
    ("Bool", TLS, False, "true", False),
    ("Bool", TLS, "FALSE", "false", True),
    ("Bool", TLS, "true", "1", False),
    ("BinaryEquals", REFERER, "eA==", "x", True),
    ("BinaryEquals", REFERER, "eA==", "eA==", False),
    ("IpAddress", SOURCE, "203.0.113.0/24", "203.0.113.9", True),
    ("IpAddress", SOURCE, "203.0.113.0/24", "203.0.114.9", False),
    ("IpAddress", SOURCE, "203.0.113.77/24", "203.0.113.9", True),
    ("IpAddress", SOURCE, "203.0.113.9", "203.0.113.9", True),
    ("IpAddress", SOURCE, ["10.0.0.0/8", "2001:DB8:1234:5678::/64"], "2001:db8:1234:5678::1", True),
    ("IpAddress", SOURCE, "2001:db8::/32", "2001:db9::1", False),
    ("IpAddress", SOURCE, "10.0.0.0/8", "::ffff:10.1.2.3", True),
    ("IpAddress", SOURCE, "0.0.0.0/0", "2001:db8::1", False),
    ("IpAddress", SOURCE, "0.0.0.0/0", "not an address", False),
    ("NotIpAddress", SOURCE, "10.0.0.0/8", "10.9.9.9", False),
    ("NotIpAddress", SOURCE, "10.0.0.0/8", "11.9.9.9", True),
    ("ArnEquals", ARN, "arn:aws:s3:::photos", "arn:aws:s3:::photos", True),
    ("ArnEquals", ARN, "arn:aws:s3:*:*:pho*", "arn:aws:s3:::photos", True),
    ("ArnLike", ARN, "arn:aws:sns:*:123456789012:t?pic", "arn:aws:sns:eu-west-1:123456789012:topic", True),
    ("ArnLike", ARN, "arn:aws:sns:*:*:a*", "arn:aws:sns:e:1:a:b:c", True),
    ("ArnNotEquals", ARN, "arn:aws:s3:::photos", "arn:aws:s3:::photos", False),
    ("ArnNotLike", ARN, "arn:aws:s3:::p*", "arn:aws:s3:::videos", True),
    ("ArnNotLike", ARN, "arn:aws:s3:::p*", "nonsense", True),
]


@pytest.mark.parametrize(("name", "key", "wanted", "value", "expected"), CASES)
def test_one_value(name: str, key: str, wanted: Any, value: str, expected: bool) -> None:
    assert holds(name, key, wanted, value) is expected
    assert holds(name + "IfExists", key, wanted, value) is expected
    # one value only: the set operators say the same
    assert holds("ForAllValues:" + name, key, wanted, value) is expected
    assert holds("ForAnyValue:" + name, key, wanted, value) is expected
    deny = statement(Effect="Deny", Condition={name: {key: wanted}})
    assert (decide(deny, asked(context={key: [value]})) is Decision.DENY) is expected


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_f70_a_key_that_is_not_there(name: str) -> None:
    """False; true for a negated operator and with IfExists; ForAllValues true, ForAnyValue false, also negated ones."""
    key, wanted = next((case[1], case[2]) for case in CASES if case[0] == name)
    assert holds(name, key, wanted) is ("Not" in name)
    assert holds(name + "IfExists", key, wanted)
    for end in ("", "IfExists"):
        assert holds(f"ForAllValues:{name}{end}", key, wanted)
        assert not holds(f"ForAnyValue:{name}{end}", key, wanted)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("ForAllValues:StringEquals", ["a"], True),
        ("ForAllValues:StringEquals", ["a", "b"], True),
        ("ForAllValues:StringEquals", ["a", "c"], False),
        ("ForAnyValue:StringEquals", ["a", "c"], True),
        ("ForAnyValue:StringEquals", ["c", "d"], False),
        # negated: "every value is none of these", "some value is none of these"
        ("ForAllValues:StringNotEquals", ["c", "d"], True),
        ("ForAllValues:StringNotEquals", ["a", "c"], False),
        ("ForAnyValue:StringNotEquals", ["a", "c"], True),
        ("ForAnyValue:StringNotEquals", ["a", "b"], False),
        ("StringEquals", ["a", "c"], True),
        ("StringNotEquals", ["a", "c"], False),
        ("StringNotEquals", ["c", "d"], True),
    ],
)
def test_f70_several_values(name: str, values: list[str], expected: bool) -> None:
    assert holds(name, TAGS, ["a", "b"], *values) is expected


def test_null() -> None:
    assert holds("Null", REFERER, "true")
    assert not holds("Null", REFERER, "true", "x")
    assert holds("Null", REFERER, "false", "x")
    assert not holds("Null", REFERER, False)
    assert holds("Null", REFERER, ["true", "false"])
    assert holds("Null", REFERER, False, ""), "an empty value is one"


def test_all_operators_and_all_keys_must_hold() -> None:
    both = statement(Condition={"StringEquals": {REFERER: "x", "aws:UserAgent": "y"}, "Bool": {TLS: "true"}})
    context = {REFERER: ["x"], "aws:UserAgent": ["y"], TLS: ["true"]}
    assert allows(both, asked(context=context))
    for key in context:
        assert not allows(both, asked(context=context | {key: ["no"]}))


def test_variables_in_values() -> None:
    same = statement(Condition={"StringEquals": {REFERER: "${aws:UserAgent}"}})
    assert allows(same, asked(context={REFERER: ["x"], "aws:UserAgent": ["x"]}))
    assert not allows(same, asked(context={REFERER: ["x"], "aws:UserAgent": ["y"]}))
    assert not allows(same, asked(context={REFERER: ["x"]}))


def test_a_value_without_meaning_is_no_yes_in_a_negated_condition() -> None:
    condition = {"StringNotEquals": {REFERER: "${aws:UserAgent}"}}
    assert not allows(statement(Condition=condition), asked(context={REFERER: ["x"]}))
    deny = statement(Effect="Deny", Condition=condition)
    assert decide(deny, asked(context={REFERER: ["x"]})) is Decision.DENY
    several = {"StringNotEquals": {REFERER: ["x", "${aws:UserAgent}"]}}
    assert not allows(statement(Condition=several), asked(context={REFERER: ["x"]}))


def test_variables_in_arns() -> None:
    found = statement(Condition={"ArnLike": {ARN: "arn:aws:iam::*:user/${aws:username, 'a:b'}"}})
    assert allows(found, asked(context={ARN: ["arn:aws:iam::1:user/ben"], "aws:username": ["ben"]}))
    assert allows(found, asked(context={ARN: ["arn:aws:iam::1:user/a:b"]}))
    assert not allows(found, asked(context={ARN: ["arn:aws:iam::1:user/c"]}))
