"""Where a website sends its reader on to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import quote, unquote

import orjson
import pytest

from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.store import objects
from sluice_s3.storage_drivers.base import BodySource
from tests.support.raw_http import Answer, Request
from tests.support.settings import make_settings
from tests.support.signing import presign
from tests.unit.s3.plane import ROOT, WAY, Plane, plane
from tests.unit.store.site import Bytes, prepare

pytestmark = pytest.mark.slow

SITE = b"<WebsiteConfiguration><IndexDocument><Suffix>i</Suffix></IndexDocument></WebsiteConfiguration>"
PUBLIC = (
    b'{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
    b' "Resource": "arn:aws:s3:::site/*"}]}'
)


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    """The bucket `site` is a website."""
    settings = make_settings(tmp_path, website_domain="web.test")
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        assert (await made.ask("PUT", "/site")).status == 200
        assert (await made.ask("DELETE", "/site", "publicAccessBlock")).status == 204
        assert (await made.ask("PUT", "/site", "website", SITE)).status == 200
        assert (await made.ask("PUT", "/site", "policy", PUBLIC)).status == 204
        yield made


async def visit(s3: Plane, path: str) -> Answer:
    return await s3.send(Request("GET", path, headers=(("host", "site.web.test"),)))


def described(place: str) -> tuple[BodySource, Callable[[str], NewVersion]]:
    """An empty object that leads to a place."""
    source = Bytes(b"")
    kept = orjson.dumps({metadata.REDIRECT: place}).decode()
    return source, lambda locator: source.describe(locator)._replace(headers=kept)


async def test_an_object_says_where_to_go_in_its_own_header_only(s3: Plane) -> None:
    told = {"x_amz_meta_a": "x-amz-website-redirect-location: http://other.test/"}
    assert (await s3.ask("PUT", "/site/stays", "", b"here", **told)).status == 200
    moved = presign(Request("PUT", "/site/moved", "x-amz-website-redirect-location=%2F%C3%A9"), ROOT, WAY)
    assert (await s3.send(moved)).status == 200
    here, there = await visit(s3, "/stays"), await visit(s3, "/moved")
    assert (here.status, here.body) == (200, b"here")
    assert (there.status, there.headers["location"]) == (301, "/é")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("//evil.test", "/evil.test/i"),
        ("/%2fevil.test", "/evil.test/i"),
        ("//%2f/evil.test", "///evil.test/i"),
        ("/%5cevil.test", "\\evil.test/i"),
        ("/%09/evil.test", "\t/evil.test/i"),
    ],
)
async def test_no_path_leads_to_another_host(s3: Plane, path: str, key: str) -> None:
    assert (await s3.ask("PUT", "/site/" + quote(key, safe=""), body=b"here")).status == 200
    answer = await visit(s3, path)
    location = answer.headers["location"]
    assert (answer.status, location[:1], unquote(location)) == (302, "/", f"/{key[:-1]}")
    assert location[1:2] not in ("/", "\\", "\t")
    assert (await visit(s3, location)).body == b"here"


@pytest.mark.parametrize("place", ["//evil.test", "/\\evil.test", "/\t/evil.test", "///evil.test"])
async def test_no_object_leads_to_another_host_without_a_scheme(s3: Plane, place: str) -> None:
    header = {"x_amz_website_redirect_location": place}
    for method, query in (("PUT", ""), ("POST", "uploads")):
        answer = await s3.ask(method, "/site/moved", query, **header)
        assert (answer.status, answer.code) == (400, "InvalidArgument")
    bucket, store = await s3.bucket("site"), s3.store
    # as it was kept before this was refused
    await objects.put(store, bucket.id, "kept", *described(place), None, {})
    answer = await visit(s3, "/kept")
    location = answer.headers["location"]
    assert (answer.status, location[:1]) == (301, "/")
    assert location[1:2] not in ("/", "\\", "\t")


async def test_rules_lead_to_their_host_with_slashes_too(s3: Plane) -> None:
    rules = b"".join(
        b"<RoutingRule><Condition>%b</Condition><Redirect>%b</Redirect></RoutingRule>" % rule
        for rule in (
            (b"<KeyPrefixEquals>a/</KeyPrefixEquals>", b"<ReplaceKeyPrefixWith>//evil.test/</ReplaceKeyPrefixWith>"),
            (b"<KeyPrefixEquals>b/</KeyPrefixEquals>", b"<ReplaceKeyWith>/evil.test</ReplaceKeyWith>"),
            (
                b"<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>",
                b"<ReplaceKeyPrefixWith>/x/</ReplaceKeyPrefixWith>",
            ),
        )
    )
    site = SITE.replace(b"</WebsiteConfiguration>", b"<RoutingRules>%b</RoutingRules></WebsiteConfiguration>" % rules)
    assert (await s3.ask("PUT", "/site", "website", site)).status == 200
    for path in ("/a/x", "/b/x", "/a//evil.test"):
        answer = await visit(s3, path)
        assert (answer.status, answer.headers["location"].startswith("http://site.web.test/")) == (301, True)


async def test_error_documents_lead_to_no_other_host(s3: Plane) -> None:
    with_error = b"<ErrorDocument><Key>error</Key></ErrorDocument></WebsiteConfiguration>"
    site = SITE.replace(b"</WebsiteConfiguration>", with_error)
    assert (await s3.ask("PUT", "/site", "website", site)).status == 200
    await objects.put(s3.store, (await s3.bucket("site")).id, "error", *described("//evil.test"), None, {})
    answer = await visit(s3, "/nothing")
    assert (answer.status, answer.headers["location"]) == (301, "/%2Fevil.test")
