"""Users, groups and roles by the operations of IAM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.iam.actions import Document, operation
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.policy.actions import IAM_ACTIONS
from tests.unit.access.iam.conftest import ANYBODY, Caller, policy, trusting


async def test_life_of_a_user(ours: Caller) -> None:
    made = (await ours("CreateUser", UserName="Ann", Path="/staff/"))["User"]
    assert made["Arn"] == f"arn:aws:iam::{ours.number}:user/staff/Ann"
    assert made["UserId"].startswith("AIDA")
    assert (await ours("GetUser", UserName="ann"))["User"] == made
    await ours.refused("EntityAlreadyExists", "CreateUser", UserName="ANN")
    await ours("UpdateUser", UserName="ann", NewUserName="Beth", NewPath="/")
    assert (await ours("GetUser", UserName="beth"))["User"]["Arn"] == f"arn:aws:iam::{ours.number}:user/Beth"
    await ours.refused("NoSuchEntity", "GetUser", UserName="ann")
    await ours("DeleteUser", UserName="beth")
    for action in ("GetUser", "DeleteUser"):
        await ours.refused("NoSuchEntity", action, UserName="beth")


async def test_the_account_is_a_user_too(ours: Caller) -> None:
    told = (await ours("GetUser"))["User"]
    assert (told["UserId"], told["Arn"]) == (ours.number, f"arn:aws:iam::{ours.number}:root")
    ann = await ours.user("ann", policy("iam:GetUser"))
    assert (await ann("GetUser"))["User"]["UserName"] == "ann"


@pytest.mark.parametrize(
    ("action", "name", "more"),
    [
        ("ListUsers", "Users", {}),
        ("ListGroups", "Groups", {}),
        ("ListRoles", "Roles", {"AssumeRolePolicyDocument": ANYBODY}),
    ],
)
async def test_pages(ours: Caller, action: str, name: str, more: dict[str, str]) -> None:
    kind = name[:-1]
    for one, path in (("c", "/x/"), ("B", "/y/"), ("a", "/x/z/")):
        await ours(f"Create{kind}", **{f"{kind}Name": one}, Path=path, **more)
    first = await ours(action, MaxItems="2")
    assert [one[f"{kind}Name"] for one in first[name]] == ["a", "B"]
    assert first["IsTruncated"] is True
    second = await ours(action, MaxItems="2", Marker=first["Marker"])
    assert [one[f"{kind}Name"] for one in second[name]] == ["c"]
    assert second["IsTruncated"] is False
    assert [one[f"{kind}Name"] for one in (await ours(action, PathPrefix="/x"))[name]] == ["a", "c"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("UserName", ""),
        ("UserName", "a b"),
        ("UserName", "a/b"),
        ("UserName", "é"),
        ("UserName", "x" * 65),
        ("Path", "x"),
        ("Path", "/x"),
        ("Path", "/ /"),
        ("Path", "/" + "x" * 512 + "/"),
        ("Path", "/é/"),
    ],
)
async def test_names_and_paths_that_are_none(ours: Caller, parameter: str, value: str) -> None:
    await ours.refused("ValidationError", "CreateUser", **{"UserName": "ann", parameter: value})


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "9" * 30])
async def test_limits_that_are_none(ours: Caller, limit: str) -> None:
    await ours.refused("ValidationError", "ListUsers", MaxItems=limit)


async def test_keys_of_a_user(ours: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    made = [(await ours("CreateAccessKey", UserName="ann"))["AccessKey"] for _ in range(2)]
    await ours.refused("LimitExceeded", "CreateAccessKey", UserName="ann")
    one = made[0]["AccessKeyId"]
    assert made[0]["UserName"] == "ann"
    await ours("UpdateAccessKey", UserName="ann", AccessKeyId=one, Status="Inactive")
    listed = {
        key["AccessKeyId"]: key["Status"] for key in (await ours("ListAccessKeys", UserName="ann"))["AccessKeyMetadata"]
    }
    assert listed == {one: "Inactive", made[1]["AccessKeyId"]: "Active"}
    await ours.refused("ValidationError", "UpdateAccessKey", UserName="ann", AccessKeyId=one, Status="Off")
    await ours.refused("DeleteConflict", "DeleteUser", UserName="ann")
    for key in listed:
        await ours("DeleteAccessKey", UserName="ann", AccessKeyId=key)
    await ours.refused("NoSuchEntity", "DeleteAccessKey", UserName="ann", AccessKeyId=one)
    await ours("DeleteUser", UserName="ann")


async def test_keys_of_the_account_itself(ours: Caller) -> None:
    key = (await ours("CreateAccessKey"))["AccessKey"]
    assert "UserName" not in key
    assert len((await ours("ListAccessKeys"))["AccessKeyMetadata"]) == 2
    await ours.refused("LimitExceeded", "CreateAccessKey")
    await ours("DeleteAccessKey", AccessKeyId=key["AccessKeyId"])


async def test_one_makes_keys_of_ones_own(ours: Caller) -> None:
    ann = await ours.user(
        "ann", policy("iam:*AccessKey*", resource=f"arn:aws:iam::{ours.number}:user/${{aws:username}}")
    )
    ann.given["aws:username"] = "ann"
    made = (await ann("CreateAccessKey"))["AccessKey"]
    assert made["UserName"] == "ann"
    await ours("CreateUser", UserName="bob")
    await ann.refused("AccessDenied", "CreateAccessKey", UserName="bob")


async def test_groups(ours: Caller) -> None:
    group = (await ours("CreateGroup", GroupName="staff", Path="/x/"))["Group"]
    assert group["Arn"] == f"arn:aws:iam::{ours.number}:group/x/staff"
    await ours("CreateUser", UserName="ann")
    await ours("AddUserToGroup", GroupName="staff", UserName="ann")
    assert [user["UserName"] for user in (await ours("GetGroup", GroupName="STAFF"))["Users"]] == ["ann"]
    assert (await ours("ListGroupsForUser", UserName="ann"))["Groups"] == [group]
    await ours("UpdateGroup", GroupName="staff", NewGroupName="club")
    assert (await ours("ListGroupsForUser", UserName="ann"))["Groups"][0]["GroupName"] == "club"
    for action, name in (("DeleteGroup", {"GroupName": "club"}), ("DeleteUser", {"UserName": "ann"})):
        await ours.refused("DeleteConflict", action, **name)
    await ours("RemoveUserFromGroup", GroupName="club", UserName="ann")
    await ours.refused("NoSuchEntity", "RemoveUserFromGroup", GroupName="club", UserName="ann")
    await ours.refused("NoSuchEntity", "AddUserToGroup", GroupName="club", UserName="bob")
    await ours("DeleteGroup", GroupName="club")


@pytest.mark.parametrize("kind", ["User", "Group", "Role"])
async def test_policies(ours: Caller, kind: str) -> None:
    whose = {f"{kind}Name": "x"}
    more = {"AssumeRolePolicyDocument": ANYBODY} if kind == "Role" else {}
    text = policy("s3:Get*")
    await ours.refused("NoSuchEntity", f"Put{kind}Policy", **whose, PolicyName="p", PolicyDocument=text)
    await ours.refused("NoSuchEntity", f"List{kind}Policies", **whose)
    await ours(f"Create{kind}", **whose, **more)
    await ours.refused("NoSuchEntity", f"Get{kind}Policy", **whose, PolicyName="p")
    await ours(f"Put{kind}Policy", **whose, PolicyName="p", PolicyDocument=text)
    told = await ours(f"Get{kind}Policy", **whose, PolicyName="p")
    assert told == {f"{kind}Name": "x", "PolicyName": "p", "PolicyDocument": text}
    assert isinstance(told["PolicyDocument"], Document)
    await ours(f"Put{kind}Policy", **whose, PolicyName="A", PolicyDocument=text)
    assert (await ours(f"List{kind}Policies", **whose))["PolicyNames"] == ["A", "p"]
    await ours.refused("DeleteConflict", f"Delete{kind}", **whose)
    for name in ("A", "p"):
        await ours(f"Delete{kind}Policy", **whose, PolicyName=name)
    await ours.refused("NoSuchEntity", f"Delete{kind}Policy", **whose, PolicyName="p")

    arn = "arn:aws:iam::aws:policy/AmazonS3FullAccess"
    await ours.refused("NoSuchEntity", f"Detach{kind}Policy", **whose, PolicyArn=arn)
    await ours.refused("NoSuchEntity", f"Attach{kind}Policy", **whose, PolicyArn=arn + "x")
    for _ in range(2):
        await ours(f"Attach{kind}Policy", **whose, PolicyArn=arn)
    listed = (await ours(f"ListAttached{kind}Policies", **whose))["AttachedPolicies"]
    assert listed == [{"PolicyName": "AmazonS3FullAccess", "PolicyArn": arn}]
    await ours.refused("DeleteConflict", f"Delete{kind}", **whose)
    await ours(f"Detach{kind}Policy", **whose, PolicyArn=arn)
    await ours(f"Delete{kind}", **whose)


MALFORMED = [
    "",
    "{}",
    "[]",
    "not JSON",
    '{"Version":"2012-10-17"}',
    policy("s3:Get*", Version="x").replace('"2012-10-17"', '"2010-10-17"'),
    policy("s3:Get*", Principal="*"),
    policy("s3:Get*", NotPrincipal={"AWS": "1" * 12}),
    policy("GetObject"),
    policy("s3:Get*", resource="photos"),
    policy("s3:Get*", resource=[]),
    policy("s3:Get*", effect="Maybe"),
    policy("s3:Get*", Sid="not alnum"),
    policy("s3:Get*", Condition={"StringEquals": "x"}),
    policy("s3:Get*", Condition={"StringResembles": {"aws:Referer": "x"}}),
    policy("s3:Get*", Unknown="x"),
    json.dumps({"Statement": [{"Sid": "a", "Effect": "Allow", "Action": "*", "Resource": "*"}] * 2}),
]


@pytest.mark.parametrize("text", MALFORMED)
async def test_policies_that_are_none(ours: Caller, text: str) -> None:
    await ours("CreateUser", UserName="ann")
    code = "MalformedPolicyDocument" if text else "ValidationError"
    await ours.refused(code, "PutUserPolicy", UserName="ann", PolicyName="p", PolicyDocument=text)


async def test_policies_may_speak_of_services_that_there_are_none_of(ours: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    for text in (policy("ec2:RunInstances"), policy("*"), policy("s3:*", Condition={"Bool": {"ec2:Fine": "true"}})):
        await ours("PutUserPolicy", UserName="ann", PolicyName="p", PolicyDocument=text)


async def test_policies_have_a_quota(ours: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    half = policy("s3:Get*", resource="arn:aws:s3:::" + "x" * 1000)
    await ours("PutUserPolicy", UserName="ann", PolicyName="a", PolicyDocument=half + " " * 5000)
    await ours.refused("LimitExceeded", "PutUserPolicy", UserName="ann", PolicyName="b", PolicyDocument=half)
    await ours("PutUserPolicy", UserName="ann", PolicyName="a", PolicyDocument=half)
    assert (await ours("ListUserPolicies", UserName="ann"))["PolicyNames"] == ["a"]
    await ours.refused("InvalidInput", "PutUserPolicy", UserName="ann", PolicyName="b", PolicyDocument=" " * 140_000)


async def test_life_of_a_role(ours: Caller) -> None:
    made = (await ours("CreateRole", RoleName="Reader", Path="/x/", AssumeRolePolicyDocument=ANYBODY, Description="d"))[
        "Role"
    ]
    assert made["Arn"] == f"arn:aws:iam::{ours.number}:role/x/Reader"
    assert made["AssumeRolePolicyDocument"] == ANYBODY
    assert "Description" not in made
    role = (await ours("GetRole", RoleName="reader"))["Role"]
    assert (role["Description"], role["MaxSessionDuration"]) == ("d", 3600)
    await ours("UpdateRole", RoleName="reader", MaxSessionDuration="7200")
    assert (await ours("GetRole", RoleName="reader"))["Role"]["MaxSessionDuration"] == 7200
    await ours("UpdateRoleDescription", RoleName="reader", Description="new")
    assert (await ours("GetRole", RoleName="reader"))["Role"]["Description"] == "new"
    other = trusting(ours.number)
    await ours("UpdateAssumeRolePolicy", RoleName="reader", PolicyDocument=other)
    assert (await ours("GetRole", RoleName="reader"))["Role"]["AssumeRolePolicyDocument"] == other
    await ours("DeleteRole", RoleName="reader")
    await ours.refused("NoSuchEntity", "UpdateRole", RoleName="reader")


@pytest.mark.parametrize(
    "text",
    [
        "",
        policy("sts:AssumeRole"),
        trusting("*", Resource="*"),
        trusting("*", Action="s3:GetObject"),
        trusting("*", Action="*"),
        trusting("nobody"),
        trusting("arn:aws:iam::111111111111:user/nobody"),
        trusting("arn:aws:iam::111111111111:role/none"),
        " " * 140_000,
        trusting(*["111111111111"] * 300),
    ],
)
async def test_trust_policies_that_are_none(ours: Caller, text: str) -> None:
    code = "MalformedPolicyDocument" if text else "ValidationError"
    await ours.refused(code, "CreateRole", RoleName="r", AssumeRolePolicyDocument=text)
    await ours.refused("NoSuchEntity", "GetRole", RoleName="r")


@pytest.mark.parametrize("seconds", ["3599", "43201", "x"])
async def test_durations_that_are_none(ours: Caller, seconds: str) -> None:
    more = {"AssumeRolePolicyDocument": ANYBODY, "MaxSessionDuration": seconds}
    await ours.refused("ValidationError", "CreateRole", RoleName="r", **more)


async def test_accounts_do_not_see_each_other(ours: Caller, theirs: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    await theirs.refused("NoSuchEntity", "GetUser", UserName="ann")
    await theirs.refused("NoSuchEntity", "DeleteUser", UserName="ann")
    await theirs("CreateUser", UserName="ann")
    assert len((await theirs("ListUsers"))["Users"]) == 1


async def test_a_user_needs_the_right_on_that_very_thing(ours: Caller) -> None:
    only = f"arn:aws:iam::{ours.number}:user/staff/*"
    ann = await ours.user("ann", policy("iam:*", resource=only), policy("iam:DeleteUser", effect="Deny"))
    await ann("CreateUser", UserName="bob", Path="/staff/")
    await ann("GetUser", UserName="bob")
    await ann.refused("AccessDenied", "CreateUser", UserName="cid")
    await ann.refused("AccessDenied", "GetUser", UserName="ann")
    await ann.refused("AccessDenied", "ListRoles")
    await ann.refused("AccessDenied", "DeleteUser", UserName="bob")
    # what there is not is not told of to who may not ask
    await ann.refused("AccessDenied", "GetUser", UserName="nobody")


async def test_what_is_not_built_is_said(ours: Caller) -> None:
    await ours.refused("NotImplemented", "CreateVirtualMFADevice")
    await ours.refused("NotImplemented", "CreateUser", UserName="ann", Tags__member__1__Key="k")
    await ours.refused("NotImplemented", "CreateUser", UserName="ann", PermissionsBoundary="arn:aws:iam::aws:policy/x")
    await ours.refused("NotImplemented", "AssumeRoleWithWebIdentity", "sts")


async def test_summary(ours: Caller) -> None:
    await ours("CreateUser", UserName="ann")
    told = {entry["key"]: entry["value"] for entry in (await ours("GetAccountSummary"))["SummaryMap"]}
    assert (told["Users"], told["Groups"], told["AccessKeysPerUserQuota"]) == (1, 0, 2)


def test_every_operation_says_its_right() -> None:
    async def handler(call: Any) -> dict[str, Any]:
        return {}

    async def resource(call: Any) -> str:
        return "*"

    for name in ("NoSuchAction", "CreateUser"):
        with pytest.raises(ValueError, match=name):
            operation(name, on=resource)(handler)
    assert "iam:CreateUser" in IAM_ACTIONS


def test_lists() -> None:
    given = Parameters({"A.member.1.arn": "x", "A.member.2.arn": "y", "B.member.1": "b"})
    assert given.members("A", "arn") == ["x", "y"]
    assert given.members("B") == ["b"]
    assert given.members("C") == []
