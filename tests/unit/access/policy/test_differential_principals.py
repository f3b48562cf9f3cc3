"""Random policies of users, sessions and buckets together: `authorize` says what the flow chart of AWS says."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_s3.app.access.authorize import Verdict, authorize
from sluice_s3.app.access.policy import Malformed, Policy, parse, parse_identity
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.index.buckets.rows import Bucket
from tests.support.environment import sized
from tests.unit.access.policy import slow
from tests.unit.access.policy.test_differential import (
    ACTION_TEXTS,
    ANNA,
    BUCKET,
    ROLE,
    USER,
    asked,
    caller,
    condition,
    maybe_list,
    policy,
    some,
    text,
)

pytestmark = pytest.mark.slow

ROUNDS = sized(1_000, 100_000)
seen: Counter[str] = Counter()


def own_policy(random: Random) -> dict[str, Any]:
    """Of a user, a role or a session."""
    statements = []
    for _ in range(random.randint(1, 2)):
        ends = ["", "/*", "*", "/private/*", "/" + text(random)]
        names = [
            "*",
            "arn:aws:s3:::*",
            "arn:aws:*:::photos*",
            *(f"arn:aws:s3:::{BUCKET}{end}" for end in some(random, ends)),
        ]
        statement: dict[str, Any] = {
            "Effect": random.choice(["Allow", "Allow", "Allow", "Deny"]),
            random.choice(["Action", "Action", "NotAction"]): maybe_list(
                random, some(random, [*ACTION_TEXTS, "iam:*", "ec2:Run*"])
            ),
            random.choice(["Resource", "Resource", "NotResource"]): maybe_list(random, some(random, names)),
        }
        if random.random() < 0.3:
            statement["Condition"] = condition(random)
        statements.append(statement)
    return {"Version": random.choice(["2012-10-17", "2008-10-17"]), "Statement": maybe_list(random, statements)}


def some_policies(random: Random, most: int) -> list[dict[str, Any]]:
    return [own_policy(random) for _ in range(random.randint(0, most))]


def parsed(documents: list[dict[str, Any]]) -> tuple[Policy, ...]:
    return tuple(parse_identity(json.dumps(document).encode()) for document in documents)


def allowed(
    who: dict[str, str],
    owner: dict[str, str],
    policies: list[dict[str, Any]],
    limits: list[dict[str, Any]],
    of_bucket: dict[str, Any],
    question: dict[str, Any],
) -> bool:
    """ "Policy evaluation logic" of the IAM User Guide, step by step."""
    question = {**question, "caller": who}
    own = [slow.decide(one, question) for one in policies]
    session = [slow.decide(one, question) for one in limits]
    bucket = slow.decide(of_bucket, question)
    if "deny" in [*own, *session, bucket]:
        return False
    if limits and "allow" not in session:
        return False
    if who["account"] != owner["account"]:
        return "allow" in own and bucket == "allow"
    if "allow" in own:
        return True
    # what the policy leaves to the account is the account's own policies to give
    nobody = {**who, "account": "", "canonical": ""}
    statements = of_bucket["Statement"] if isinstance(of_bucket["Statement"], list) else [of_bucket["Statement"]]
    alone = [{**of_bucket, "Statement": [one]} for one in statements if one["Effect"] == "Allow"]
    return any(
        slow.decide(one, question) == slow.decide(one, {**question, "caller": nobody}) == "allow" for one in alone
    )


@settings(max_examples=ROUNDS, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=False)
@given(st.integers(0, 2**64))
def differential(seed: int) -> None:
    random = Random(seed)
    of_bucket, policies, limits = policy(random), some_policies(random, 3), some_policies(random, 2)
    who, owner = random.choice([USER, ROLE]), random.choice([ANNA, USER])
    try:
        parse(json.dumps(of_bucket).encode(), BUCKET)
        own, session = parsed(policies), parsed(limits)
    except Malformed as error:
        seen[str(error)] += 1
        return
    opened = {"policy": json.dumps(of_bucket), "public_access_block": [False] * 4}
    bucket = Bucket(1, BUCKET, owner["canonical"], "us-east-1", 0, settings=json.dumps(opened))
    principal = Principal(caller(who), own, session, who["arn"], who["id"], "", "User", None)
    for _ in range(4):
        question = asked(random)
        _, _, key = question["resource"].partition("/")
        context = question["context"]
        verdict = authorize(who["canonical"], question["action"], bucket, key or None, context.get, principal=principal)
        expected = allowed(who, owner, policies, limits, of_bucket, question)
        seen[str(expected)] += 1
        told = Verdict.YES if expected else Verdict.NO
        assert verdict is told, (policies, limits, of_bucket, question, who, owner)


def test_says_what_the_flow_chart_says() -> None:
    seen.clear()
    differential()
    assert seen["True"] > ROUNDS // 20
    assert seen["False"] > ROUNDS // 2
