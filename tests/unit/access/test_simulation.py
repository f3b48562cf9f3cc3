"""The simulator decides as `authorize` does, for random policies, and names the statement that decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_s3.app.access.acl import ALL_USERS, AUTHENTICATED_USERS, Grant
from sluice_s3.app.access.authorize import ConditionNotLoaded, Verdict, authorize
from sluice_s3.app.access.policy import Decision, Policy, Request, Work, parse_identity
from sluice_s3.app.access.policy.observer import APPLIES, find_mismatches
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import NamedPolicy, Principal, build_principal
from sluice_s3.app.access.simulation import (
    ALLOWED,
    DENIED,
    DEPENDS,
    Question,
    SimulatedObject,
    Simulation,
    label,
    simulate,
)
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import USER, Identity, KeyOwner
from tests.support.environment import sized

OWNER, OTHER = "111122223333", "444455556666"
ACTIONS = ["s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:PutBucketPolicy", "s3:AbortMultipartUpload"]
IP = "aws:sourceip"
USER_ID = "AIDABENBENBENBENBENBE"
ARNS = {account: f"arn:aws:iam::{account}:user/ben" for account in (OWNER, OTHER)}

effects = st.sampled_from(["Allow", "Allow", "Deny"])
action_texts = st.lists(st.sampled_from([*ACTIONS, "s3:*", "s3:Get*"]), min_size=1, max_size=2)
conditions = st.sampled_from(
    [
        {},
        {},
        {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        {"StringLike": {"aws:UserAgent": "a*"}, "Bool": {"aws:SecureTransport": "true"}},
        {"Null": {"aws:Referer": "true"}},
        {"StringEquals": {"s3:ExistingObjectTag/team": "blue"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
    ]
)
principals = st.sampled_from(["*", {"AWS": OWNER}, {"AWS": OTHER}, {"AWS": list(ARNS.values())}, {"AWS": USER_ID}])


@st.composite
def statements(draw: st.DrawFn, *, of_bucket: bool) -> dict[str, Any]:
    """A statement of a bucket's policy, or of a user's."""
    resource = st.sampled_from([["arn:aws:s3:::b", "arn:aws:s3:::b/*"], ["arn:aws:s3:::b/a*", "arn:aws:s3:::b"]])
    found: dict[str, Any] = {"Effect": draw(effects), "Action": draw(action_texts), "Resource": draw(resource)}
    if draw(st.booleans()):
        found["Condition"] = draw(conditions)
    return found | {"Principal": draw(principals)} if of_bucket else found


def document(found: list[dict[str, Any]]) -> str:
    """A policy of these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": found})


@st.composite
def buckets(draw: st.DrawFn) -> Bucket:
    """A bucket with a policy, a public access block, ownership and an ACL, or without some of these."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found["policy"] = document(draw(st.lists(statements(of_bucket=True), min_size=1, max_size=3)))
    if draw(st.booleans()):
        found["public_access_block"] = draw(st.sampled_from([[], [False] * 4, [False, True, False, True]]))
    if draw(st.booleans()):
        found["ownership"] = "ObjectWriter"
        grantee = draw(st.sampled_from([OTHER, ALL_USERS, AUTHENTICATED_USERS]))
        found["acl"] = [[grantee, draw(st.sampled_from(["READ", "WRITE", "FULL_CONTROL"]))]]
    return Bucket(1, "b", OWNER, "us-east-1", 0, settings=json.dumps(found) if found else "")


def user(account: str, texts: list[str], limits: list[str]) -> tuple[Principal, dict[int, NamedPolicy]]:
    """A user with these policies, in a session that these limit."""
    inline = json.dumps({"policies": {f"p{number}": text for number, text in enumerate(texts)}})
    identity = Identity(USER_ID, account, USER, "ben", "ben", "/", inline, 0)
    principal = build_principal(KeyOwner(account, identity, (), "s" if limits else None, json.dumps(limits), 0))
    assert principal.policies is not None
    own, sources = label([(NamedPolicy("inline", "", "p", ""), one) for one in principal.policies])
    limiting, of_limits = label([(NamedPolicy("session", "", "1", ""), one) for one in principal.limits])
    return principal._replace(policies=own, limits=limiting), sources | of_limits


policies = st.lists(st.lists(statements(of_bucket=False), min_size=1, max_size=2).map(document), max_size=2)
callers: st.SearchStrategy[tuple[str | None, Principal | None, dict[int, NamedPolicy]]] = st.one_of(
    st.sampled_from([None, OWNER, OTHER]).map(lambda account: (account, None, {})),
    st.tuples(st.sampled_from([OWNER, OTHER]), policies, policies).map(lambda of: (of[0], *user(*of))),
)
values = st.dictionaries(
    st.sampled_from([IP, "aws:useragent", "aws:referer", "aws:securetransport"]),
    st.sampled_from([("10.1.1.1",), ("192.0.2.1",), ("abc",), ("true",)]),
)


def find_values_of(found: dict[str, tuple[str, ...]]) -> Values:
    """These values; the tags of the object are not known."""

    def find_value(key: str) -> tuple[str, ...] | None:
        if key.startswith("s3:existingobjecttag/"):
            raise ConditionNotLoaded
        return found.get(key)

    return find_value


def find_grounds(question: Question, found: Simulation) -> None:
    """Check that the named statements apply, and were not needed for nothing."""
    for one in found.deciding:
        assert one.statement.outcome == APPLIES
        assert one.statement.statement.allow is (found.ground != "explicit-deny")
    if found.ground == "explicit-deny":
        assert found.decision == DENIED
        assert found.deciding
    if found.ground == "statement":
        assert found.decision == ALLOWED
        assert found.deciding
    if found.ground == "acl":
        assert found.grant is not None
    if found.ground in ("owner", "object-owner"):
        assert question.bucket is not None
        assert question.account_id == question.bucket.owner_id


@settings(max_examples=sized(150, 20_000), deadline=None)
@given(buckets(), callers, st.sampled_from(ACTIONS), values)
def test_it_agrees_with_authorize(
    bucket: Bucket, caller: tuple[str | None, Principal | None, dict[int, NamedPolicy]], action: str, given_values: Any
) -> None:
    account, principal, sources = caller
    key = None if "Bucket" in action else "a1"
    find_value = find_values_of(given_values)
    question = Question(account, principal, action, bucket, key, "b", find_value, sources)
    verdict = authorize(account, action, bucket, key, find_value, principal=principal, work=Work())
    found = simulate(question)
    expected = {Verdict.YES: ALLOWED, Verdict.NO: DENIED}.get(verdict, DEPENDS)
    assert found.decision == expected, found.reason
    find_grounds(question, found)
    for one in found.traces:
        assert one.source.kind == "bucket" or id(one.trace.policy) in sources


@settings(max_examples=sized(150, 20_000), deadline=None)
@given(st.lists(statements(of_bucket=False), min_size=1, max_size=4), st.sampled_from(ACTIONS), values)
def test_a_statement_without_a_mismatch_applies(found: list[dict[str, Any]], action: str, given_values: Any) -> None:
    parsed = parse_identity(document(found).encode())
    request = Request(None, action, "arn:aws:s3:::b/a1", given_values.get)
    for one in parsed.statements:
        assert one.applies(request, Work()) is not bool(find_mismatches(one, request, Work()))


def ask(bucket: Bucket, action: str, account: str | None = OTHER, key: str | None = "k") -> Simulation:
    """What an account may do."""
    return simulate(Question(account, None, action, bucket, key, "b", lambda _: None, {}))


def bucket_of(**found: Any) -> Bucket:
    """A bucket with these settings."""
    return Bucket(1, "b", OWNER, "us-east-1", 0, settings=json.dumps({"public_access_block": [], **found}))


def test_the_deciding_statement_has_its_place_and_its_sid() -> None:
    resource = "arn:aws:s3:::b/*"
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": resource}
    deny = {**allow, "Sid": "Tls", "Effect": "Deny", "Condition": {"Null": {"aws:Referer": "true"}}}
    found = ask(bucket_of(policy=document([allow, deny])), "s3:GetObject")
    assert found.ground == "explicit-deny"
    assert found.reason == "Statement 2 (“Tls”) of the bucket policy denies it."
    assert [one.statement.place for one in found.deciding] == [1]
    assert ask(bucket_of(policy=document([allow])), "s3:GetObject").ground == "statement"


def test_a_condition_that_fails_says_what_it_found() -> None:
    condition = {"StringEquals": {"s3:prefix": "home/"}}
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::b"}
    found = ask(bucket_of(policy=document([allow | {"Condition": condition}])), "s3:ListBucket", key=None)
    assert found.ground == "no-statement"
    (mismatch,) = found.traces[0].trace.statements[0].mismatches
    assert mismatch == ("condition", "s3:prefix", "StringEquals", ("home/",), None)


@pytest.mark.parametrize(
    ("found", "ground"),
    [
        ({"ownership": "ObjectWriter", "acl": [[OTHER, "READ"]]}, "acl"),
        ({"acl": [[OTHER, "READ"]]}, "acl-ignored"),
        ({"ownership": "ObjectWriter", "acl": [[ALL_USERS, "READ"]], "public_access_block": [True] * 4}, "acl-ignored"),
        ({}, "no-statement"),
        ({"policy": "{"}, "unreadable"),
    ],
)
def test_acls_and_what_ignores_them_are_named(found: dict[str, Any], ground: str) -> None:
    assert ask(bucket_of(**found), "s3:ListBucket", key=None).ground == ground


@pytest.mark.parametrize(
    ("known", "decision", "ground"),
    [
        (None, DEPENDS, "object"),
        (SimulatedObject(OWNER, None), DENIED, "object-acl"),
        (SimulatedObject(OTHER, None), ALLOWED, "object-owner"),
        (SimulatedObject(OWNER, (Grant(OTHER, "READ"),)), ALLOWED, "object-acl"),
        (SimulatedObject(OWNER, (Grant(OTHER, "WRITE_ACP"),)), DENIED, "object-acl"),
    ],
)
def test_where_acls_apply_the_object_decides(known: SimulatedObject | None, decision: str, ground: str) -> None:
    bucket = bucket_of(ownership="ObjectWriter")
    found = simulate(Question(OTHER, None, "s3:GetObject", bucket, "k", "b", lambda _: None, {}, known))
    assert (found.decision, found.ground) == (decision, ground)


def test_a_public_policy_that_is_ignored_is_named() -> None:
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
    blocked = bucket_of(policy=document([allow]), public_access_block=[True] * 4)
    assert ask(blocked, "s3:GetObject").ground == "public-access-block"
    assert ask(blocked, "s3:GetObject", OWNER).ground == "statement"


def test_policies_that_cost_too_much_deny() -> None:
    condition = {"StringLike": {"aws:UserAgent": ["*?" + "a" * 60 + f"b{number}*1" for number in range(200)]}}
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
    bucket = bucket_of(policy=document([statement | {"Condition": condition}]))
    agent = "a" * 60_000 + "1"
    found = simulate(Question(OTHER, None, "s3:GetObject", bucket, "k", "b", lambda _: (agent,), {}))
    assert (found.decision, found.ground) == (DENIED, "too-costly")
    assert found.traces[0].trace.statements[0].outcome == "too-costly"


def test_requests_have_no_observer() -> None:
    assert Work().observer is None
    assert Policy([]).decide(Request(None, "s3:GetObject", "b", lambda _: None), Work()) is Decision.SILENT
