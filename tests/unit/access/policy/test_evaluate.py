"""What AWS documents of evaluation, case by case ("Policy evaluation logic", "IAM JSON policy element reference")."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_s3.app.access.policy import CLOSED, Caller, Decision, Request
from tests.unit.access.policy.tools import ANNA, BEN, BUCKET_ARN, OBJECTS_ARN, allows, asked, decide, statement


def test_deny_wins_wherever_it_stands() -> None:
    yes, no = statement(), statement(Effect="Deny")
    assert decide([yes, no], asked()) is Decision.DENY
    assert decide([no, yes], asked()) is Decision.DENY
    assert decide([yes], asked()) is Decision.ALLOW


def test_what_is_not_said_is_not_allowed() -> None:
    assert decide(statement(), asked(action="s3:PutObject")) is Decision.SILENT
    assert CLOSED.decide(asked()) is Decision.SILENT


@pytest.mark.parametrize(
    ("principal", "anna", "ben", "anonymous"),
    [
        ("*", True, True, True),
        ({"AWS": "*"}, True, True, True),
        ({"AWS": ANNA.account}, True, False, False),
        ({"AWS": f"arn:aws:iam::{ANNA.account}:root"}, True, False, False),
        ({"AWS": f"arn:aws:iam::{BEN.account}:root"}, False, True, False),
        ({"AWS": [ANNA.account, BEN.arn]}, True, True, False),
        ({"AWS": BEN.arn}, False, True, False),
        ({"AWS": f"arn:aws:iam::{BEN.account}:user/Ben"}, False, False, False),
        ({"AWS": f"arn:aws:iam::{ANNA.canonical_id}:root"}, True, False, False),
        ({"CanonicalUser": ANNA.canonical_id}, True, False, False),
        ({"CanonicalUser": [ANNA.canonical_id], "AWS": BEN.account}, True, True, False),
        ({"Service": "cloudtrail.amazonaws.com"}, False, False, False),
        ({"Service": "*"}, False, False, False),
        ({"Federated": "accounts.google.com"}, False, False, False),
        ({"AWS": "AIDAQ3EGS6G3ABCDEFGHI"}, False, False, False),
        ({"AWS": f"arn:aws:iam::{BEN.account}:role/team/reader"}, False, False, False),
    ],
)
def test_principals(principal: Any, anna: bool, ben: bool, anonymous: bool) -> None:
    for caller, expected in ((ANNA, anna), (BEN, ben), (None, anonymous)):
        assert allows(statement(Principal=principal), asked(caller=caller)) is expected
        if caller is not BEN:
            deny = statement(Effect="Deny", Principal=None, NotPrincipal=principal)
            assert (decide(deny, asked(caller=caller)) is Decision.DENY) is not expected


@pytest.mark.parametrize(
    ("named", "passed"),
    [
        (BEN.arn, False),
        (BEN.account, False),
        ([BEN.account, BEN.arn], True),
        ([BEN.account, BEN.unique_id], True),
        ([ANNA.account, BEN.arn], False),
        ("*", True),
    ],
)
def test_not_principal_passes_a_user_over_with_his_account_only(named: Any, passed: bool) -> None:
    """ "AWS JSON policy elements: NotPrincipal", IAM User Guide."""
    deny = statement(Effect="Deny", Principal=None, NotPrincipal={"AWS": named})
    assert (decide(deny, asked(caller=BEN)) is not Decision.DENY) is passed


def test_a_session_is_its_role_and_itself() -> None:
    arn, role = "arn:aws:sts::444455556666:assumed-role/reader/one", "arn:aws:iam::444455556666:role/reader"
    caller = BEN._replace(arn=arn, role=role, unique_id="AROAREADERREADERREADER")
    by_id = f"{caller.unique_id}:one"
    for one in (arn, role, caller.unique_id, BEN.account, by_id):
        assert allows(statement(Principal={"AWS": one}), asked(caller=caller))
    for one in (BEN.arn, f"{caller.unique_id}:two", "AROAREADERREADERREADES:one"):
        assert not allows(statement(Principal={"AWS": one}), asked(caller=caller))
    assert not allows(statement(Principal={"AWS": f"{BEN.unique_id.replace('AIDA', 'AROA')}:ben"}), asked(caller=BEN))
    for these, passed in (
        ([role], False),
        ([arn], False),
        ([caller.unique_id], False),
        ([by_id], False),
        ([arn, role], True),
        ([by_id, caller.unique_id], True),
        ([arn, caller.unique_id], True),
    ):
        deny = statement(Effect="Deny", Principal=None, NotPrincipal={"AWS": [BEN.account, *these]})
        assert (decide(deny, asked(caller=caller)) is not Decision.DENY) is passed


@pytest.mark.parametrize(
    ("texts", "named", "not_named"),
    [
        ("s3:GetObject", "GetObject", "GetObjectVersion GetObjectAcl PutObject"),
        ("S3:getOBJECT", "GetObject", "PutObject"),
        ("s3:Get*", "GetObject GetObjectAcl GetObjectVersion", "PutObject DeleteObject"),
        ("s3:*Object", "GetObject PutObject DeleteObject RestoreObject", "GetObjectAcl"),
        ("s3:???Object", "GetObject PutObject", "DeleteObject"),
        ("*", "GetObject DeleteObjectVersion", ""),
        (["s3:PutObject", "s3:*Acl"], "PutObject GetObjectAcl PutObjectAcl", "GetObject"),
    ],
)
def test_actions(texts: Any, named: str, not_named: str) -> None:
    for names, expected in ((named, True), (not_named, False)):
        for name in names.split():
            request = asked(action=f"s3:{name}")
            assert allows(statement(Action=texts), request) is expected
            if texts != "*":
                assert allows(statement(Action=None, NotAction=texts), request) is not expected


@pytest.mark.parametrize(
    ("resource", "keys", "other_keys"),
    [
        ("/*", ["a", "a/b", "*", "é"], []),
        ("/a", ["a"], ["ab", "b/a", "A"]),
        ("/a*", ["a", "ab", "a/b/c"], ["ba"]),
        ("/*/c", ["a/c", "a/b/c", "/c"], ["c", "a/cc"]),
        ("/?", ["a", "é", "?"], ["", "ab"]),
        ("/a?c*e", ["abce", "a/cdde"], ["ace", "abcd"]),
        ("/pub/*", ["pub/x", "pub/../secret"], ["secret", "pub"]),
        ("*", ["a", "a/b"], []),
        ("/${*}", ["*"], ["a", "**"]),
        ("/${?}${$}", ["?$"], ["a$"]),
    ],
)
def test_resources(resource: str, keys: list[str], other_keys: list[str]) -> None:
    arn = BUCKET_ARN + resource
    for key in keys:
        assert allows(statement(Resource=arn), asked(key))
        assert not allows(statement(Resource=None, NotResource=arn), asked(key))
    for key in other_keys:
        assert not allows(statement(Resource=arn), asked(key))
        assert allows(statement(Resource=None, NotResource=arn), asked(key))


def test_bucket_and_objects_are_different_resources() -> None:
    listing = statement(Action="s3:ListBucket", Resource=BUCKET_ARN)
    assert allows(listing, asked(None, "s3:ListBucket"))
    both = statement(Action=["s3:ListBucket", "s3:GetObject"], Resource=[BUCKET_ARN, OBJECTS_ARN])
    assert allows(both, asked(None, "s3:ListBucket"))
    assert allows(both, asked("k"))


def test_variables_only_in_the_version_that_has_them() -> None:
    home = statement(Resource=BUCKET_ARN + "/${aws:username}/*")
    request = asked("ben/x", caller=BEN, context={"aws:username": ["ben"]})
    assert allows(home, request)
    assert not allows(home, request, "2008-10-17")
    literal = asked("${aws:username}/x", caller=BEN, context={"aws:username": ["ben"]})
    assert allows(home, literal, "2008-10-17")
    assert not allows(home, literal)


def test_a_variable_without_a_value_names_nothing() -> None:
    home = BUCKET_ARN + "/${aws:username}/*"
    for key in ("/x", "${aws:username}/x", "None/x", "*/x"):
        assert not allows(statement(Resource=home), asked(key))
    # and in a place where naming nothing would allow everything, it allows nothing
    assert not allows(statement(Resource=None, NotResource=home), asked("x"))
    assert decide(statement(Effect="Deny", Resource=None, NotResource=home), asked("x")) is Decision.DENY


def test_a_variable_with_several_values_has_none() -> None:
    tagged = statement(Resource=BUCKET_ARN + "/${aws:TagKeys}")
    assert allows(tagged, asked("a", context={"aws:TagKeys": ["a"]}))
    assert not allows(tagged, asked("a", context={"aws:TagKeys": ["a", "b"]}))


def test_defaults_of_variables() -> None:
    home = statement(Resource=BUCKET_ARN + "/${aws:username, 'every''one'}/*")
    assert allows(home, asked("every'one/x"))
    assert allows(home, asked("ben/x", context={"aws:username": ["ben"]}))
    assert not allows(home, asked("every'one/x", context={"aws:username": ["ben"]}))


def test_values_of_variables_are_no_patterns() -> None:
    home = statement(Resource=BUCKET_ARN + "/${aws:username}")
    context = {"aws:username": ["*"]}
    assert allows(home, asked("*", context=context))
    assert not allows(home, asked("secret", context=context))
    again = {"aws:username": ["${aws:username}"]}
    assert allows(home, asked("${aws:username}", context=again))


def test_names_of_keys_have_no_case() -> None:
    found = statement(Condition={"StringEquals": {"AWS:REFERER": "x"}})
    assert allows(found, asked(context={"aws:Referer": ["x"]}))


@pytest.mark.parametrize("wanted", ["arn:aws:s3:::photos", "arn:aws:s3:::photos/"])
def test_names_are_compared_whole(wanted: str) -> None:
    found = statement(Action="s3:*", Resource=wanted)
    request = Request(None, "s3:GetObject", "photos2/k", lambda _: None)
    assert not allows(found, request)
    assert not allows(found, asked("k"))


def test_a_caller_without_a_name_is_not_the_user_of_that_name() -> None:
    nobody = Caller("", "", "", "")
    assert not allows(statement(Principal={"AWS": ANNA.account}), asked(caller=nobody))
