"""A bucket's policy can forbid signature version 2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.gateway import client
from tests.support.raw_http import Answer, Request
from tests.support.settings import make_settings
from tests.support.signing import sign_v2
from tests.unit.s3.plane import HOST, ROOT, Plane, plane
from tests.unit.store.site import prepare

RESOURCES = ["arn:aws:s3:::bkt", "arn:aws:s3:::bkt/*"]


def denying(**condition: str) -> dict[str, Any]:
    said = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": RESOURCES}
    return said | {"Condition": {"StringEquals": {f"s3:{name}": value for name, value in condition.items()}}}


ALLOWED = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": RESOURCES[1]}


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    """The bucket `bkt` with the object `key`, for everybody to read, and both versions of signatures."""
    settings = make_settings(tmp_path, default_public_access_block=False, sigv2="on")
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        assert (await made.ask("PUT", "/bkt")).status == 200
        assert (await made.ask("PUT", "/bkt/key", body=b"body")).status == 200
        await allow(made, ALLOWED)
        yield made


async def allow(s3: Plane, *statements: dict[str, Any]) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    assert (await s3.ask("PUT", "/bkt", "policy", policy.encode())).status == 204


def url(version: str, method: str = "get_object", **parameters: str) -> Request:
    """What a URL that boto3 signed asks for."""
    signer = client(f"http://{HOST}", ROOT.access, ROOT.secret, signature_version=version)
    made = signer.generate_presigned_url(method, {"Bucket": "bkt", "Key": "key", **parameters})
    parts = urlsplit(made)
    return Request("GET" if method == "get_object" else "PUT", parts.path, parts.query)


def form(version: str) -> Request:
    signer = client(f"http://{HOST}", ROOT.access, ROOT.secret, signature_version=version)
    fields = signer.generate_presigned_post("bkt", "new")["fields"]
    parts = [f'--BB\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    parts.append('--BB\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--BB--\r\n')
    kind = (("content-type", "multipart/form-data; boundary=BB"),)
    return Request("POST", "/bkt", headers=kind, body="".join(parts).encode())


async def statuses(s3: Plane, *requests: Request) -> list[int]:
    answers: list[Answer] = [await s3.send(request) for request in requests]
    return [answer.status for answer in answers]


async def test_a_policy_forbids_version_2(s3: Plane) -> None:
    old = (url("s3"), url("s3", "put_object"), form("s3"), sign_v2(Request("GET", "/bkt/key"), ROOT))
    new = (url("s3v4"), url("s3v4", "put_object"), form("s3v4"), Request("GET", "/bkt/key"))
    assert await statuses(s3, *old) == [200, 200, 204, 200]
    await allow(s3, ALLOWED, denying(signatureversion="AWS"))
    assert await statuses(s3, *old) == [403, 403, 403, 403]
    assert await statuses(s3, *new) == [200, 200, 204, 200]
    assert (await s3.ask("GET", "/bkt/key")).status == 200
    await allow(s3, ALLOWED, denying(signatureversion="AWS4-HMAC-SHA256"))
    assert await statuses(s3, *old) == [200, 200, 204, 200]
    assert await statuses(s3, *new) == [403, 403, 403, 200]


async def test_a_policy_forbids_signed_urls(s3: Plane) -> None:
    asked = (url("s3"), url("s3v4"), form("s3"), form("s3v4"), Request("GET", "/bkt/key"))
    for kind, expected in (
        ("REST-QUERY-STRING", [403, 403, 204, 204, 200]),
        ("POST", [200, 200, 403, 403, 200]),
        ("REST-HEADER", [200, 200, 204, 204, 200]),
    ):
        await allow(s3, ALLOWED, denying(authType=kind))
        assert await statuses(s3, *asked) == expected
        assert (await s3.ask("GET", "/bkt/key")).status == (403 if kind == "REST-HEADER" else 200)


async def test_one_signature_of_version_2_fits_two_urls(s3: Plane) -> None:
    """What is signed does not say where a value ends; the policy is the way to forbid it."""
    signed = url("s3", ResponseContentDisposition="attachment; filename=x&response-content-type=text/html")
    forged = Request("GET", signed.path, signed.query.replace("%26response-content-type%3D", "&response-content-type="))
    assert forged.query != signed.query
    answer = await s3.send(forged)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html")
    await allow(s3, ALLOWED, denying(signatureversion="AWS"))
    assert await statuses(s3, forged, signed) == [403, 403]
