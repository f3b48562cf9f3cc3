"""IAM as the caller, users with their keys, accounts, and keys that need attention."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice_s3.app.access.key_uses import FLUSH_SECONDS
from sluice_s3.app.admin.people.idle_keys import DAY_MS, keys_needing_attention
from sluice_s3.app.admin.people.parameters import MAX_FIELDS
from sluice_s3.app.index.audit.rows import AuditFilter
from sluice_s3.app.index.iam.rows import IDENTITY, KEY, Account, Use
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT, make_settings
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Console]:
    async with console(settings) as made:
        yield made


async def call(browser: httpx.AsyncClient, action: str, **parameters: Any) -> tuple[int, dict[str, Any]]:
    answer = await browser.post("/api/v1/iam", json={"action": action, "parameters": parameters})
    return answer.status_code, answer.json()


def policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


async def test_life_of_a_user(site: Console, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    root = await site.sign_in()
    assert (await call(root, "CreateUser", UserName="ann"))[1]["User"]["UserName"] == "ann"
    status, made = await call(root, "CreateAccessKey", UserName="ann")
    secret = made["AccessKey"]["SecretAccessKey"]
    assert (status, len(secret)) == (200, 40)
    listed = await call(root, "ListAccessKeys", UserName="ann", MaxItems=1)
    assert listed[1]["AccessKeyMetadata"][0]["AccessKeyId"] == made["AccessKey"]["AccessKeyId"]
    assert listed[1]["IsTruncated"] is False
    assert secret not in json.dumps(listed)
    status, refused = await call(root, "CreateUser", UserName="ANN")
    assert (status, refused) == (409, {"detail": "User with name ANN already exists.", "code": "EntityAlreadyExists"})
    assert (await call(root, "DeleteUser", UserName="ann"))[0] == 409
    assert (await call(root, "GetUser", UserName="bob"))[0] == 404
    assert (await call(root, "Nothing"))[0] == (await call(root, "CreateUser", UserName="b", Tags=[]))[0] == 501
    assert secret not in caplog.text


async def test_a_user_may_what_its_policies_allow(site: Console) -> None:
    await site.iam("CreateUser", UserName="bob")
    browser = await site.sign_in(*await site.user("ann", "iam:ListUsers", "iam:GetUser"))
    assert [user["UserName"] for user in (await call(browser, "ListUsers"))[1]["Users"]] == ["ann", "bob"]
    status, refused = await call(browser, "CreateAccessKey", UserName="bob")
    assert (status, refused["code"]) == (403, "AccessDenied")
    assert "is not authorized to perform: iam:CreateAccessKey" in refused["detail"]
    assert (await call(browser, "GetCallerIdentity"))[1]["Arn"].endswith(":user/ann")
    no_token = await browser.post("/api/v1/iam", json={"action": "ListUsers"}, headers={"x-sluice-csrf": "x" * 64})
    assert no_token.status_code == 403
    assert (await site.browser().post("/api/v1/iam", json={"action": "ListUsers"})).status_code == 401


async def test_conditions_hold(site: Console) -> None:
    """A policy for one address, or one region, is no more here than on the S3 endpoint."""
    for name, condition, status in (
        ("far", {"IpAddress": {"aws:SourceIp": "198.51.100.0/24"}}, 403),
        ("near", {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, 200),
        ("there", {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}, 403),
        ("here", {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}, 200),
    ):
        browser = await site.sign_in(*await site.user(name, "iam:ListUsers", Condition=condition))
        assert (await call(browser, "ListUsers"))[0] == status, name


async def test_temporary_credentials_and_lists(site: Console) -> None:
    """Lists are lists: a session policy that could not be read must not be skipped."""
    root = await site.sign_in()
    trust = json.dumps({"Version": "2012-10-17", "Statement": TRUST})
    _, role = await call(root, "CreateRole", RoleName="reader", AssumeRolePolicyDocument=trust)
    arn = role["Role"]["Arn"]
    browser = await site.sign_in(*await site.user("ann", "sts:AssumeRole"))
    limited = {"PolicyArns": [{"arn": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}]}
    status, given = await call(
        browser, "AssumeRole", RoleArn=arn, RoleSessionName="one", DurationSeconds=900, **limited
    )
    assert status == 200
    key = await site.index.access_key(given["Credentials"]["AccessKeyId"])
    assert key is not None
    assert key.holder is not None
    assert "s3:Get*" in key.holder.policies
    for wrong in ({"PolicyArns": "x"}, {"PolicyArns": [{"arm": "x"}]}, {"Policy": {"Version": 1}}):
        status, refused = await call(browser, "AssumeRole", RoleArn=arn, RoleSessionName="one", **wrong)
        assert status == 400, wrong
        assert "Credentials" not in refused
    assert (await call(browser, "GetSessionToken"))[0] == 200


async def test_bad_parameters(site: Console) -> None:
    root = await site.sign_in()
    for parameters in (
        {"PathPrefix": ["/"] * (MAX_FIELDS + 1)},
        {"PathPrefix": [[[[[["/"]]]]]]},
        {"PathPrefix": {"a": "b"}},
        {"MaxItems": 1.5},
        {"MaxItems": True},
        {"PathPrefix.member.1": "/a/", "PathPrefix": ["/b/"]},
    ):
        answer = await root.post("/api/v1/iam", json={"action": "ListUsers", "parameters": parameters})
        assert (answer.status_code, sorted(answer.json())) == (400, ["code", "detail"])
    for wrong in ({}, {"action": ""}, {"action": "ListUsers", "parameters": []}, {"action": "A" * 65}):
        assert (await root.post("/api/v1/iam", json=wrong)).status_code == 422


async def test_pages_of_users_with_their_keys(site: Console) -> None:
    root = await site.sign_in()
    keys = {name: (await site.user(name))[0] for name in ("ann", "Bob", "cid")}
    first = await site.app.state.sessions.first_account()
    cid = await site.index.identity(first, "user", "cid")
    assert cid is not None
    now = now_ms()
    uses = [Use(KEY, keys["ann"], first, now, "s3", "r"), Use(IDENTITY, cid.id, first, now + 5, "s3", "r")]
    await site.index.record_uses(uses, now)
    one = (await root.get("/api/v1/people/users", params={"limit": 2})).json()
    assert [user["name"] for user in one["users"]] == ["ann", "Bob"]
    assert one["uses_since"] == now
    assert one["users"][0]["keys"][0] | {"created": 0} == {
        "access_key": keys["ann"],
        "active": True,
        "created": 0,
        "last_used": now,
        "service": "s3",
    }
    assert one["users"][1]["last_used"] is None
    two = (await root.get("/api/v1/people/users", params={"limit": 2, "after": one["next"]})).json()
    assert ([user["name"] for user in two["users"]], two["next"]) == (["cid"], None)
    assert two["users"][0]["last_used"] == now + 5
    limited = await site.sign_in(*await site.user("dan", "iam:ListUsers"))
    (shown, *_) = (await limited.get("/api/v1/people/users")).json()["users"]
    assert (shown["keys"], shown["last_used"]) == (None, None)
    lists = await site.sign_in(*await site.user("eve", "iam:ListUsers", "iam:ListAccessKeys"))
    (shown, *_) = (await lists.get("/api/v1/people/users")).json()["users"]
    assert (shown["keys"][0]["last_used"], shown["keys"][0]["service"]) == (None, None)
    nobody = await site.sign_in(*await site.user("fay"))
    assert (await nobody.get("/api/v1/people/users")).status_code == 403
    for wrong in ({"limit": "0"}, {"limit": "101"}, {"after": "x" * 129}):
        assert (await root.get("/api/v1/people/users", params=wrong)).status_code == 422


async def test_pages_of_accounts(site: Console) -> None:
    root = await site.sign_in()
    for number in range(3):
        await site.index.add_account(Account(f"id/{number}", f"n{number}", "", False, 5), f"KEY{number}", "secret12")
    found: list[dict[str, Any]] = []
    path: str | None = "/api/v1/accounts?limit=2"
    while path:
        answer = await root.get(path)
        found += answer.json()
        path = answer.links.get("next", {}).get("url")
    assert [one["display_name"] for one in found] == ["n0", "n1", "n2", "root"]
    assert [one["root"] for one in found] == [False] * 3 + [True]
    assert (found[0]["access_keys"], found[0]["keys"][0]["last_used"]) == (["KEY0"], None)
    first = found[3]["id"]
    await site.user("ann")
    detail = (await root.get(f"/api/v1/accounts/{first}")).json()
    assert (detail["users"], detail["buckets"], detail["root"]) == (1, 0, True)
    assert (await root.get("/api/v1/accounts/nobody")).status_code == 404
    for after in ("x", "5", ":", "5:\u00e9", "9" * 16 + ":a"):
        assert (await root.get("/api/v1/accounts", params={"after": after})).status_code == 422


async def test_accounts_need_a_permission_and_the_first_stays(site: Console) -> None:
    ann = await site.sign_in(*await site.user("ann", "iam:*"))
    viewer = await site.sign_in(*await site.user("bob", "sluice:ListAccounts"))
    for browser, status in ((ann, 403), (viewer, 200)):
        assert (await browser.get("/api/v1/accounts")).status_code == status
        first = await site.app.state.sessions.first_account()
        assert (await browser.get(f"/api/v1/accounts/{first}")).status_code == status
        assert (await browser.post("/api/v1/accounts", json={})).status_code == 403
        assert (await browser.delete("/api/v1/accounts/x")).status_code == 403
    root = await site.sign_in()
    assert (await root.patch(f"/api/v1/accounts/{first}", json={"disabled": True})).status_code == 409
    assert (await root.delete(f"/api/v1/accounts/{first}")).status_code == 409
    assert (await root.patch(f"/api/v1/accounts/{first}", json={"disabled": False})).status_code == 204


async def test_who_manages_accounts_gets_no_key_of_the_first(site: Console) -> None:
    """Its keys may do everything: whoever made one would be the first account."""
    browser = await site.sign_in(*await site.user("ann", "sluice:ManageAccounts", "sluice:ListAccounts"))
    first = await site.app.state.sessions.first_account()
    for path, body in (("", {"id": first}), (f"/{first}/iam/CreateAccessKey", {}), (f"/{first}/iam/ListUsers", {})):
        assert (await browser.post(f"/api/v1/accounts{path}", json=body)).status_code == 403
    made = await browser.post("/api/v1/accounts", json={"display_name": "other"})
    other = made.json()["id"]
    asked = await browser.post(f"/api/v1/accounts/{other}/iam/CreateUser", json={"parameters": {"UserName": "bob"}})
    assert asked.json()["User"]["UserName"] == "bob"
    more = await browser.post("/api/v1/accounts", json={"id": other})
    assert more.status_code == 201
    detail = (await browser.get(f"/api/v1/accounts/{other}")).json()
    assert (len(detail["keys"]), detail["users"]) == (2, 1)
    root = await site.sign_in()
    assert (await root.post(f"/api/v1/accounts/{first}/iam/ListUsers", json={})).status_code == 200


async def test_the_console_uses_the_key_that_signed_in(site: Console) -> None:
    assert FLUSH_SECONDS <= 60
    await site.sign_in()
    root = await site.sign_in()
    await root.get("/api/v1/session")
    await site.app.state.key_uses.flush()
    used = await site.index.last_use(KEY, ROOT.access)
    assert used is not None
    assert used.service == "console"


async def test_keys_that_need_attention(site: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    old, _ = await site.user("ann")
    await site.user("bob")
    first = await site.app.state.sessions.first_account()
    assert await keys_needing_attention(site.index) == []
    now = now_ms()
    await site.index.record_uses([Use(KEY, old, first, now, "s3", "r")], now)
    monkeypatch.setattr("sluice_s3.app.admin.people.idle_keys.now_ms", lambda: now + 91 * DAY_MS)
    found = await keys_needing_attention(site.index)
    assert {(key.user, key.reason) for key in found} == {("ann", "unused"), ("bob", "never used"), (None, "never used")}
    monkeypatch.setattr("sluice_s3.app.admin.people.idle_keys.now_ms", lambda: now + 366 * DAY_MS)
    await site.index.record_uses([Use(KEY, old, first, now + 366 * DAY_MS, "s3", "r")], now)
    found = await keys_needing_attention(site.index)
    assert [key.reason for key in found if key.user == "ann"] == ["old"]
    assert len(await keys_needing_attention(site.index, 2)) == 2


async def test_policies_are_checked_before_they_are_stored(site: Console) -> None:
    root = await site.sign_in()

    async def problem(kind: str, document: str) -> str:
        answer = await root.post("/api/v1/policy-checks", json={"kind": kind, "document": document})
        assert answer.status_code == 200
        return str(answer.json()["problem"])

    good = policy(Effect="Allow", Action="s3:GetObject", Resource="arn:aws:s3:::b/*")
    assert await problem("identity", good) == ""
    assert await problem("trust", good) != ""
    trust = policy(**TRUST)
    assert await problem("trust", trust) == ""
    assert await problem("identity", trust) != ""
    assert await problem("identity", policy(Effect="Maybe", Action="s3:*", Resource="*")) != ""
    for wrong in ("", "[]", "{", "null", "[" * 9999):
        assert await problem("identity", wrong) != "", wrong
    noted = (await site.index.audit_events(AuditFilter(action="*polic*"), None, 10)).events
    assert noted == [], "each letter that is typed would be an event"
    for body in ({"kind": "x", "document": ""}, {"kind": "trust"}, {"kind": "trust", "document": "x" * 131_073}):
        assert (await root.post("/api/v1/policy-checks", json=body)).status_code == 422


async def test_rights_of_a_caller(site: Console) -> None:
    """What policies allow on each resource, with the conditions of this request."""
    number = (await site.iam("GetUser"))["User"]["Arn"].split(":")[4]
    ann, bob = (f"arn:aws:iam::{number}:user/{name}" for name in ("ann", "bob"))
    away = {"Condition": {"IpAddress": {"aws:SourceIp": "198.51.100.0/24"}}}
    keys = await site.user("ann", "iam:*AccessKey", Resource=ann)
    far = await site.sign_in(*await site.user("far", "iam:*", **away))
    browser, root = await site.sign_in(*keys), await site.sign_in()

    async def rights(who: httpx.AsyncClient, *arns: str) -> dict[str, list[str]]:
        answer = await who.get("/api/v1/people/rights", params={"resource": arns})
        assert answer.status_code == 200
        found: dict[str, list[str]] = answer.json()["rights"]
        return found

    assert await rights(browser, ann, bob) == {ann: ["CreateAccessKey", "DeleteAccessKey", "UpdateAccessKey"], bob: []}
    assert "DeleteUser" in (await rights(root, ann))[ann]
    assert await rights(far, ann) == {ann: []}
    for wrong in ([], ["x"] * 9, [""], ["x" * 2049]):
        assert (await root.get("/api/v1/people/rights", params={"resource": wrong})).status_code == 422


async def test_lists_of_rights_have_one_budget(site: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that takes long to decide cannot hold the console for hundreds of decisions: the rest is hidden."""
    browser = await site.sign_in(*await site.user("ann", "iam:*", "sluice:*"))

    async def shown() -> tuple[int, bool]:
        rights = (await browser.get("/api/v1/people/rights", params={"resource": "arn"})).json()["rights"]
        (user,) = (await browser.get("/api/v1/people/users")).json()["users"]
        return len(rights["arn"]), user["keys"] is not None

    every, keys = await shown()
    assert (every > 50, keys) == (True, True)
    for module in ("rights", "users"):
        monkeypatch.setattr(f"sluice_s3.app.admin.people.{module}.LIST_ALLOWED", 1)
    assert await shown() == (0, False)
