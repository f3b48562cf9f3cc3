"""What answers tell of regions, and a gateway that takes any of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from sluice_s3.app.store.regions import Regions
from tests.support.raw_http import Answer, Request
from tests.support.settings import make_settings
from tests.support.signing import SIGNED_CHUNKS, Key, Way, chunks_of, presign, sign_full
from tests.unit.s3.plane import HOST, ROOT, Plane, plane
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow

HEADER = "x-amz-bucket-region"
NAMES = ("us-east-1", "eu-west-1", "auto", "127.0.0.1", "A_b-9")
NO_NAMES = ("é", "eu west", "e" * 65, "eu'", "a:b")
NOTIFICATION = (
    "<NotificationConfiguration><QueueConfiguration><Queue>arn:aws:sqs:eu-west-1::hook</Queue>"
    "<Event>s3:ObjectCreated:*</Event></QueueConfiguration></NotificationConfiguration>"
)
LOGGING = (
    b"<BucketLoggingStatus><LoggingEnabled><TargetBucket>bkt</TargetBucket><TargetPrefix>x</TargetPrefix>"
    b"</LoggingEnabled></BucketLoggingStatus>"
)
CHUNKS = [b"a" * 8192, b"b" * 100]


@asynccontextmanager
async def opened(path: Path, region: str) -> AsyncIterator[Plane]:
    """A gateway that has the bucket `bkt` with the object `key`."""
    targets = {"hook": {"url": "http://127.0.0.1:9/"}}
    settings = make_settings(path, region=region, notify_targets=targets)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        for name in ("/bkt", "/bkt/key"):
            assert (await sign(made, Request("PUT", name), Regions(region).default)).status == 200
        yield made


@pytest.fixture
async def fixed(tmp_path: Path) -> AsyncIterator[Plane]:
    async with opened(tmp_path, "eu-west-1") as made:
        yield made


@pytest.fixture
async def anywhere(tmp_path: Path) -> AsyncIterator[Plane]:
    async with opened(tmp_path, "auto") as made:
        yield made


async def sign(s3: Plane, request: Request, region: str, key: Key = ROOT) -> Answer:
    return await s3.send(sign_full(request, key, Way(HOST, region=region)).request)


def constraint(name: str) -> bytes:
    said = f"<LocationConstraint>{name}</LocationConstraint>"
    return f"<CreateBucketConfiguration>{said}</CreateBucketConfiguration>".encode()


# a gateway in one region


async def test_a_wrong_region_is_answered_with_the_right_one(fixed: Plane) -> None:
    for method, path in product(("GET", "HEAD", "PUT", "DELETE"), ("/bkt", "/bkt/key", "/bkt/missing")):
        await check_wrong_region(fixed, method, path)


async def check_wrong_region(fixed: Plane, method: str, path: str) -> None:
    answer = await sign(fixed, Request(method, path), "us-east-2")
    assert (answer.status, answer.headers[HEADER]) == (400, "eu-west-1")
    if method == "HEAD":
        assert answer.body == b""
    else:
        assert answer.code == "AuthorizationHeaderMalformed"
        assert b"<Region>eu-west-1</Region>" in answer.body
    url = await fixed.send(presign(Request(method, path), ROOT, Way(HOST, region="us-east-2")))
    assert (url.status, url.headers[HEADER]) == (400, "eu-west-1")


async def test_a_caller_who_may_not_see_a_bucket_learns_its_region(fixed: Plane) -> None:
    """Clients that know no region ask so, without a signature."""
    user = await fixed.user((await fixed.bucket("bkt")).owner_id, "user", {"Version": "2012-10-17", "Statement": []})
    for method in ("GET", "HEAD"):
        for path, expected in (("/bkt", "eu-west-1"), ("/bkt/key", None), ("/missing", None)):
            answer = await fixed.send(Request(method, path))
            assert (answer.status, answer.headers.get(HEADER)) == (404 if path == "/missing" else 403, expected)
        answer = await sign(fixed, Request(method, "/bkt"), "eu-west-1", user)
        assert (answer.status, answer.headers[HEADER]) == (403, "eu-west-1")


async def test_what_is_in_no_bucket_has_no_region_of_one(fixed: Plane) -> None:
    answer = await sign(fixed, Request("GET", "/"), "us-east-2")
    assert (answer.status, answer.code, HEADER in answer.headers) == (400, "AuthorizationHeaderMalformed", False)
    assert HEADER not in (await fixed.send(Request("GET", "/"))).headers


async def test_a_bucket_follows_its_gateway_to_another_region(tmp_path: Path) -> None:
    async with opened(tmp_path, "auto") as s3:
        assert (await sign(s3, Request("PUT", "/old", body=constraint("eu-west-1")), "us-east-1")).status == 200
    async with plane(make_settings(tmp_path, region="eu-north-1")) as s3:
        assert (await sign(s3, Request("HEAD", "/old"), "eu-north-1")).headers[HEADER] == "eu-north-1"
        assert b">eu-north-1<" in (await sign(s3, Request("GET", "/old", "location"), "eu-north-1")).body
        assert (await sign(s3, Request("HEAD", "/old"), "eu-west-1")).headers[HEADER] == "eu-north-1"


# a gateway that takes any region


async def test_any_region_is_taken(anywhere: Plane) -> None:
    for region in NAMES:
        assert (await sign(anywhere, Request("GET", "/bkt/key"), region)).status == 200
        way = Way(HOST, region=region)
        assert (await anywhere.send(presign(Request("GET", "/bkt/key"), ROOT, way))).status == 200
        head = Request("PUT", "/bkt/k", "", (("x-amz-decoded-content-length", str(sum(map(len, CHUNKS)))),))
        signed = sign_full(head, ROOT, replace(way, payload=SIGNED_CHUNKS))
        body = b"".join(chunk.wire() for chunk in chunks_of(signed, CHUNKS)) + b"\r\n"
        assert (await anywhere.send(replace(signed.request, body=body))).status == 200
        wrong = sign_full(Request("GET", "/bkt/key"), Key(ROOT.access, "wrong"), way).request
        assert (await anywhere.send(wrong)).code == "SignatureDoesNotMatch"


async def test_what_is_no_region_is_not_taken(anywhere: Plane) -> None:
    for region in NO_NAMES:
        answer = await sign(anywhere, Request("GET", "/bkt/key"), region)
        assert (region, answer.status, answer.code) == (region, 400, "AuthorizationHeaderMalformed")


async def test_buckets_keep_the_region_that_they_are_made_with(anywhere: Plane) -> None:
    for number, region in enumerate(NAMES):
        made = await sign(anywhere, Request("PUT", f"/of-{number}", body=constraint(region)), "us-west-2")
        assert made.status == 200
        assert (await anywhere.send(Request("HEAD", f"/of-{number}"))).headers[HEADER] == region
    again = Request("PUT", "/of-1", body=constraint("eu-west-1"))
    assert (await sign(anywhere, again, "us-east-1")).code == "BucketAlreadyOwnedByYou"
    for region in ("eu west", "e" * 65, "us-east-1:nowhere", ":default"):
        refused = await sign(anywhere, Request("PUT", "/other", body=constraint(region)), "us-east-1")
        assert (refused.status, refused.code) == (400, "InvalidLocationConstraint")
    assert (await sign(anywhere, Request("PUT", "/by-store", body=constraint("eu-west-1:default")), "x")).status == 200
    assert (await anywhere.bucket("by-store")).region == "eu-west-1"


async def test_buckets_of_one_region_are_listed_by_pages(anywhere: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.s3.buckets.list_buckets.PAGE", 2)
    for number in range(5):
        region = ("eu-west-1", "us-west-2")[number % 2]
        assert (await sign(anywhere, Request("PUT", f"/b-{number}", body=constraint(region)), "x")).status == 200
    found, token = [], ""
    for _ in range(4):
        query = f"bucket-region=eu-west-1&max-buckets=1{token}"
        body = (await sign(anywhere, Request("GET", "/", query), "x")).body.decode()
        found += [part.partition("<")[0] for part in body.split("<Name>")[1:]]
        if "<ContinuationToken>" not in body:
            break
        token = "&continuation-token=" + quote(body.partition("<ContinuationToken>")[2].partition("<")[0], safe="")
    assert found == ["b-0", "b-2", "b-4"]


async def test_configurations_name_any_region(anywhere: Plane) -> None:
    assert (await sign(anywhere, Request("PUT", "/far", body=constraint("eu-west-1")), "x")).status == 200
    asked = Request("PUT", "/bkt", "notification", body=NOTIFICATION.encode())
    assert (await sign(anywhere, asked, "x")).status == 200
    statement = {"Effect": "Allow", "Principal": {"Service": "logging.s3.amazonaws.com"}, "Action": "s3:PutObject"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement | {"Resource": "arn:aws:s3:::bkt/*"}]})
    assert (await sign(anywhere, Request("PUT", "/bkt", "policy", body=policy.encode()), "x")).status == 204
    assert (await sign(anywhere, Request("PUT", "/far", "logging", body=LOGGING), "x")).status == 200


async def test_policies_see_the_region_of_the_bucket(anywhere: Plane) -> None:
    """And not the one of the signature, which is the client's choice."""
    owner = (await anywhere.bucket("bkt")).owner_id
    said = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    said["Condition"] = {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}  # type: ignore[assignment]
    user = await anywhere.user(owner, "user", {"Version": "2012-10-17", "Statement": [said]})
    for region, status in (("eu-west-1", 200), ("us-west-2", 403)):
        asked = Request("PUT", f"/in-{region}", body=constraint(region))
        assert (await sign(anywhere, asked, "eu-west-1", user)).status == status
    assert (await sign(anywhere, Request("GET", "/bkt/key"), "eu-west-1", user)).status == 403
    assert (await sign(anywhere, Request("PUT", "/in-eu-west-1/k"), "us-west-2", user)).status == 200
