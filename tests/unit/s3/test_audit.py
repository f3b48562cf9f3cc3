"""The audit log of requests: changes of buckets and of identities, refused ones too, and no work with objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from sluice_s3.app.index.audit.rows import AuditEvent, AuditFilter
from sluice_s3.app.index.engine.audit_trail import AuditTrail
from sluice_s3.app.s3.audit import MAX_OF_KEY, MAX_PENDING, AuditRecorder
from sluice_s3.app.s3.routing import ROUTES
from tests.support.raw_http import Answer, Request
from tests.support.settings import ROOT, make_settings
from tests.support.signing import Way, sign_full
from tests.unit.s3.plane import HOST, Plane, plane
from tests.unit.store.site import prepare

TAGS = b"<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Plane]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        assert (await made.ask("PUT", "/box")).status == 200
        yield made


async def events(site: Plane) -> list[AuditEvent]:
    await site.gateway.services.audit.flush()
    found = (await site.index.audit_events(AuditFilter(), None, 500)).events
    return found[::-1]


def test_what_changes_a_bucket_is_audited_and_work_with_objects_is_not() -> None:
    audited = {one.name for one in ROUTES.values() if one.is_audited}
    assert {"CreateBucket", "DeleteBucket", "PutBucketPolicy", "DeleteBucketCors", "PutBucketVersioning"} <= audited
    assert not {"PutObject", "DeleteObjects", "PostObject", "PutObjectTagging", "GetBucketPolicy"} & audited


async def test_changes_of_a_bucket(site: Plane) -> None:
    made = await site.ask("PUT", "/box", "tagging=", TAGS)
    assert made.status == 204
    await site.ask("PUT", "/box/key", "", b"bytes")
    await site.ask("GET", "/box", "tagging=")
    await site.ask("PUT", "/box", "policy=", b"no policy")  # refused by the handler
    create, tag, refused = await events(site)
    assert (create.action, create.outcome, create.source) == ("s3:CreateBucket", "Success", "s3")
    assert (tag.action, tag.resource, tag.address) == ("s3:PutBucketTagging", "arn:aws:s3:::box", "192.0.2.1")
    assert (tag.request_id, tag.access_key) == (made.headers["x-amz-request-id"], ROOT[0])
    assert tag.principal.startswith("arn:aws:iam::")
    assert tag.principal.endswith(":root")
    assert orjson.loads(tag.detail)["after"] == {"tags": {"a": "1"}}
    assert (refused.action, refused.outcome) == ("s3:PutBucketPolicy", "MalformedPolicy")


async def test_who_may_not_is_named_and_who_nobody_knows_is_not(site: Plane) -> None:
    row = await site.bucket("box")
    nothing = {"Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}
    ann = await site.user(row.owner_id, "ann", nothing)
    assert (await site.ask("DELETE", "/box", key=ann)).status == 403
    assert (await site.ask("DELETE", "/box", key=ann._replace(secret="wrong"))).status == 403
    *_, last = await events(site)
    assert (last.action, last.outcome, last.access_key) == ("s3:DeleteBucket", "AccessDenied", ann[0])
    assert last.principal.endswith(":user/ann")
    assert len(await events(site)) == 2


async def call(site: Plane, service: str, **parameters: str) -> Answer:
    body = "&".join(f"{name}={value}" for name, value in parameters.items()).encode()
    form = Request("POST", "/", "", (("content-type", "application/x-www-form-urlencoded"),), body)
    return await site.send(sign_full(form, ROOT, Way(HOST, service=service)).request)


async def test_operations_of_iam_and_sts(site: Plane) -> None:
    assert (await call(site, "iam", Action="CreateUser", UserName="ann")).status == 200
    made = await call(site, "iam", Action="CreateAccessKey", UserName="ann")
    assert (await call(site, "iam", Action="ListUsers")).status == 200
    assert (await call(site, "iam", Action="DeleteUser", UserName="ann")).status == 409
    assert (await call(site, "sts", Action="GetSessionToken")).status == 200
    assert (await call(site, "sts", Action="GetCallerIdentity")).status == 200
    _, user, key, session, refused = await events(site)  # what was refused is written a little later
    assert (user.source, user.action, user.outcome) == ("iam", "iam:CreateUser", "Success")
    assert user.resource.endswith(":user/ann")
    assert orjson.loads(user.detail)["after"]["name"] == "ann"
    assert key.action == "iam:CreateAccessKey"
    secret = made.body.decode().partition("<SecretAccessKey>")[2].partition("<")[0]
    assert len(secret) == 40
    assert secret not in key.detail
    assert (refused.action, refused.outcome) == ("iam:DeleteUser", "DeleteConflict")
    assert (session.source, session.action, session.detail) == ("sts", "sts:GetSessionToken", "")


async def test_calls_of_minio_are_named_by_what_they_do(site: Plane) -> None:
    query, body = "bucket=box", b'{"quota": 5, "size": 5, "quotatype": "hard"}'
    asked = Request("PUT", "/minio/admin/v3/set-bucket-quota", query, (), body)
    assert (await site.send(sign_full(asked, ROOT, Way(HOST, region="")).request)).status == 200
    *_, last = await events(site)
    assert (last.source, last.action, last.resource) == ("minio", "minio:set-bucket-quota", "box")
    assert "after" in orjson.loads(last.detail)


async def test_what_waits_is_bounded(site: Plane) -> None:
    recorder = AuditRecorder(site.index)
    for number in range(MAX_PENDING + 5):
        recorder.add(AuditTrail("s3", "s3:Action", access_key=f"key{number}"), "AccessDenied")
    await recorder.flush()
    assert len((await site.index.audit_events(AuditFilter(outcome="AccessDenied"), None, 2000)).events) == MAX_PENDING


async def test_one_key_cannot_fill_the_log(site: Plane) -> None:
    recorder = site.gateway.services.audit
    for _ in range(MAX_OF_KEY + 5):
        recorder.add(AuditTrail("s3", "s3:Action", access_key=ROOT.access), "AccessDenied")
    recorder.add(AuditTrail("s3", "s3:Action", access_key="another"), "AccessDenied")
    await recorder.flush()
    wanted = AuditFilter(action="s3:Action")
    found = (await site.index.audit_events(wanted, None, 500)).events
    assert len(found) == MAX_OF_KEY - 1 + 1, "one was the bucket's"
    assert (await site.ask("PUT", "/box", "tagging=", TAGS)).status == 204
    *_, last = await events(site)
    assert (last.action, last.outcome, last.detail) == ("s3:PutBucketTagging", "Success", "")
