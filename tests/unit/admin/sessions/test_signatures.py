"""Presigned URLs for the browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from sluice_s3.app.access.presigned import CLIENT_PARAMETER, Signer, Target, presign
from sluice_s3.app.index.iam.rows import AccessKey, Session
from sluice_s3.app.s3.auth import authentication, signatures
from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.wire import target
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT
from tests.unit.admin.console_client import Console, console

PATH = "/api/v1/signatures"
KEYS = ["a", "a/b c", "ä/ö+%&?#", "//x//", "a/../b", "../x", "./.", "a\nb\t", "'\"<script>", "\U0001f600", "a%2Fb"]


def request_of(url: str, method: str = "GET", headers: dict[str, str] | None = None) -> S3Request:
    """The request that a browser sends for a URL."""
    parts = urlsplit(url)
    made = S3Request()
    given = {"host": parts.netloc, **(headers or {})}
    made.set_headers([name.encode() for name in given], [value.encode() for value in given.values()])
    made.method, made.raw_path, made.raw_query = method, parts.path.encode(), parts.query.encode()
    made.query = target.parse_query(made.raw_query)
    return made


def verify(request: S3Request, key: AccessKey) -> None:
    """What the S3 listener checks. Raises S3Error."""
    found = signatures.parse_signature(request, now=time.time(), region="us-east-1", clock_skew=900, sigv2="off")
    assert found is not None
    assert found.access_key == key.access_key
    authentication.verify(request, found, key)


async def signed(browser: Any, *requests: dict[str, Any], **options: Any) -> list[str]:
    answer = await browser.post(PATH, json={"requests": requests, **options})
    assert answer.status_code == 200, answer.text
    urls: list[str] = answer.json()["urls"]
    return urls


async def key_of(site: Console, url: str) -> AccessKey:
    found = await site.index.access_key(parse_qs(urlsplit(url).query)["X-Amz-Credential"][0].partition("/")[0])
    assert found is not None
    return found


async def test_the_gateway_takes_what_was_signed(site: Console) -> None:
    browser = await site.sign_in()
    urls = await signed(browser, *({"bucket": "pail", "key": key} for key in KEYS))
    for url, key in zip(urls, KEYS, strict=True):
        assert url.startswith("http://localhost:9000/pail/")
        assert "X-Amz-Security-Token=" in url
        # a browser resolves segments of dots, and the key must survive that
        path = urlsplit(url).path
        assert not {".", ".."} & set(path.split("/"))
        assert unquote(path) == f"/pail/{key}"
        request = request_of(url)
        verify(request, await key_of(site, url))
        assert target.parse_target(request.raw_path, "localhost:9000", ())[:2] == ("pail", key)


async def test_headers_and_parameters_are_signed(site: Console) -> None:
    browser = await site.sign_in()
    headers = {"Content-Type": "text/plain", "x-amz-meta-a": "b  c", "x-amz-content-sha256": "0" * 64}
    query = {"uploadId": "x/y+z", "partNumber": "1", "acl": "", "a": "1", "a-b": "2", "a.": "3"}
    one = {"method": "PUT", "bucket": "pail", "key": "k", "query": query, "headers": headers}
    (url,) = await signed(browser, one)
    key = await key_of(site, url)
    verify(request_of(url, "PUT", headers), key)
    with pytest.raises(S3Error):
        verify(request_of(url, "PUT", headers | {"x-amz-meta-a": "d"}), key)
    with pytest.raises(S3Error):
        verify(request_of(url.replace("partNumber=1", "partNumber=2"), "PUT", headers), key)
    with pytest.raises(S3Error):
        verify(request_of(url, "DELETE", headers), key)
    (url,) = await signed(browser, {})  # the list of buckets
    assert urlsplit(url).path == "/"
    verify(request_of(url), await key_of(site, url))


async def test_a_shared_link_outlives_the_session(site: Console) -> None:
    key, secret = await site.user("ann")
    browser = await site.sign_in(key, secret)
    one = {"bucket": "pail", "key": "k", "query": {"versionId": "v", "response-content-type": "text/plain"}}
    (url,) = await signed(browser, one, share=True, expires=604_800)
    assert (await key_of(site, url)).access_key == key
    assert "X-Amz-Security-Token" not in url
    assert "X-Amz-Expires=604800" in url
    assert (await browser.delete("/api/v1/session")).status_code == 204
    verify(request_of(url), await key_of(site, url))
    await site.iam("DeleteAccessKey", UserName="ann", AccessKeyId=key)
    with pytest.raises(AssertionError):
        await key_of(site, url)


NOT_SHARED: list[dict[str, Any]] = [
    {"method": "DELETE", "bucket": "pail", "key": "k"},
    {"method": "PUT", "bucket": "pail"},
    {"bucket": "pail", "key": "k", "query": {"acl": ""}},
    {"method": "PUT", "bucket": "pail", "key": "k", "query": {"tagging": ""}},
    {},
]


async def test_others_end_with_the_session(site: Console) -> None:
    browser = await site.sign_in()
    answer = (await browser.post(PATH, json={"requests": [{}], "expires": 604_800})).json()
    session = (await browser.get("/api/v1/session")).json()
    assert abs(answer["expires"] - session["expires"]) < 2000
    key = await key_of(site, answer["urls"][0])
    await browser.delete("/api/v1/session")
    assert await site.index.access_key(key.access_key) is None


IMPOSSIBLE: list[dict[str, Any]] = [
    {"method": "PATCH"},
    {"key": "k"},
    {"bucket": "../x", "key": "k"},
    {"bucket": "a/b"},
    {"bucket": "pail", "key": ""},
    {"bucket": "pail", "key": ".."},
    {"bucket": "pail", "key": "k" * 1025},
    {"headers": {"a\nb": "c"}},
    {"headers": {"x-a": "b\r\nhost: c"}},
    {"headers": {"Host": "evil.test"}},
    {"headers": {"x-a": "1", "X-A": "2"}},
    {"headers": {"x-a": "ä"}},
    {"query": {"X-Amz-Expires": "1"}},
    {"query": {"x-amz-signature": "1"}},
    {"query": {"x-sluice-client": "127.0.0.1"}},
    {"query": {"X-Sluice-Client": "127.0.0.1"}},
    {"headers": {f"x-{number}": "" for number in range(65)}},
    {"nothing": 1},
]


async def test_what_cannot_be_signed(site: Console) -> None:
    browser = await site.sign_in()
    for one in NOT_SHARED:
        assert (await browser.post(PATH, json={"requests": [one], "share": True})).status_code == 422, one
    for one in IMPOSSIBLE:
        assert (await browser.post(PATH, json={"requests": [one]})).status_code == 422, one
    many = [{"bucket": "pail", "key": str(number)} for number in range(1001)]
    assert (await browser.post(PATH, json={"requests": many})).status_code == 422
    assert len(await signed(browser, *many[:1000])) == 1000
    for expires in (0, -1, 604_801):
        assert (await browser.post(PATH, json={"requests": [{}], "expires": expires})).status_code == 422
    assert (await browser.post(PATH, json={"requests": []})).status_code == 422


async def test_nobody_else_signs(site: Console) -> None:
    assert (await site.browser().post(PATH, json={"requests": [{}]})).status_code == 401
    token = site.browser(authorization="Bearer sesame-sesame")
    assert (await token.post(PATH, json={"requests": [{}]})).status_code == 400
    browser = await site.sign_in()
    assert (await browser.post(PATH, json={"requests": [{}]}, headers={"x-sluice-csrf": "x"})).status_code == 403


async def test_the_endpoint_is_the_settings_else_beside_the_console(settings: Settings) -> None:
    async with console(settings.model_copy(update={"public_url": "https://s3.test"})) as site:
        (url,) = await signed(await site.sign_in(), {"bucket": "pail"})
    assert url.startswith("https://s3.test/pail?")
    async with console(settings) as site:
        (url,) = await signed(await site.sign_in(origin="http://[::1]:9001"), {"bucket": "pail"})
    assert url.startswith("http://[::1]:9000/pail?")


async def test_this_gateway_alone_names_the_client(site: Console) -> None:
    """For what it asks of S3 itself, such as archives: conditions on the address hold for whom it asks."""
    url = "http://localhost:9000"
    one = Target("GET", "pail", "k", {CLIENT_PARAMETER: "10.0.0.9"})
    browser = await site.sign_in()
    (signed_url,) = await signed(browser, {"bucket": "pail"})
    session = await key_of(site, signed_url)
    first = await site.app.state.sessions.first_account()
    of_sts = Session("ASIA" + "C" * 16, "s" * 20, "t", first, "", "", "[]", 0, 1 << 50)
    await site.index.add_session(of_sts, 10)
    own = await site.index.access_key(ROOT.access)
    others = await site.index.access_key(of_sts.access_key)
    assert own is not None
    assert others is not None
    for key, client in ((session, "10.0.0.9"), (own, "192.0.2.1"), (others, "192.0.2.1")):
        signer = Signer(key.access_key, key.secret, key.token or None)
        request = request_of(presign(url, "us-east-1", signer, one, 60))
        request.client = "192.0.2.1"
        verify(request, key)
        assert request.client == client, key
    added = request_of(f"{signed_url}&{CLIENT_PARAMETER}=10.0.0.9")
    with pytest.raises(S3Error):
        verify(added, session)


def test_a_signer_does_not_show_its_secret(tmp_path: Path) -> None:
    assert ROOT.secret not in repr(Signer(ROOT.access, ROOT.secret, "token"))
