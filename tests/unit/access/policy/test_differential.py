"""Random policies and requests: the evaluator says what the slow one in `slow.py` says."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_s3.app.access.policy import Caller, Malformed, Request, parse
from tests.support.environment import sized
from tests.unit.access.policy import slow

ROUNDS = sized(1_000, 100_000)
BUCKET = "photos"
ANNA = {"canonical": "a" * 64, "account": "111122223333", "arn": "arn:aws:iam::111122223333:root"}
USER = {
    "canonical": "b" * 64,
    "account": "444455556666",
    "arn": "arn:aws:iam::444455556666:user/ben",
    "id": "AIDABENBENBENBENBENBE",
}
ROLE = {
    "canonical": "b" * 64,
    "account": "444455556666",
    "arn": "arn:aws:sts::444455556666:assumed-role/reader/one",
    "role": "arn:aws:iam::444455556666:role/reader",
    "id": "AROAREADERREADERREADE",
}
PRINCIPALS: list[Any] = [
    "*",
    {"AWS": "*"},
    {"AWS": ANNA["account"]},
    {"AWS": ANNA["arn"]},
    {"AWS": [USER["arn"], "arn:aws:iam::999999999999:root"]},
    {"AWS": "arn:aws:iam::444455556666:user/eve"},
    {"AWS": ["444455556666", USER["arn"]]},
    {"AWS": [USER["id"], ROLE["role"]]},
    {"AWS": [ROLE["arn"], ROLE["role"], "444455556666"]},
    {"AWS": [ROLE["id"] + ":one", "444455556666"]},
    {"AWS": [ROLE["id"] + ":one", ROLE["id"], "444455556666"]},
    {"AWS": [ROLE["id"] + ":two", ROLE["role"]]},
    {"CanonicalUser": USER["canonical"]},
    {"CanonicalUser": ["c" * 64, ANNA["canonical"]], "AWS": "999999999999"},
    {"Service": "logging.s3.amazonaws.com"},
    {"Federated": "cognito-identity.amazonaws.com"},
]
ACTIONS = ["s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject", "s3:GetObjectVersion"]
ACTION_TEXTS = ["*", "s3:*", "s3:Get*", "S3:getobject", "s3:???Object", "s3:*Object", "s3:ListBucket", "s3:*e*c*"]
KEYS = ["a", "b/a", "b/a?c", "b/*", "private/x", "aab", "ab/ab/abc", "é/ß", "${aws:username}", "$", ""]
TEXTS = ["a", "b", "*", "?", "a*b", "*a*", "??", "ab", "/", "é", "${*}", "${?}", "${$}", "$", "B", "ben"]
VARIABLES = ["${aws:username}", "${AWS:UserName, 'x'}", "${aws:referer,'it''s'}", "${s3:prefix}", "${aws:tagkeys, 'q'}"]
NUMBERS = ["0", "1", "-1", "10", "10.0", "9.99", "+3", "1e3", "x", ""]
DATES = ["2020-01-01T00:00:00Z", "2020-01-01", "2020", "1577836800", "2021-06-01T12:30:00+02:00", "never", "0"]
ADDRESSES = ["10.0.0.1", "10.0.0.0/8", "192.0.2.7", "2001:db8::1", "2001:db8::/32", "::ffff:10.0.0.1", "0.0.0.0/0"]
ARNS = ["arn:aws:iam::111122223333:root", "arn:aws:*:*:*:root", "arn:aws:iam::*:user/b?n", "arn:aws:s3:::a:b", "*"]
BINARY = ["YQ==", "Yg==", ""]

ORDERED = ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
STRING_KEYS = ["aws:Referer", "aws:UserName", "aws:TagKeys", "aws:UserAgent", "s3:RequestObjectTagKeys"]
FAMILIES: list[tuple[list[str], list[str], list[str]]] = [
    (
        [
            f"String{kind}"
            for kind in ("Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike")
        ],
        STRING_KEYS,
        TEXTS,
    ),
    (
        [f"Numeric{kind}" for kind in ORDERED],
        ["s3:signatureAge", "aws:MultiFactorAuthAge"],
        NUMBERS,
    ),
    (
        [f"Date{kind}" for kind in ORDERED],
        ["aws:CurrentTime", "aws:EpochTime"],
        DATES,
    ),
    (["Bool"], ["aws:SecureTransport", "aws:MultiFactorAuthPresent"], ["true", "false", "True"]),
    (["BinaryEquals"], ["aws:UserAgent"], BINARY),
    (["IpAddress", "NotIpAddress"], ["aws:SourceIp"], ADDRESSES),
    (["ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike"], ["aws:PrincipalArn", "aws:SourceArn"], ARNS),
]


def some(random: Random, choices: list[Any], most: int = 3) -> list[Any]:
    return [random.choice(choices) for _ in range(random.randint(1, most))]


def text(random: Random) -> str:
    return "".join(some(random, TEXTS + VARIABLES, 4))


def maybe_list(random: Random, values: list[Any]) -> Any:
    return values[0] if len(values) == 1 and random.random() < 0.5 else values


def condition(random: Random) -> dict[str, Any]:
    block: dict[str, Any] = {}
    for _ in range(random.randint(1, 2)):
        names, keys, wanted = random.choice(FAMILIES)
        name = random.choice(names)
        if random.random() < 0.1:
            block["Null"] = {random.choice(keys): random.choice(["true", "false"])}
            continue
        values = [text(random) for _ in range(2)] if name.startswith("String") else some(random, wanted)
        if random.random() < 0.3:
            name = random.choice(["ForAllValues:", "ForAnyValue:"]) + name
        if random.random() < 0.2:
            name += "IfExists"
        block[name] = {random.choice(keys): maybe_list(random, values)}
    return block


def policy(random: Random) -> dict[str, Any]:
    statements = []
    for _ in range(random.randint(1, 3)):
        effect = random.choice(["Allow", "Allow", "Deny"])
        who = "NotPrincipal" if effect == "Deny" and random.random() < 0.3 else "Principal"
        what = random.choice(["Action", "Action", "NotAction"])
        where = random.choice(["Resource", "Resource", "Resource", "NotResource"])
        ends = ["", "/*", "*", "/private/*", "/" + text(random), "/b/" + text(random), "?" + text(random)]
        names = [f"arn:aws:s3:::{BUCKET}{end}" for end in some(random, ends)]
        statement: dict[str, Any] = {
            "Effect": effect,
            who: random.choice(PRINCIPALS),
            what: maybe_list(random, some(random, ACTION_TEXTS)),
            where: maybe_list(random, names),
        }
        if random.random() < 0.6:
            statement["Condition"] = condition(random)
        statements.append(statement)
    found: dict[str, Any] = {"Statement": maybe_list(random, statements)}
    if random.random() < 0.8:
        found["Version"] = random.choice(["2012-10-17", "2012-10-17", "2008-10-17"])
    return found


def asked(random: Random) -> dict[str, Any]:
    key = random.choice(KEYS)
    context = {}
    for _, keys, values in FAMILIES:
        for name in keys:
            if random.random() < 0.6:
                most = 3 if "Keys" in name else 1
                context[name.lower()] = [text(random) if values is TEXTS else one for one in some(random, values, most)]
    return {
        "caller": random.choice([None, ANNA, USER, ROLE]),
        "action": random.choice(ACTIONS),
        "resource": f"{BUCKET}/{key}" if key else BUCKET,
        "context": {
            name: [value.replace("/8", "").replace("/32", "") for value in values] for name, values in context.items()
        },
    }


def caller(who: dict[str, str]) -> Caller:
    return Caller(who["canonical"], who["account"], who["arn"], who.get("role", ""), who.get("id", ""))


def request(question: dict[str, Any]) -> Request:
    who = question["caller"]
    return Request(who and caller(who), question["action"], question["resource"], question["context"].get)


seen: Counter[str] = Counter()


@settings(max_examples=ROUNDS, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=False)
@given(st.integers(0, 2**64))
def differential(seed: int) -> None:
    random = Random(seed)
    document = policy(random)
    try:
        parsed = parse(json.dumps(document).encode(), BUCKET)
    except Malformed as error:
        seen[str(error)] += 1
        return
    seen["parsed"] += 1
    for _ in range(4):
        question = asked(random)
        expected = slow.decide(document, question)
        seen[expected] += 1
        assert parsed.decide(request(question)).value == expected, (document, question)


@pytest.mark.slow
def test_says_what_the_slow_one_says() -> None:
    seen.clear()
    differential()
    # most policies are right ones, and all three answers are given
    assert seen["parsed"] > ROUNDS // 3
    for answer in ("deny", "allow", "silent"):
        assert seen[answer] > ROUNDS // 20


@pytest.mark.parametrize("seed", range(5))
def test_actions_agree(seed: int) -> None:
    from sluice_s3.app.access.policy.actions import KNOWN, match_action

    random = Random(seed)
    for _ in range(sized(60, 1_000)):
        name = list(random.choice(sorted(KNOWN))[3:].lower())
        for _ in range(random.randint(1, 8)):
            at = random.randrange(len(name))
            name[at : at + random.choice((0, 1, 1, 4))] = random.choice(("*", "?", "**", "?*"))
        pattern = "s3:" + "".join(name)
        expected = {action for action in KNOWN if slow.like(slow.fill(pattern, {}, ""), action.lower())}
        try:
            found = match_action(pattern)
        except Malformed:
            found = frozenset()
        assert found == expected, pattern


@pytest.mark.parametrize("seed", range(20))
def test_patterns_agree(seed: int) -> None:
    """Patterns alone, more of them and harder ones than in policies."""
    from sluice_s3.app.access.policy.wildcards import Pattern, Work, begins, tokens_of

    random = Random(seed)
    for _ in range(sized(300, 5_000)):
        pattern = "".join(random.choices("ab*?", k=random.randint(0, 12)))
        value = "".join(random.choices("abé" if seed % 2 else "ab", k=random.randint(0, 15)))
        expected = slow.like(slow.fill(pattern, {}, ""), value)
        assert Pattern(tokens_of(pattern)).matches(value, Work()) is expected, (pattern, value)
        if expected:
            assert all(begins(tokens_of(pattern), value[:end]) for end in range(len(value) + 1)), (pattern, value)
