"""Policies keep whom they name by unique ids: who is made anew under an old name is somebody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.access.iam.service import STS
from sluice_s3.app.access.policy import parse
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.access.policy_principals import bind_principals, unbind_principals
from sluice_s3.app.index.buckets.rows import Bucket
from tests.unit.access.iam.conftest import OURS, Caller, policy, trusting


def to(*names: str, kind: str = "AWS", field: str = "Principal") -> str:
    """The policy of a bucket that names these."""
    statement = {"Effect": "Deny", field: {kind: list(names)}, "Action": "s3:*", "Resource": "arn:aws:s3:::b"}
    return json.dumps({"Version": "2012-10-17", "Id": "\u00e9", "Statement": statement})


def names_in(text: str, field: str = "Principal") -> Any:
    return json.loads(text)["Statement"][field]["AWS"]


async def arns(ours: Caller) -> tuple[str, str, str, str]:
    """A user, a role and a session of it, and the account."""
    user = (await ours("CreateUser", UserName="ann", Path="/x/"))["User"]
    role = (await ours("CreateRole", RoleName="reader", AssumeRolePolicyDocument=trusting(OURS)))["Role"]
    session = f"arn:aws:sts::{ours.number}:assumed-role/reader/one"
    return user["Arn"], role["Arn"], session, f"arn:aws:iam::{ours.number}:root"


@pytest.mark.parametrize("field", ["Principal", "NotPrincipal"])
async def test_names_are_kept_as_ids_and_shown_as_arns(ours: Caller, field: str) -> None:
    named = [*await arns(ours), "*", ours.number]
    kept = await bind_principals(ours.index, to(*named, field=field))
    ids = names_in(kept, field)
    assert ids[0] == (await ours("GetUser", UserName="ann"))["User"]["UserId"]
    assert ids[1] == (await ours("GetRole", RoleName="reader"))["Role"]["RoleId"]
    assert ids[2] == ids[1] + ":one"
    assert ids[3:] == named[3:]
    again = await unbind_principals(ours.index, kept)
    assert names_in(again, field) == named
    assert json.loads(again)["Id"] == "\u00e9"
    assert await bind_principals(ours.index, again) == kept
    assert await bind_principals(ours.index, kept) == kept, "ids may be named too"


async def test_a_text_without_names_stays_as_it_is(ours: Caller) -> None:
    text = to(OURS, "*").replace(",", ", \n")
    assert await bind_principals(ours.index, text) == text
    assert await unbind_principals(ours.index, text) == text


async def test_a_text_with_names_is_shown_as_it_was_put(ours: Caller) -> None:
    user, role, session, _ = await arns(ours)
    text = r""" {"Id": "USER \"{[é\u00e9\\", "Statement" :{
      "Sid": "USER", "Action":"s3:List*", "Resource":["arn:aws:s3:::b"],"Principal": { "AWS"
      : [ "USER" , "ROLE","*", "SESSION" ], "Service": "USER"}, "Effect":"Deny",
      "Condition":{"NumericLessThan":{"s3:max-keys" :[1E3, 2.50, 30]}, "StringLike": {"aws:x": {"AWS": "USER"}}}
    } } """
    for sign, name in (("USER", user), ("ROLE", role), ("SESSION", r"\u0061" + session[1:])):
        text = text.replace(sign, name)
    kept = await bind_principals(ours.index, text)
    named = names_in(kept)
    assert [name[:4] for name in named] == ["AIDA", "AROA", "*", "AROA"]
    assert kept.count(user) == 4, "elsewhere it is no principal"
    assert await unbind_principals(ours.index, kept) == text.replace(r"\u0061", "a")


@pytest.mark.parametrize("long", [20_460, 20_476, 20_480])
async def test_the_longest_policies_are_read_again(ours: Caller, long: int) -> None:
    user = (await arns(ours))[0]
    say = {"Sid": "", "Effect": "Allow", "Principal": {"AWS": user}, "Action": "s3:GetObject"}
    say["Resource"] = "arn:aws:s3:::b/*"
    say["Sid"] = "a" * (long - len(json.dumps({"Statement": say}, separators=(",", ":"))))
    text = json.dumps({"Statement": say}, separators=(",", ":"))
    assert len(text) == long
    parse(text.encode(), "b")
    kept = await bind_principals(ours.index, text)
    assert not access_of(Bucket(1, "b", OURS, "us-east-1", 0, settings=json.dumps({"policy": kept}))).closed
    assert await unbind_principals(ours.index, kept) == text


async def test_a_longer_name_makes_a_policy_too_long_to_put_but_not_to_read(ours: Caller) -> None:
    kept = await bind_principals(ours.index, to((await arns(ours))[0]))
    kept = kept.replace('"Id": "', '"Id": "' + "a" * 30_000)
    settings = json.dumps({"policy": kept})
    assert not access_of(Bucket(1, "b", OURS, "us-east-1", 0, settings=settings)).closed
    assert len(await unbind_principals(ours.index, kept)) > 30_000


async def test_a_text_that_cannot_be_read_is_shown_as_it_is(ours: Caller) -> None:
    for text in ('"AIDA', "}]AIDA{", '{"Statement": {"Principal": {"AWS": "AIDA\\x"}}}', '"AIDA": 1', "AIDA"):
        assert await unbind_principals(ours.index, text) == text


async def test_who_is_gone_is_shown_by_the_id_and_nobody_has_it_again(ours: Caller) -> None:
    kept = await bind_principals(ours.index, to(*await arns(ours)))
    await ours("DeleteUser", UserName="ann")
    await ours("DeleteRole", RoleName="reader")
    assert await unbind_principals(ours.index, kept) == kept
    await arns(ours)
    assert await unbind_principals(ours.index, kept) == kept
    with pytest.raises(UnknownPrincipal):
        await bind_principals(ours.index, kept)


async def test_a_renamed_user_keeps_what_he_has(ours: Caller) -> None:
    kept = await bind_principals(ours.index, to((await arns(ours))[0]))
    await ours("UpdateUser", UserName="ann", NewUserName="anna", NewPath="/y/")
    assert names_in(await unbind_principals(ours.index, kept)) == [f"arn:aws:iam::{ours.number}:user/y/anna"]


@pytest.mark.parametrize(
    "name",
    [
        "arn:aws:iam::111111111111:user/nobody",
        "arn:aws:iam::111111111111:user/ann",
        "arn:aws:iam::111111111111:user/x/Ann",
        "arn:aws:iam::222222222222:user/x/ann",
        "arn:aws:iam::111111111111:role/ann",
        "arn:aws:iam::111111111111:role/x/reader",
        "arn:aws:sts::111111111111:assumed-role/none/one",
        "arn:aws:sts::222222222222:assumed-role/reader/one",
        "AIDA" + "A" * 17,
        "AROA" + "A" * 17 + ":one",
        "222222222222",
        "arn:aws:iam::222222222222:root",
    ],
)
async def test_nobody(ours: Caller, name: str) -> None:
    await arns(ours)
    for field in ("Principal", "NotPrincipal"):
        with pytest.raises(UnknownPrincipal, match=r"^Invalid principal in policy$") as error:
            await bind_principals(ours.index, to(OURS, name, field=field), OURS)
        assert (error.value.kind, error.value.name) == ("AWS", name)


async def test_canonical_ids(ours: Caller, theirs: Caller) -> None:
    text = to(theirs.account_id, OURS, kind="CanonicalUser")
    assert await bind_principals(ours.index, text, OURS) == text
    with pytest.raises(UnknownPrincipal):
        await bind_principals(ours.index, to("c" * 64, kind="CanonicalUser"), OURS)


async def test_accounts_by_number(ours: Caller, theirs: Caller) -> None:
    text = to(theirs.number, f"arn:aws:iam::{theirs.number}:root")
    assert await bind_principals(ours.index, text) == text


async def test_a_trust_is_shown_as_it_was_put_and_holds(ours: Caller) -> None:
    ann = await ours.user("ann", policy("sts:AssumeRole"))
    bob = await ours.user("bob", policy("sts:AssumeRole"))
    arn = (await ours("GetUser", UserName="ann"))["User"]["Arn"]
    trust = '{ "Statement":{"Effect":"Allow","Principal":{"AWS":"ARN"},"Action":"sts:AssumeRole",'
    trust = trust.replace("ARN", arn) + '"Condition":{"DateLessThan":{"aws:EpochTime":9000000000}}}}'
    made = (await ours("CreateRole", RoleName="r", AssumeRolePolicyDocument=trust))["Role"]
    found = (await ours("GetRole", RoleName="r"))["Role"]
    assert made["AssumeRolePolicyDocument"] == found["AssumeRolePolicyDocument"] == trust
    ann.given = bob.given = {"aws:epochtime": "5"}
    await ann.sts("AssumeRole", RoleArn=made["Arn"], RoleSessionName="one")
    await bob.refused("AccessDenied", "AssumeRole", STS, RoleArn=made["Arn"], RoleSessionName="one")


async def test_a_trust_shows_who_is_gone(ours: Caller) -> None:
    user = (await ours("CreateUser", UserName="ann"))["User"]
    trust = trusting(user["Arn"])
    made = (await ours("CreateRole", RoleName="r", AssumeRolePolicyDocument=trust))["Role"]
    assert names_in(made["AssumeRolePolicyDocument"]) == [user["Arn"]]
    await ours("DeleteUser", UserName="ann")
    await ours("CreateUser", UserName="ann")
    for role in (
        (await ours("GetRole", RoleName="r"))["Role"],
        (await ours("ListRoles"))["Roles"][0],
        (await ours("UpdateRoleDescription", RoleName="r", Description="x"))["Role"],
    ):
        assert names_in(role["AssumeRolePolicyDocument"]) == [user["UserId"]]
