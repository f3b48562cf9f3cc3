"""What users and sessions may do with IAM itself, where AWS asks for more than the right on what is named."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.iam.rows import KEY, Use
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.access.iam.conftest import ANYBODY, OURS, Caller, policy

ADMIN, READ = (f"arn:aws:iam::aws:policy/{name}" for name in ("AdministratorAccess", "AmazonS3ReadOnlyAccess"))


@pytest.mark.parametrize("kind", ["User", "Group", "Role"])
async def test_which_policy_may_be_attached(ours: Caller, kind: str) -> None:
    names = {f"{kind}Name": "one"}
    await ours(f"Create{kind}", **names, **({"AssumeRolePolicyDocument": ANYBODY} if kind == "Role" else {}))
    attach, detach = f"Attach{kind}Policy", f"Detach{kind}Policy"
    rights = [f"iam:{attach}", f"iam:{detach}"]
    but = await ours.user("but", policy(*rights, Condition={"ArnNotEquals": {"iam:PolicyARN": ADMIN}}))
    deny = policy("iam:*", effect="Deny", Condition={"ArnEquals": {"iam:PolicyARN": ADMIN}})
    denied = await ours.user("denied", policy(*rights), deny)
    only = await ours.user("only", policy(*rights, Condition={"ArnEquals": {"iam:PolicyARN": READ}}))
    await ours(attach, **names, PolicyArn=ADMIN)
    for user in (but, denied, only):
        for action in (attach, detach):
            await user.refused("AccessDenied", action, **names, PolicyArn=ADMIN)
        await user(attach, **names, PolicyArn=READ)
        await user(detach, **names, PolicyArn=READ)


@pytest.mark.parametrize("kind", ["User", "Group"])
async def test_who_renames_needs_the_right_to_the_new_name_too(ours: Caller, kind: str) -> None:
    one, action, new = {f"{kind}Name": "one"}, f"Update{kind}", f"New{kind}Name"
    await ours(f"Create{kind}", **one, Path="/dev/")
    dev = await ours.user("dev", policy(f"iam:{action}", resource=f"arn:aws:iam::*:{kind.lower()}/dev/*"))
    for change in ({new: "boss", "NewPath": "/admin/"}, {"NewPath": "/"}):
        told = await dev.refused("AccessDenied", action, **one, **change)
        assert change["NewPath"] in told
    assert (await ours(f"Get{kind}", **one))[kind]["Path"] == "/dev/"
    await dev(action, **one, **{new: "two", "NewPath": "/dev/sub/"})
    assert (await ours(f"Get{kind}", **{f"{kind}Name": "two"}))[kind]["Path"] == "/dev/sub/"


async def test_last_use_of_a_key_needs_a_permission_on_its_user(index: SqliteIndex, ours: Caller) -> None:
    """A key's owner is looked up first, and a key that is not of the account says nothing to those without it."""
    who = f"arn:aws:iam::{ours.number}:user/"
    ann = await ours.user("ann", policy("iam:GetAccessKeyLastUsed", resource=f"{who}ann"))
    bob = await ours.user("bob")
    await index.record_uses([Use(KEY, ann.key, OURS, 1000, "s3", "r")], 1000)
    assert (await ann("GetAccessKeyLastUsed", AccessKeyId=ann.key))["AccessKeyLastUsed"] == {
        "LastUsedDate": "1970-01-01T00:00:01Z",
        "ServiceName": "s3",
        "Region": "r",
    }
    for caller, key in ((ann, bob.key), (bob, ann.key), (ann, "OURKEY"), (ann, "THEIRKEY"), (bob, "AKIANOTHERE234567")):
        await caller.refused("AccessDenied", "GetAccessKeyLastUsed", AccessKeyId=key)
