"""The simulator in the admin API: who may ask about whom, drafts, and what an answer says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.admin.sessions.guard import CALLER, Caller
from sluice_s3.app.admin.simulation import routes
from sluice_s3.app.index import Index, open_index
from sluice_s3.app.index.iam.rows import GROUP, ROLE, USER, Account, Identity
from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow

ANNA, BEN = "111111111111", "222222222222"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::photos/*"}
EVERYBODY = {**READ, "Principal": "*", "Sid": "All"}


def text(*statements: dict[str, Any]) -> str:
    """A policy of these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


class Site:
    """Two accounts, a user with a group, a role, and a bucket of Anna's."""

    def __init__(self, index: Index, client: httpx.AsyncClient, app: FastAPI) -> None:
        self.index, self.client, self.app = index, client, app
        self.caller = Caller(ANNA, None, True, "", "192.0.2.9", "", ANNA)

    async def ask(self, *, status: int = 200, **question: Any) -> Any:
        """Ask the simulator."""
        found = await self.client.post("/simulation", json=question)
        assert found.status_code == status, found.text
        return found.json()

    async def sign_in(self, name: str) -> None:
        """Ask as an account, or as a user by its access key."""
        key = await self.index.access_key(name)
        if key is None:
            self.caller = Caller(name, None, False, "", "192.0.2.9", "", "")
            return
        principal = None if key.holder is None else build_principal(key.holder)
        self.caller = Caller(key.account_id, principal, False, "", "192.0.2.9", name, "")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Site]:
    index = open_index(settings, writer=True)
    app = FastAPI()
    app.state.index = index
    app.include_router(routes.router)

    async def signed_in(scope: Any, receive: Any, send: Any) -> None:
        await app(scope | {CALLER: made.caller}, receive, send)

    await index.start()
    transport = httpx.ASGITransport(signed_in)
    async with httpx.AsyncClient(transport=transport, base_url="http://admin") as client:
        made = Site(index, client, app)
        await fill(index)
        yield made
    await index.close()


async def fill(index: Index) -> None:
    """Make what a site has."""
    for account, key in ((ANNA, "AKIAANNA"), (BEN, "AKIABEN")):
        await index.add_account(Account(account, account, "", False, 0), key, "secret")
    inline = json.dumps({"policies": {"reader": text({**READ, "Sid": "Mine"})}})
    tls = {"Effect": "Deny", "Action": "s3:*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    await index.add_identity(Identity("AIDAUMA0000000000", ANNA, USER, "uma", "uma", "/", inline, 0), 10)
    await index.add_identity(Identity("AIDANIL0000000000", ANNA, USER, "nil", "nil", "/", "{}", 0), 10)
    of_group = json.dumps({"policies": {"tls": text(tls)}})
    await index.add_identity(Identity("AGPAGRP0000000000", ANNA, GROUP, "staff", "staff", "/", of_group, 0), 10)
    role = json.dumps({"attached": ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"], "trust": "{}"})
    await index.add_identity(Identity("AROAROL0000000000", ANNA, ROLE, "watch", "watch", "/", role, 0), 10)
    await index.join_group(ANNA, (USER, "uma"), (GROUP, "staff"), 10)
    await index.add_key(ANNA, "AIDANIL0000000000", "AKIANIL", "secret", 2)
    await index.create_bucket("photos", ANNA, "us-east-1", 10)
    await index.create_bucket("others", BEN, "us-east-1", 10)


def uma(kind: str = "user", name: str = "uma") -> str:
    """The ARN of a user or a role of Anna's."""
    return arn_of(Identity("", ANNA, kind, name, name, "/", "", 0))


async def test_an_answer_names_the_statement_and_why_others_do_not_apply(site: Site) -> None:
    question: dict[str, Any] = {"principal": uma(), "action": "s3:getobject", "bucket": "photos", "key": "a"}
    found = await site.ask(**question)
    assert found["decision"] == "allowed"
    (deciding,) = found["deciding"]
    assert deciding["policy"] == {"kind": "inline", "owner": uma(), "name": "reader", "draft": False}
    assert (deciding["index"], deciding["sid"], deciding["effect"]) == (0, "Mine", "Allow")
    group = next(one for one in found["policies"] if one["policy"]["kind"] == "group")
    (mismatch,) = group["statements"][0]["mismatches"]
    assert mismatch["text"] == "Bool on aws:securetransport wants false; it was true."
    assert found["conditions"] == [{"key": "aws:securetransport", "values": ["true"], "given": False}]
    found = await site.ask(**question, conditions={"aws:SecureTransport": "false"})
    assert (found["decision"], found["ground"]) == ("denied", "explicit-deny")
    assert found["deciding"][0]["policy"]["name"] == "tls"
    assert found["reason"] == "Statement 1 of the group policy tls of group/staff denies it."
    found = await site.ask(**question | {"action": "s3:DeleteObject"})
    assert (found["decision"], found["ground"]) == ("denied", "no-statement")


async def test_principals_of_every_kind(site: Site) -> None:
    question: dict[str, Any] = {"action": "s3:GetObject", "bucket": "photos", "key": "a"}
    session = f"arn:aws:sts::{ANNA}:assumed-role/watch/me"
    for principal, ground in (
        (ANNA, "owner"),
        (f"arn:aws:iam::{ANNA}:root", "owner"),
        ("AKIAANNA", "owner"),
        ("AKIANIL", "no-statement"),
        (uma(ROLE, "watch"), "statement"),
        (session, "statement"),
        (BEN, "no-statement"),
        ("*", "no-statement"),
    ):
        assert (await site.ask(principal=principal, **question))["ground"] == ground, principal
    for principal in ("AKIANOBODY", uma(USER, "none"), "arn:aws:sts::1:assumed-role/watch/me", "999999999999", "x"):
        assert "no such principal" in (await site.ask(principal=principal, status=404, **question))["detail"]


async def test_drafts_stand_for_stored_policies(site: Site) -> None:
    question: dict[str, Any] = {"principal": BEN, "action": "s3:GetObject", "bucket": "photos", "key": "a"}
    draft = {"kind": "bucket", "text": text({**READ, "Principal": {"AWS": BEN}})}
    found = await site.ask(**question, drafts=[draft])
    assert found["decision"] == "allowed"
    assert found["deciding"][0]["policy"]["draft"]
    assert found["policies"][0]["statements"][0]["statement"]["Principal"] == {"AWS": BEN}
    found = await site.ask(**question, drafts=[{"kind": "bucket", "text": text(EVERYBODY)}])
    assert found["ground"] == "public-access-block"
    assert found["notes"] == ["S3 refuses to store this policy: it is public, and BlockPublicPolicy is on."]
    assert (await site.ask(**question))["decision"] == "denied", "nothing was stored"
    deny = text({**READ, "Effect": "Deny"})
    found = await site.ask(
        **question | {"principal": uma()}, drafts=[{"kind": "inline", "name": "reader", "text": deny}]
    )
    assert (found["ground"], found["deciding"][0]["policy"]["name"]) == ("explicit-deny", "reader")
    other = text({**READ, "Action": "s3:PutObject"})
    found = await site.ask(**question | {"principal": uma()}, drafts=[{"kind": "session", "text": other}])
    assert found["ground"] == "session-policy"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"drafts": [{"kind": "bucket", "text": "{"}]}, "The draft is no valid policy: "),
    ({"drafts": [{"kind": "bucket", "text": text({**READ, "Principal": {"AWS": "123456789012"}})}]}, "Invalid pr"),
    ({"drafts": [{"kind": "inline", "text": text(EVERYBODY)}], "principal": uma()}, "should not specify a princ"),
    ({"drafts": [{"kind": "inline", "text": "\ud800"}], "principal": uma()}, ""),
    ({"drafts": [{"kind": "inline", "text": text(READ)}]}, "An account has no policies"),
    ({"drafts": [{"kind": "inline", "text": text(READ)}], "principal": "*"}, "Nobody can have a policy"),
    ({"drafts": [{"kind": "bucket", "text": text(READ)}], "bucket": "none"}, "needs a bucket that exists"),
    ({"action": "s3:Nothing"}, "is no action of S3"),
    ({"action": "s3:ListBucket"}, "name no key"),
    ({"key": None}, "name a key"),
    ({"key": ""}, "name a key"),
    ({"bucket": ""}, "A key needs a bucket"),
    ({"more": 1}, ""),
    ({"conditions": {"a": 1}}, ""),
    ({"principal": ""}, ""),
]


async def test_what_cannot_be_asked(site: Site) -> None:
    question: dict[str, Any] = {"principal": ANNA, "action": "s3:GetObject", "bucket": "photos", "key": "a"}
    for change, detail in WRONG:
        sent = json.dumps(question | change)
        found = await site.client.post("/simulation", content=sent, headers={"content-type": "application/json"})
        assert found.status_code == 422, (change, found.text)
        assert detail in found.text, change


async def test_who_may_ask(site: Site) -> None:
    question: dict[str, Any] = {"action": "s3:GetObject", "key": "a"}
    await site.sign_in(ANNA)
    for principal in (ANNA, uma(), "AKIANIL", "*", BEN):
        await site.ask(principal=principal, bucket="photos", **question)
    for principal in ("AKIABEN", f"arn:aws:iam::{BEN}:user/x"):
        await site.ask(principal=principal, bucket="photos", status=404, **question)
    assert "s3:GetBucketPolicy" in (await site.ask(principal=ANNA, bucket="others", status=403, **question))["detail"]
    await site.sign_in("AKIANIL")
    await site.ask(principal="AKIANIL", bucket="photos", status=403, **question)
    policies = text(
        {"Effect": "Allow", "Action": "s3:GetBucketPolicy", "Resource": "*"},
        {"Effect": "Allow", "Action": "iam:Simulate*", "Resource": uma(USER, "nil")},
    )
    document = json.dumps({"policies": {"p": policies}})
    await site.index.change_identity(ANNA, USER, "nil", lambda one: one._replace(document=document))
    await site.sign_in("AKIANIL")
    assert (await site.ask(principal="AKIANIL", bucket="photos", **question))["decision"] == "denied"
    await site.ask(principal=uma(), bucket="photos", status=403, **question)
    await site.ask(principal="AKIANIL", bucket="others", status=403, **question)


async def test_without_a_bucket(site: Site) -> None:
    assert (await site.ask(principal=BEN, action="s3:ListAllMyBuckets"))["decision"] == "allowed"
    assert (await site.ask(principal="*", action="s3:ListAllMyBuckets"))["decision"] == "denied"
    found = await site.ask(principal=BEN, action="s3:GetObject", bucket="none", key="a")
    assert (found["decision"], found["ground"]) == ("denied", "no-bucket")
    found = await site.ask(principal=uma(), action="s3:CreateBucket", bucket="new")
    assert (found["decision"], found["ground"]) == ("denied", "no-statement")


async def test_keys_that_are_disabled_are_denied(site: Site) -> None:
    await site.index.set_disabled(ANNA, True)
    question: dict[str, Any] = {"principal": "AKIAANNA", "action": "s3:GetObject", "bucket": "photos", "key": "a"}
    found = await site.ask(**question)
    assert (found["decision"], found["ground"]) == ("denied", "disabled")


async def test_tags_that_are_not_known_leave_it_open(site: Site) -> None:
    tagged = {**EVERYBODY, "Principal": {"AWS": BEN}, "Condition": {"StringEquals": {"s3:ExistingObjectTag/a": "b"}}}
    question: dict[str, Any] = {"principal": BEN, "action": "s3:GetObject", "bucket": "photos", "key": "a"}
    draft = {"kind": "bucket", "text": text(tagged)}
    found = await site.ask(**question, drafts=[draft])
    assert (found["decision"], found["ground"]) == ("depends", "tags")
    assert found["policies"][0]["statements"][0]["outcome"] == "depends"
    for value, decision in (("b", "allowed"), ("c", "denied")):
        given = {"s3:ExistingObjectTag/a": value}
        assert (await site.ask(**question, drafts=[draft], conditions=given))["decision"] == decision
