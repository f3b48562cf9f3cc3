"""Managed policies of an account, by the operations of IAM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.iam import managed_policies
from sluice_s3.app.access.iam.managed_policies import MAX_STORED
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.access.principal import build_principal
from tests.unit.access.iam.conftest import ANYBODY, Caller, policy

FULL = "arn:aws:iam::aws:policy/AmazonS3FullAccess"


async def _make(ours: Caller, name: str, *actions: str) -> str:
    made = await ours("CreatePolicy", PolicyName=name, PolicyDocument=policy(*actions))
    arn: str = made["Policy"]["Arn"]
    return arn


async def _may(ours: Caller, user: str, action: str) -> bool:
    """Whether a key of the user may do an action, by what the index says of the key."""
    (key,) = (await ours("ListAccessKeys", UserName=user))["AccessKeyMetadata"]
    found = await ours.index.access_key(key["AccessKeyId"])
    assert found is not None
    assert found.holder is not None
    return build_principal(found.holder).decide(action, "arn:aws:s3:::b/k", lambda _: None).name == "ALLOW"


async def test_life_of_a_policy(ours: Caller) -> None:
    made = await ours(
        "CreatePolicy", PolicyName="Reads", PolicyDocument=policy("s3:GetObject"), Path="/a/", Description="d"
    )
    arn = f"arn:aws:iam::{ours.number}:policy/a/Reads"
    assert made["Policy"]["Arn"] == arn
    assert made["Policy"]["PolicyId"].startswith("ANPA")
    told = (await ours("GetPolicy", PolicyArn=arn))["Policy"]
    assert (told["DefaultVersionId"], told["AttachmentCount"], told["Description"]) == ("v1", 0, "d")
    await ours.refused("EntityAlreadyExists", "CreatePolicy", PolicyName="reads", PolicyDocument=policy("s3:*"))
    await ours.refused("NoSuchEntity", "GetPolicy", PolicyArn=f"arn:aws:iam::{ours.number}:policy/Reads")
    await ours("DeletePolicy", PolicyArn=arn)
    for action in ("GetPolicy", "DeletePolicy", "ListPolicyVersions", "ListEntitiesForPolicy"):
        await ours.refused("NoSuchEntity", action, PolicyArn=arn)


async def test_attached_to_a_user_and_to_its_group_it_gives_rights_until_detached(ours: Caller) -> None:
    await ours.user("ann")
    reads, writes = await _make(ours, "reads", "s3:GetObject"), await _make(ours, "writes", "s3:PutObject")
    await ours("CreateGroup", GroupName="staff")
    await ours("AddUserToGroup", GroupName="staff", UserName="ann")
    assert not await _may(ours, "ann", "s3:GetObject")
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=reads)
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=reads)
    await ours("AttachGroupPolicy", GroupName="staff", PolicyArn=writes)
    assert await _may(ours, "ann", "s3:GetObject")
    assert await _may(ours, "ann", "s3:PutObject")
    assert not await _may(ours, "ann", "s3:DeleteObject")
    listed = await ours("ListAttachedUserPolicies", UserName="ann")
    assert listed["AttachedPolicies"] == [{"PolicyName": "reads", "PolicyArn": reads}]
    groups = (await ours("ListGroupsForUser", UserName="ann"))["Groups"]
    assert [one["GroupName"] for one in groups] == ["staff"]
    entities = await ours("ListEntitiesForPolicy", PolicyArn=writes)
    assert [one["GroupName"] for one in entities["PolicyGroups"]] == ["staff"]
    assert entities["PolicyUsers"] == entities["PolicyRoles"] == []
    await ours.refused("DeleteConflict", "DeletePolicy", PolicyArn=writes)
    await ours.refused("DeleteConflict", "DeleteUser", UserName="ann")
    await ours("DetachGroupPolicy", GroupName="staff", PolicyArn=writes)
    await ours.refused("NoSuchEntity", "DetachGroupPolicy", GroupName="staff", PolicyArn=writes)
    assert not await _may(ours, "ann", "s3:PutObject")
    await ours("DeletePolicy", PolicyArn=writes)


async def test_an_attached_policy_keeps_its_group_and_role(ours: Caller) -> None:
    reads = await _make(ours, "reads", "s3:GetObject")
    await ours("CreateGroup", GroupName="staff")
    await ours("CreateRole", RoleName="role", AssumeRolePolicyDocument=ANYBODY)
    await ours("AttachGroupPolicy", GroupName="staff", PolicyArn=reads)
    await ours("AttachRolePolicy", RoleName="role", PolicyArn=reads)
    assert "detach" in await ours.refused("DeleteConflict", "DeleteGroup", GroupName="staff")
    assert "detach" in await ours.refused("DeleteConflict", "DeleteRole", RoleName="role")


async def test_versions(ours: Caller) -> None:
    await ours.user("ann")
    arn = await _make(ours, "p", "s3:GetObject")
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=arn)
    await ours("CreatePolicyVersion", PolicyArn=arn, PolicyDocument=policy("s3:PutObject"))
    assert not await _may(ours, "ann", "s3:PutObject")
    await ours("SetDefaultPolicyVersion", PolicyArn=arn, VersionId="v2")
    assert await _may(ours, "ann", "s3:PutObject")
    assert not await _may(ours, "ann", "s3:GetObject")
    made = await ours("CreatePolicyVersion", PolicyArn=arn, PolicyDocument=policy("s3:List*"), SetAsDefault="true")
    assert (made["PolicyVersion"]["VersionId"], made["PolicyVersion"]["IsDefaultVersion"]) == ("v3", True)
    assert await _may(ours, "ann", "s3:ListBucket")
    first = (await ours("GetPolicyVersion", PolicyArn=arn, VersionId="v1"))["PolicyVersion"]
    assert json.loads(first["Document"]) == json.loads(policy("s3:GetObject"))
    assert first["IsDefaultVersion"] is False
    await ours.refused("DeleteConflict", "DeletePolicyVersion", PolicyArn=arn, VersionId="v3")
    await ours.refused("NoSuchEntity", "DeletePolicyVersion", PolicyArn=arn, VersionId="v9")
    await ours.refused("NoSuchEntity", "SetDefaultPolicyVersion", PolicyArn=arn, VersionId="v9")
    await ours("DeletePolicyVersion", PolicyArn=arn, VersionId="v2")
    for _ in range(3):
        await ours("CreatePolicyVersion", PolicyArn=arn, PolicyDocument=policy("s3:*"))
    await ours.refused("LimitExceeded", "CreatePolicyVersion", PolicyArn=arn, PolicyDocument=policy("s3:*"))
    listed = (await ours("ListPolicyVersions", PolicyArn=arn))["Versions"]
    assert [(one["VersionId"], one["IsDefaultVersion"]) for one in listed] == [
        ("v1", False), ("v3", True), ("v4", False), ("v5", False), ("v6", False)]  # fmt: skip
    await ours("DetachUserPolicy", UserName="ann", PolicyArn=arn)
    await ours.refused("DeleteConflict", "DeletePolicy", PolicyArn=arn)


async def test_lists_by_scope_attachment_and_path(ours: Caller, theirs: Caller) -> None:
    await ours.user("ann")
    one, _ = await _make(ours, "one", "s3:*"), await _make(ours, "two", "s3:*")
    await theirs("CreatePolicy", PolicyName="theirs", PolicyDocument=policy("s3:*"))
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=one)

    async def names(**parameters: str) -> set[str]:
        return {found["PolicyName"] for found in (await ours("ListPolicies", **parameters))["Policies"]}

    assert await names(Scope="Local") == {"one", "two"}
    assert await names(Scope="Local", OnlyAttached="true") == {"one"}
    assert await names(Scope="AWS") == {found.name for found in MANAGED.values()}
    assert await names() == {"one", "two"} | {found.name for found in MANAGED.values()}
    assert await names(Scope="Local", PathPrefix="/x/") == set()


@pytest.mark.parametrize("kind", ["of AWS", "of another account", "missing"])
async def test_what_cannot_be_changed_or_attached(ours: Caller, theirs: Caller, kind: str) -> None:
    await ours.user("ann")
    arn = {"of AWS": FULL, "missing": f"arn:aws:iam::{ours.number}:policy/none"}.get(kind)
    if arn is None:
        arn = await _make(theirs, "theirs", "s3:*")
    for action in ("DeletePolicy", "CreatePolicyVersion", "SetDefaultPolicyVersion"):
        more = {
            "CreatePolicyVersion": {"PolicyDocument": policy("s3:*")},
            "SetDefaultPolicyVersion": {"VersionId": "v1"},
        }
        await ours.refused("NoSuchEntity", action, PolicyArn=arn, **more.get(action, {}))
    if kind != "of AWS":
        await ours.refused("NoSuchEntity", "AttachUserPolicy", UserName="ann", PolicyArn=arn)


async def test_limits(ours: Caller) -> None:
    await ours.user("ann")
    for number in range(9):
        await ours("AttachUserPolicy", UserName="ann", PolicyArn=await _make(ours, f"p{number}", "s3:*"))
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=FULL)
    eleventh = await _make(ours, "p11", "s3:*")
    await ours.refused("LimitExceeded", "AttachUserPolicy", UserName="ann", PolicyArn=eleventh)
    other = FULL.replace("Full", "ReadOnly")
    await ours.refused("LimitExceeded", "AttachUserPolicy", UserName="ann", PolicyArn=other)
    long = policy("s3:GetObject", resource=[f"arn:aws:s3:::{number:0100}" for number in range(60)])
    await ours.refused("LimitExceeded", "CreatePolicy", PolicyName="long", PolicyDocument=long)
    await ours.refused("MalformedPolicyDocument", "CreatePolicy", PolicyName="x", PolicyDocument="{}")


async def test_a_user_needs_the_right_on_the_policy(ours: Caller) -> None:
    arn = await _make(ours, "p", "s3:*")
    ann = await ours.user("ann", policy("iam:GetPolicy", resource=arn))
    assert (await ann("GetPolicy", PolicyArn=arn))["Policy"]["Arn"] == arn
    await ann.refused("AccessDenied", "GetPolicy", PolicyArn=await _make(ours, "q", "s3:*"))
    await ann.refused("AccessDenied", "DeletePolicy", PolicyArn=arn)
    await ann.refused("AccessDenied", "CreatePolicy", PolicyName="own", PolicyDocument=policy("*"))


async def test_a_long_text_is_stored_without_the_white_space_between_its_words(ours: Caller) -> None:
    spaced = policy("s3:GetObject", resource='arn:aws:s3:::b/a \\"  b', Sid="a").replace(" ", "  ")
    made = await ours("CreatePolicy", PolicyName="short", PolicyDocument=spaced)
    version = {"PolicyArn": made["Policy"]["Arn"], "VersionId": "v1"}
    assert (await ours("GetPolicyVersion", **version))["PolicyVersion"]["Document"] == spaced
    await ours("CreatePolicyVersion", PolicyArn=version["PolicyArn"], PolicyDocument=spaced + " \n" * 30_000)
    stored = (await ours("GetPolicyVersion", **version | {"VersionId": "v2"}))["PolicyVersion"]["Document"]
    assert len(stored) < len(spaced)
    assert json.loads(stored) == json.loads(spaced)
    inside = policy("s3:GetObject", resource="arn:aws:s3:::b/" + " " * MAX_STORED)
    await ours.refused("LimitExceeded", "CreatePolicy", PolicyName="long", PolicyDocument=inside)


async def test_a_list_reads_its_page_alone(ours: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    own = [f"p{number}" for number in range(5)]
    for name in own:
        arn = await _make(ours, name, "s3:*")
    await ours.user("ann")
    await ours("AttachUserPolicy", UserName="ann", PolicyArn=arn)
    read, limits = ours.index.identities_of, []

    async def identities_of(*arguments: Any) -> Any:
        limits.append(arguments[-1])
        return await read(*arguments)

    monkeypatch.setattr(ours.index, "identities_of", identities_of)
    expected = own + [MANAGED[arn].name for arn in sorted(MANAGED)]
    found: list[str] = []
    marker: dict[str, str] = {}
    for _ in expected:
        told = await ours("ListPolicies", MaxItems="1", **marker)
        found += [one["PolicyName"] for one in told["Policies"]]
        marker = {"Marker": told.get("Marker", "")}
    assert (found, told["IsTruncated"]) == (expected, False)
    assert set(limits) == {2}
    monkeypatch.setattr(managed_policies, "PAGE", 2)
    attached = await ours("ListPolicies", OnlyAttached="true", MaxItems="1")
    assert ([one["PolicyName"] for one in attached["Policies"]], attached["IsTruncated"]) == (["p4"], False)
