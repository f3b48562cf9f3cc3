"""Who may do what: settings, policy, ACLs and ownership together, without a gateway."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.account import account_number
from sluice_s3.app.access.acl import (
    ALL_USERS,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    OF_BUCKET,
    OF_OBJECT,
    Grant,
    canned_grants,
)
from sluice_s3.app.access.authorize import Verdict, authorize, authorize_object
from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.access.policy.actions import KNOWN
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3 import routing

OWNER, ANNA, NOBODY = "owner", "anna", None
ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteBucket", "s3:GetBucketPolicy")


def bucket(settings: Any = None) -> Bucket:
    text = settings if isinstance(settings, str) else json.dumps(settings) if settings else ""
    return Bucket(1, "b", OWNER, "us-east-1", 0, settings=text)


def policy(*statements: dict[str, Any], block: list[bool] | None = None) -> Bucket:
    text = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    return bucket({"policy": text, "public_access_block": block or []})


def say(effect: str, principal: Any, *actions: str) -> dict[str, Any]:
    resources = ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]
    return {"Effect": effect, "Principal": principal, "Action": list(actions), "Resource": resources}


BROKEN = [
    "{",
    "[]",
    '"x"',
    {"policy": "{"},
    {"policy": 5},
    {"policy": '{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}]}'},
    {"policy": json.dumps({"Statement": [say("Allow", "*", "s3:*") | {"Condition": {"Later": {"aws:Time": "x"}}}]})},
    {"ownership": "Everybody"},
    {"ownership": 1},
    {"public_access_block": "none"},
    {"public_access_block": [0, 0, 0, 0]},
    {"acl": [["anna", "EVERYTHING"]]},
    {"acl": "public-read"},
]


@pytest.mark.parametrize("settings", BROKEN)
def test_f71_settings_that_cannot_be_read_are_closed(settings: Any) -> None:
    """To the owner as well, but for what repairs them."""
    broken = bucket(settings)
    assert access_of(broken).closed
    for account in (OWNER, ANNA, NOBODY):
        for action in ACTIONS[:-1]:
            assert authorize(account, action, broken, "k" if action.endswith("Object") else None) is Verdict.NO
    assert authorize(OWNER, "s3:DeleteBucketPolicy", broken)
    assert not authorize(ANNA, "s3:DeleteBucketPolicy", broken)


@pytest.mark.parametrize("action", sorted(KNOWN))
def test_a_bucket_without_settings_is_its_owners(action: str) -> None:
    assert authorize(OWNER, action, bucket(), "k")
    assert authorize(ANNA, action, bucket(), "k") is Verdict.NO
    assert authorize(NOBODY, action, bucket(), "k") is Verdict.NO


def test_an_open_verdict_is_no_yes() -> None:
    assert [verdict for verdict in Verdict if verdict] == [Verdict.YES]


def test_every_operation_needs_a_right_that_there_is() -> None:
    """Law 7: what declares none cannot be registered."""
    assert {operation.action for operation in routing.ROUTES.values()} <= KNOWN
    assert set(routing.VERSION_ACTIONS) | set(routing.VERSION_ACTIONS.values()) <= KNOWN
    assert set(OF_BUCKET) | set(OF_OBJECT) <= KNOWN
    for action in ("", "s3:", "GetObject", "s3:Everything", "*"):
        with pytest.raises(ValueError):
            routing.operation("GET", "bucket", "nothing", name="Nothing", action=action)


def test_f65_deny_beats_the_owner_but_for_the_policy_itself() -> None:
    closed = policy(say("Allow", "*", "s3:*"), say("Deny", "*", "s3:*"))
    for account in (OWNER, ANNA, NOBODY):
        assert not authorize(account, "s3:GetObject", closed, "k")
    assert authorize(OWNER, "s3:PutBucketPolicy", closed)
    assert not authorize(ANNA, "s3:PutBucketPolicy", closed)


def test_a_deny_alone_allows_nothing() -> None:
    """Nor does its negation: who is not denied is not allowed."""
    denying = policy(say("Deny", {"AWS": account_number("ben")}, "s3:GetObject"))
    assert not authorize(ANNA, "s3:GetObject", denying, "k")
    assert not authorize(NOBODY, "s3:GetObject", denying, "k")
    assert authorize(OWNER, "s3:GetObject", denying, "k")


def test_restricted_public_buckets() -> None:
    public = [say("Allow", "*", "s3:GetObject"), say("Allow", {"AWS": account_number(ANNA)}, "s3:ListBucket")]
    assert authorize(ANNA, "s3:ListBucket", policy(*public))
    restricted = policy(*public, block=[False, False, False, True])
    for account in (ANNA, NOBODY):
        assert not authorize(account, "s3:GetObject", restricted, "k")
        assert not authorize(account, "s3:ListBucket", restricted)
    assert authorize(OWNER, "s3:GetObject", restricted, "k")
    # a policy that is not public is not restricted
    assert authorize(ANNA, "s3:ListBucket", policy(public[1], block=[False, False, False, True]))


def writers(*grants: Grant, block: list[bool] | None = None) -> Bucket:
    found = {"ownership": "ObjectWriter", "public_access_block": block or []}
    return bucket(found | ({"acl": [list(grant) for grant in grants]} if grants else {}))


@pytest.mark.parametrize("action", sorted(OF_BUCKET))
def test_acls_of_buckets(action: str) -> None:
    permission = OF_BUCKET[action]
    for granted in ("READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"):
        expected = granted in (permission, "FULL_CONTROL")
        assert bool(authorize(ANNA, action, writers(Grant(ANNA, granted)), "k")) is expected
        assert bool(authorize(ANNA, action, writers(Grant(AUTHENTICATED_USERS, granted)), "k")) is expected
        assert bool(authorize(NOBODY, action, writers(Grant(ALL_USERS, granted)), "k")) is expected
        assert not authorize(NOBODY, action, writers(Grant(AUTHENTICATED_USERS, granted)), "k")
        assert not authorize(NOBODY, action, writers(Grant(ANNA, granted)), "k")
        assert not authorize(ANNA, action, writers(Grant(LOG_DELIVERY, granted)), "k")
        ignored = writers(Grant(ALL_USERS, granted), block=[False, True, False, False])
        assert not authorize(ANNA, action, ignored, "k")
        enforced = bucket({"acl": [[ALL_USERS, granted]]})
        assert not authorize(ANNA, action, enforced, "k")


def test_acls_allow_only_what_they_can() -> None:
    """FULL_CONTROL of a bucket is none of its settings."""
    full = writers(Grant(ANNA, "FULL_CONTROL"), Grant(ALL_USERS, "FULL_CONTROL"))
    for action in sorted(KNOWN - set(OF_BUCKET)):
        assert not authorize(ANNA, action, full, "k"), action


@pytest.mark.parametrize("action", sorted(OF_OBJECT))
def test_acls_of_objects(action: str) -> None:
    """The bucket's ACL says nothing of its objects, and the bucket's owner has no right to another's."""
    where = writers(Grant(ALL_USERS, "FULL_CONTROL"))
    for account in (OWNER, ANNA, "ben", NOBODY):
        verdict = authorize(account, action, where, "k")
        assert verdict is Verdict.BY_OBJECT
        assert authorize_object(account, action, where, ANNA, None, verdict) is (account == ANNA)
        granted = (Grant("ben", OF_OBJECT[action]),)
        assert authorize_object(account, action, where, ANNA, granted, verdict) is (account in (ANNA, "ben"))


def test_policies_count_for_objects_of_the_buckets_owner_only() -> None:
    text = json.dumps({"Version": "2012-10-17", "Statement": [say("Allow", "*", "s3:GetObject")]})
    where = bucket({"ownership": "ObjectWriter", "public_access_block": [], "policy": text})
    verdict = authorize("ben", "s3:GetObject", where, "k")
    assert verdict is Verdict.BY_OBJECT_OR_POLICY
    assert authorize_object("ben", "s3:GetObject", where, OWNER, None, verdict)
    assert not authorize_object("ben", "s3:GetObject", where, ANNA, None, verdict)


@pytest.mark.parametrize("verdict", [Verdict.NO, Verdict.YES])
def test_what_was_decided_stays_decided(verdict: Verdict) -> None:
    grants = (Grant(ALL_USERS, "FULL_CONTROL"),)
    decided = authorize_object(ANNA, "s3:GetObject", writers(), ANNA, grants, verdict)
    assert decided is (verdict is Verdict.YES)


def test_canned_acls() -> None:
    full = Grant(ANNA, "FULL_CONTROL")
    assert canned_grants("private", ANNA, OWNER) == (full,)
    assert canned_grants("bucket-owner-read", ANNA, OWNER) == (full, Grant(OWNER, "READ"))
    assert canned_grants("bucket-owner-full-control", ANNA, OWNER) == (full, Grant(OWNER, "FULL_CONTROL"))
    assert canned_grants("bucket-owner-full-control", OWNER, OWNER) == (Grant(OWNER, "FULL_CONTROL"),)
    assert canned_grants("public-read-write", ANNA, OWNER) == (
        full,
        Grant(ALL_USERS, "READ"),
        Grant(ALL_USERS, "WRITE"),
    )
    assert canned_grants("public", ANNA, OWNER) is None


def test_account_numbers() -> None:
    assert account_number("123456789012") == "123456789012"
    for account in ("a" * 64, "other-id", "١٢٣٤٥٦٧٨٩٠١٢"):
        number = account_number(account)
        assert len(number) == 12
        assert number.isascii()
        assert number.isdigit()
    assert account_number("a") != account_number("b")
