"""An append tells nothing of an object to a caller who may not read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.index.iam.rows import Account
from tests.support.raw_http import Answer, Request
from tests.support.settings import make_settings
from tests.support.signing import Key
from tests.unit.s3.plane import ROOT, Plane, plane
from tests.unit.store.site import prepare

SECRET = b"four-digit PIN: 4711"
OFFSETS = (0, 1, len(SECRET), 999)
OTHER = Key("OTHERKEY", "other-secret-0123456789")
TELLING = ("x-amz-object-size", "x-amz-checksum-crc32", "x-amz-checksum-crc64nvme", "etag")


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    """Bucket `bkt` with the object `secret`, where policies and ACLs can let the public in."""
    settings = make_settings(tmp_path, default_public_access_block=False)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        assert (await made.ask("PUT", "/bkt")).status == 200
        assert (await made.ask("PUT", "/bkt/secret", body=SECRET)).status == 200
        yield made


async def append(s3: Plane, path: str, offset: int, key: Key | None) -> Answer:
    fields = {"x_amz_write_offset_bytes": str(offset)}
    if key is not None:
        return await s3.ask("PUT", path, body=b"!", key=key, **fields)
    return await s3.send(Request("PUT", path, headers=(("x-amz-write-offset-bytes", str(offset)),), body=b"!"))


async def refused(s3: Plane, path: str, key: Key | None) -> None:
    """Whatever offset an append names, it is refused in the same way."""
    for offset in OFFSETS:
        answer = await append(s3, path, offset, key)
        assert (offset, answer.status, answer.code) == (offset, 403, "AccessDenied")
        assert not set(TELLING) & set(answer.headers)


def allowing(*actions: str, principal: str | None = None) -> str:
    said = {"Effect": "Allow", "Action": list(actions), "Resource": "arn:aws:s3:::bkt/*"}
    given = {} if principal is None else {"Principal": principal}
    return json.dumps({"Version": "2012-10-17", "Statement": [said | given]})


async def test_a_user_who_may_only_write(s3: Plane) -> None:
    account = (await s3.bucket("bkt")).owner_id
    writer = await s3.user(account, "writer", json.loads(allowing("s3:PutObject")))
    reader = await s3.user(account, "reader", json.loads(allowing("s3:PutObject", "s3:GetObject")))
    await refused(s3, "/bkt/secret", writer)
    assert (await s3.ask("GET", "/bkt/secret")).body == SECRET
    assert (await append(s3, "/bkt/secret", 1, reader)).code == "InvalidWriteOffset"
    assert (await append(s3, "/bkt/secret", len(SECRET), reader)).headers["x-amz-object-size"] == str(len(SECRET) + 1)
    await refused(s3, "/bkt/missing", writer)


async def test_the_public_that_may_only_write(s3: Plane) -> None:
    assert (await s3.ask("PUT", "/bkt", "policy", allowing("s3:PutObject", principal="*").encode())).status == 204
    await refused(s3, "/bkt/secret", None)
    both = allowing("s3:PutObject", "s3:GetObject", principal="*")
    assert (await s3.ask("PUT", "/bkt", "policy", both.encode())).status == 204
    assert (await append(s3, "/bkt/secret", len(SECRET), None)).status == 200


async def test_an_object_of_another_owner(s3: Plane) -> None:
    """The bucket's owner may replace it, and may read it only when its ACL says so."""
    await s3.index.add_account(Account("other-id", "other", "", False, 0), *OTHER)
    assert (
        await s3.ask("PUT", "/wide", x_amz_object_ownership="ObjectWriter", x_amz_acl="public-read-write")
    ).status == 200
    assert (await s3.ask("PUT", "/wide/theirs", body=SECRET, key=OTHER)).status == 200
    assert (await s3.ask("PUT", "/wide/mine", body=SECRET)).status == 200
    await refused(s3, "/wide/theirs", ROOT)
    await refused(s3, "/wide/mine", OTHER)
    await refused(s3, "/wide/mine", None)
    assert (await append(s3, "/wide/theirs", len(SECRET), OTHER)).status == 200
    assert (await s3.ask("PUT", "/wide/theirs", "acl", key=OTHER, x_amz_acl="bucket-owner-full-control")).status == 200
    assert (await append(s3, "/wide/theirs", len(SECRET) + 1, ROOT)).status == 200
