"""Temporary keys, and who gets them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.iam.generate import now
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.access.iam.conftest import ANYBODY, Caller, policy, trusting

ASSUME = policy("sts:AssumeRole")


async def role(account: Caller, *documents: str, trust: str = ANYBODY, name: str = "reader", **more: str) -> str:
    """Make a role; returns its ARN."""
    made = await account("CreateRole", RoleName=name, AssumeRolePolicyDocument=trust, **more)
    for number, document in enumerate(documents):
        await account("PutRolePolicy", RoleName=name, PolicyName=f"p{number}", PolicyDocument=document)
    return str(made["Role"]["Arn"])


async def assume(who: Caller, arn: str, **more: str) -> dict[str, Any]:
    return await who.sts("AssumeRole", RoleArn=arn, RoleSessionName="one", **more)


async def session_of(who: Caller, arn: str, account: Caller, **more: str) -> Caller:
    """Assume a role of an account; returns who calls as it."""
    made = await assume(who, arn, **more)
    return Caller(who.index, account.account_id, made["Credentials"]["AccessKeyId"])


async def denied(who: Caller, arn: str, **more: str) -> None:
    await who.refused("AccessDenied", "AssumeRole", "sts", RoleArn=arn, RoleSessionName="one", **more)


async def test_a_role_of_the_own_account(ours: Caller) -> None:
    ann = await ours.user("ann")
    arn = await role(ours, trust=trusting(f"arn:aws:iam::{ours.number}:user/ann"))
    made = await assume(ann, arn)
    assert made["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ours.number}:assumed-role/reader/one"
    key = await ours.index.access_key(made["Credentials"]["AccessKeyId"])
    assert key is not None
    assert (key.secret, key.token) == (made["Credentials"]["SecretAccessKey"], made["Credentials"]["SessionToken"])
    bob = await ours.user("bob", ASSUME)
    await denied(bob, arn)


async def test_what_is_left_to_the_account_needs_its_policy(ours: Caller) -> None:
    arn = await role(ours, trust=trusting(ours.number))
    await denied(await ours.user("ann"), arn)
    await assume(await ours.user("bob", ASSUME), arn)
    await denied(await ours.user("cid", ASSUME, policy("sts:*", effect="Deny")), arn)
    await denied(await ours.user("dan", policy("sts:AssumeRole", resource=arn + "x")), arn)


async def test_a_role_of_another_account_needs_both(ours: Caller, theirs: Caller) -> None:
    ann, bob = await ours.user("ann"), await ours.user("bob", ASSUME)
    arn = await role(
        theirs, trust=trusting(f"arn:aws:iam::{ours.number}:user/ann", f"arn:aws:iam::{ours.number}:user/bob")
    )
    await denied(ann, arn)
    there = await session_of(bob, arn, theirs)
    assert (await there.sts("GetCallerIdentity"))["Account"] == theirs.number
    other = await role(theirs, trust=trusting(theirs.number), name="other")
    await denied(bob, other)
    await denied(bob, f"arn:aws:iam::{theirs.number}:role/none")


async def test_a_user_made_anew_is_not_the_one_that_is_trusted(ours: Caller) -> None:
    ann = await ours.user("ann")
    arn = await role(ours, trust=trusting(f"arn:aws:iam::{ours.number}:user/ann"))
    await assume(ann, arn)
    await ours("DeleteAccessKey", UserName="ann", AccessKeyId=ann.key)
    await ours("DeleteUser", UserName="ann")
    await denied(await ours.user("ann"), arn)


async def test_whom_a_trust_spares(ours: Caller) -> None:
    ann, bob = await ours.user("ann"), await ours.user("bob")
    arns = [f"arn:aws:iam::{ours.number}:{name}" for name in ("user/ann", "root")]
    trust = json.loads(trusting(arns[0], f"arn:aws:iam::{ours.number}:user/bob"))
    deny = {"Effect": "Deny", "NotPrincipal": {"AWS": arns}, "Action": "sts:AssumeRole"}
    arn = await role(ours, trust=json.dumps(trust | {"Statement": [trust["Statement"], deny]}))
    await assume(ann, arn)
    await denied(bob, arn)


async def test_the_account_itself_assumes_no_role(ours: Caller) -> None:
    await denied(ours, await role(ours))


async def test_conditions_of_trust(ours: Caller) -> None:
    ann = await ours.user("ann", ASSUME)
    external = {"StringEquals": {"sts:ExternalId": "secret", "sts:RoleSessionName": "one"}}
    arn = await role(ours, trust=trusting(ours.number, Condition=external))
    await denied(ann, arn)
    await denied(ann, arn, ExternalId="other")
    await assume(ann, arn, ExternalId="secret")


async def test_the_account_of_a_role(ours: Caller, theirs: Caller) -> None:
    arn = await role(ours, trust=trusting(theirs.number))
    for account, call in ((theirs, denied), (ours, assume)):
        bound = {"StringEquals": {"aws:ResourceAccount": account.number}}
        await call(await theirs.user(f"of-{account.number}", policy("sts:*", Condition=bound)), arn)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("RoleArn", ""),
        ("RoleSessionName", ""),
        ("RoleSessionName", "x"),
        ("RoleSessionName", "a b"),
        ("DurationSeconds", "899"),
        ("DurationSeconds", "43201"),
        ("DurationSeconds", "3601"),
        ("PolicyArns.member.1.arn", "arn:aws:iam::aws:policy/none"),
    ],
)
async def test_parameters_that_are_none(ours: Caller, field: str, value: str) -> None:
    ann = await ours.user("ann")
    given = {"RoleArn": await role(ours), "RoleSessionName": "one", field.replace(".", "__"): value}
    await ann.refused("ValidationError", "AssumeRole", "sts", **given)


@pytest.mark.parametrize(
    "name",
    [
        "PolicyArns",
        "PolicyArns.1.arn",
        "PolicyArns.member.1",
        "PolicyArns.member.1.Arn",
        "PolicyArns.member.2.arn",
        "PolicyArns.member.01.arn",
        "PolicyArns.member.0.arn",
        "PolicyArns.",
        "Policy.member.1",
        "RoleArn.1",
        "RoleArn.",
        "Version.1",
    ],
)
async def test_no_limit_of_a_session_is_passed_over(ours: Caller, name: str) -> None:
    ann = await ours.user("ann")
    given = {"RoleArn": await role(ours), "RoleSessionName": "one"}
    given[name.replace(".", "__")] = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
    await ann.refused("MalformedInput", "AssumeRole", "sts", **given)


async def test_how_many_policies_a_session_has(ours: Caller) -> None:
    ann, arn = await ours.user("ann"), await role(ours)
    many = {f"PolicyArns__member__{n}__arn": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess" for n in range(1, 12)}
    await ann.refused("ValidationError", "AssumeRole", "sts", RoleArn=arn, RoleSessionName="one", **many)
    del many["PolicyArns__member__11__arn"]
    await assume(ann, arn, **many)


async def test_an_empty_list_of_limits(ours: Caller) -> None:
    await assume(await ours.user("ann"), await role(ours), PolicyArns="")


async def test_session_policies_limit_and_never_add(ours: Caller) -> None:
    ann = await ours.user("ann")
    arn = await role(ours, policy("iam:Get*", "iam:List*"))
    limited = await session_of(ann, arn, ours, Policy=policy("iam:GetUser", "iam:CreateUser"))
    await limited("GetUser", UserName="ann")
    await limited.refused("AccessDenied", "ListUsers")
    await limited.refused("AccessDenied", "CreateUser", UserName="bob")
    denying = await session_of(ann, arn, ours, Policy=policy("iam:*").replace('"Allow"', '"Deny"'))
    await denying.refused("AccessDenied", "GetUser", UserName="ann")
    managed = {"PolicyArns__member__1__arn": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
    await (await session_of(ann, arn, ours, **managed)).refused("AccessDenied", "GetUser", UserName="ann")
    text = policy("s3:Get*", resource="arn:aws:s3:::" + "x" * 2048)
    await ann.refused("ValidationError", "AssumeRole", "sts", RoleArn=arn, RoleSessionName="one", Policy=text)
    await ann.refused("MalformedPolicyDocument", "AssumeRole", "sts", RoleArn=arn, RoleSessionName="one", Policy="{}")


async def test_a_session_ends_with_its_role_and_its_rights(ours: Caller, index: SqliteIndex) -> None:
    ann = await ours.user("ann")
    arn = await role(ours, policy("iam:Get*"))
    there = await session_of(ann, arn, ours)
    await there("GetUser", UserName="ann")
    await ours("DeleteRolePolicy", RoleName="reader", PolicyName="p0")
    await there.refused("AccessDenied", "GetUser", UserName="ann")
    await ours("DeleteRole", RoleName="reader")
    assert await index.access_key(there.key) is None


async def test_a_role_that_assumes_a_role(ours: Caller) -> None:
    ann = await ours.user("ann")
    first = await role(ours, ASSUME, MaxSessionDuration="7200")
    second = await role(ours, trust=trusting(first), name="second", MaxSessionDuration="7200")
    await denied(ann, second)
    there = await session_of(ann, first, ours, DurationSeconds="7200")
    await assume(there, second)
    long = {"RoleArn": second, "RoleSessionName": "one", "DurationSeconds": "7200"}
    await there.refused("ValidationError", "AssumeRole", "sts", **long)


async def test_session_tokens(ours: Caller, index: SqliteIndex) -> None:
    made = (await ours.sts("GetSessionToken"))["Credentials"]
    found = await index.access_key(made["AccessKeyId"])
    assert found is not None
    assert found.holder is not None
    assert build_principal(found.holder).policies is None
    root = Caller(index, ours.account_id, made["AccessKeyId"])
    assert (await root.sts("GetCallerIdentity"))["Arn"].endswith(":root")
    await root.refused("AccessDenied", "GetSessionToken", "sts")
    await root.refused("AccessDenied", "AssumeRole", "sts", RoleArn=await role(ours), RoleSessionName="one")
    await root.refused("InvalidClientTokenId", "ListUsers")
    for seconds in ("899", "3601"):
        await ours.refused("ValidationError", "GetSessionToken", "sts", DurationSeconds=seconds)
    ann = await ours.user("ann", policy("iam:GetUser"))
    made = (await ann.sts("GetSessionToken", DurationSeconds="129600"))["Credentials"]
    session = Caller(index, ours.account_id, made["AccessKeyId"])
    assert (await session.sts("GetCallerIdentity"))["Arn"] == f"arn:aws:iam::{ours.number}:user/ann"
    await ann("GetUser", UserName="ann")
    await session.refused("InvalidClientTokenId", "GetUser", UserName="ann")
    await session.refused("AccessDenied", "GetSessionToken", "sts")
    await assume(session, await role(ours, name="other"))
    bob = await ours.user("bob", policy("sts:*", effect="Deny"))
    await bob.refused("AccessDenied", "GetSessionToken", "sts")
    assert (await bob.sts("GetCallerIdentity"))["Account"] == ours.number


async def test_sessions_are_bounded(ours: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.access.iam.sts.MAX_SESSIONS", 2)
    ann, bob, arn = await ours.user("ann"), await ours.user("bob"), await role(ours)
    moment = now()
    for who, more in ((ann, {"DurationSeconds": "900"}), (ann, {}), (ours, {}), (ours, {})):
        await who.sts("GetSessionToken", **more)
    for who in (ann, ours):
        await who.refused("LimitExceeded", "GetSessionToken", "sts")
    await bob.sts("GetSessionToken")  # others have theirs
    await assume(ann, arn)
    monkeypatch.setattr("sluice_s3.app.access.iam.generate.now", lambda: moment + 1_000_000)
    await ann.sts("GetSessionToken")  # one has ended
    await ann.refused("LimitExceeded", "GetSessionToken", "sts")


async def test_what_cannot_be_read_allows_nothing(ours: Caller, index: SqliteIndex) -> None:
    ann = await ours.user("ann", policy("iam:*"))
    await ann("GetUser")
    await index.change_identity(
        ours.account_id, "user", "ann", lambda user: user._replace(document='{"policies":{"p":"{"}}')
    )
    await ann.refused("AccessDenied", "GetUser")
    await index.change_identity(
        ours.account_id, "user", "ann", lambda user: user._replace(document='{"attached":["arn:x"]}')
    )
    await ann.refused("AccessDenied", "GetUser")
