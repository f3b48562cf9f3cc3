"""Group C: presigned URLs."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import GROUND, OTHERS, SMALL, Site, path_of, put
from tests.support.raw_http import Request
from tests.support.signing import presign_v2, stamp

GET = Request("GET", path_of(GROUND, "keep/small"))
DELETE = Request("DELETE", path_of(GROUND, "keep/small"))


def test_c33_presigned_requests_are_right_to_begin_with(site: Site) -> None:
    bucket = site.fresh()
    assert site.ask(site.presign(put(bucket, "k", b"body"))).status == 200
    assert site.ask(site.presign(Request("GET", path_of(bucket, "k")))).body == b"body"
    assert site.ask(site.presign(Request("DELETE", path_of(bucket, "k")), expires="604800")).status == 204


EXPIRES = {
    "-1": "AuthorizationQueryParametersError",
    "604801": "AuthorizationQueryParametersError",
    "1e9": "AuthorizationQueryParametersError",
    "0x10": "AuthorizationQueryParametersError",
    "+300": "AuthorizationQueryParametersError",
    " 300": "AuthorizationQueryParametersError",
    "300 ": "AuthorizationQueryParametersError",
    "3 00": "AuthorizationQueryParametersError",
    "300.0": "AuthorizationQueryParametersError",
    "never": "AuthorizationQueryParametersError",
    "99999999999999999999": "AuthorizationQueryParametersError",
    "\u0663\u0660": "AuthorizationQueryParametersError",
}


@pytest.mark.parametrize("value", **cases(EXPIRES))
def test_c33_expires(site: Site, value: str) -> None:
    for attack in (DELETE, put(GROUND, "evil"), GET):
        site.refused(site.presign(attack, expires=value), 400, EXPIRES[value])


@pytest.mark.parametrize("value", ["0", "-0", "00"])
def test_c33_expires_at_once(site: Site, value: str) -> None:
    site.refused(site.presign(DELETE, expires=value), 403, "AccessDenied")


@pytest.mark.parametrize(
    "name", ["X-Amz-Expires", "X-Amz-Date", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-SignedHeaders"]
)
@pytest.mark.parametrize("empty", [True, False])
def test_c33_parameter_is_absent_or_empty(site: Site, name: str, empty: bool) -> None:
    request = site.presign(DELETE, change={name: ""})
    if empty:
        request = replace(request, query=f"{name}=&{request.query}")
    site.refused(request, 400, "AuthorizationQueryParametersError")


def test_c33_signature_is_absent_or_malformed(site: Site) -> None:
    request = site.presign(DELETE)
    head, _, signature = request.query.rpartition("=")
    for query, status, code in (
        (request.query.rpartition("&")[0], 400, "AuthorizationQueryParametersError"),
        (f"{head}=", 403, "SignatureDoesNotMatch"),
        (f"{head}={signature[:-1]}", 403, "SignatureDoesNotMatch"),
        (f"{head}={signature.upper()}", 403, "SignatureDoesNotMatch"),
        (f"{head}={signature}0", 403, "SignatureDoesNotMatch"),
        (f"{head}={signature}%00", 403, "SignatureDoesNotMatch"),
        (f"{head}={'0' * 64}", 403, "SignatureDoesNotMatch"),
        (f"{head}=%C3%A9", 403, "SignatureDoesNotMatch"),
    ):
        site.refused(replace(request, query=query), status, code)


@pytest.mark.parametrize("name", ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-SignedHeaders"])
@pytest.mark.parametrize("value", ["x", "AWS4-HMAC-SHA512", "a/b/c/d/e", "20260101T000000Z", "host;;"])
def test_c33_parameter_that_is_wrong(site: Site, name: str, value: str) -> None:
    request = site.presign(DELETE, change={name: value})
    answer = site.ask(request)
    assert (answer.status, answer.code) in [
        (400, "AuthorizationQueryParametersError"),
        (403, "AccessDenied"),
        (403, "SignatureDoesNotMatch"),
    ]


def test_c34_expired_by_a_second(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.presign(attack, shift=-61, expires="60"), 403, "AccessDenied")
    answer = site.refused(site.presign(GET, shift=-61, expires="60"), 403, "AccessDenied")
    assert answer.all("Message") == ["Request has expired"]


def test_c34_of_the_future(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.presign(attack, shift=16 * 60), 403, "AccessDenied")
    site.refused(site.presign(DELETE, shift=7 * 86400, expires="604800"), 403, "AccessDenied")


def test_c34_a_longer_life_than_was_signed(site: Site) -> None:
    request = site.presign(DELETE, shift=-3600, expires="60")
    longer = request.query.replace("X-Amz-Expires=60", "X-Amz-Expires=604800")
    site.refused(replace(request, query=longer), 403, "SignatureDoesNotMatch")
    later = re.sub(r"(X-Amz-Date=\w{8})\w*", rf"\1T{stamp(-60)[9:]}", request.query)
    assert later != request.query
    site.refused(replace(request, query=later), 403, "SignatureDoesNotMatch", "AccessDenied")


@pytest.mark.parametrize(
    "extra",
    [
        "X-Amz-Expires=604800",
        "X-Amz-Signature=" + "0" * 64,
        "X-Amz-Credential=x",
        "X-Amz-Date=20990101T000000Z",
        "X-Amz-SignedHeaders=host",
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "x-amz-expires=604800",
        "X-Amz-Expire%73=604800",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_c35_parameter_given_twice(site: Site, extra: str, first: bool) -> None:
    request = site.presign(DELETE)
    query = f"{extra}&{request.query}" if first else f"{request.query}&{extra}"
    site.refused(replace(request, query=query), 400, "AuthorizationQueryParametersError")


def test_c35_other_parameters_twice(site: Site) -> None:
    """Both are signed, and the first one counts for everybody."""
    request = site.presign(Request("DELETE", path_of(GROUND, "keep/upload"), "uploadId=none&uploadId=" + site.upload))
    site.refused(request, 404, "NoSuchUpload")


@pytest.mark.parametrize("name", ["x-amz-copy-source", "X-Amz-Copy-Source"])
@pytest.mark.parametrize("source", [f"/{GROUND}/keep/large", f"/{OTHERS}/secret"])
def test_c36_copy_source_added_to_a_presigned_put(site: Site, name: str, source: str) -> None:
    part = Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=2&uploadId={site.upload}")
    for target in (put(GROUND, "evil", b""), put(GROUND, "keep/small", b""), part):
        request = site.presign(target)
        site.refused(request.having((name, source)), 403, "AccessDenied")
        query = f"{request.query}&{name}={quote(source, safe='')}"
        answer = site.ask(replace(request, query=query))
        assert (answer.status, answer.code) in [(403, "SignatureDoesNotMatch"), (501, "NotImplemented")]


def test_c36_copy_source_as_a_signed_parameter(site: Site) -> None:
    """A URL for PUT must not become one for Copy by the hand of who signs parameters alone."""
    source = quote(f"/{GROUND}/keep/large", safe="")
    request = site.presign(replace(put(GROUND, "evil", b""), query=f"x-amz-copy-source={source}"))
    site.refused(request, 501, "NotImplemented")


@pytest.mark.parametrize("method", ["HEAD", "DELETE", "PUT", "POST"])
def test_c37_presigned_get_used_as_another(site: Site, method: str) -> None:
    site.refused(replace(site.presign(GET), method=method), 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_c37_presigned_put_used_as_another(site: Site, method: str) -> None:
    request = site.presign(put(GROUND, "keep/small", b""))
    site.refused(replace(request, method=method), 403, "SignatureDoesNotMatch")


def test_c37_presigned_for_one_key_used_on_another(site: Site) -> None:
    request = site.presign(Request("GET", path_of(GROUND, "keep/none")))
    for path in (path_of(GROUND, "keep/small"), path_of(GROUND), "/", "/ground//keep/none", path_of(OTHERS, "secret")):
        site.refused(replace(request, path=path), 403, "SignatureDoesNotMatch")


def test_c37_presigned_and_used_as_another_operation(site: Site) -> None:
    for added in ("acl", "uploads", "uploadId=" + site.upload, "versionId=null", "attributes", "tagging"):
        for attack in (GET, DELETE, put(GROUND, "keep/small")):
            request = site.presign(attack)
            site.refused(replace(request, query=f"{added}&{request.query}"), 403, "SignatureDoesNotMatch")


OVERRIDES = [
    "response-content-type=text/html",
    "response-content-disposition=attachment",
    "response-cache-control=public",
    "response-content-encoding=gzip",
    "response-content-language=en",
    "response-expires=never",
]


@pytest.mark.parametrize("query", OVERRIDES)
def test_c38_overrides_of_anonymous_requests(site: Site, query: str) -> None:
    for method in ("GET", "HEAD"):
        site.refused(Request(method, path_of(GROUND, "keep/small"), query), 400, "InvalidRequest")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX", "\0", "\x7f", "\x1b[2J"])
def test_c38_overrides_with_control_characters(site: Site, value: str) -> None:
    for query in OVERRIDES:
        request = replace(GET, query=f"{query.partition('=')[0]}={quote(value, safe='')}")
        for signed in (site.presign(request), site.sign(request)):
            answer = site.refused(signed, 400, "InvalidArgument")
            assert "x-evil" not in answer.headers


def test_c38_overrides_that_are_not_ascii(site: Site) -> None:
    answer = site.ask(site.presign(replace(GET, query="response-content-disposition=%C3%BC")))
    assert (answer.status, answer.headers["content-disposition"]) == (200, "\xc3\xbc")


UNSIGNED_FIELDS = {
    "x-amz-acl": "public-read",
    "x-amz-grant-full-control": 'id="other-id"',
    "x-amz-tagging": "a=b",
    "x-amz-object-lock-mode": "GOVERNANCE",
    "x-amz-object-lock-retain-until-date": "2030-01-01T00:00:00Z",
    "x-amz-object-lock-legal-hold": "ON",
    "x-amz-meta-evil": "1",
    "x-amz-storage-class": "GLACIER",
    "x-amz-server-side-encryption": "AES256",
    "x-amz-website-redirect-location": "/evil",
    "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
    "x-amz-security-token": "x",
    "x-amz-bypass-governance-retention": "true",
}


@pytest.mark.parametrize("name", **cases(UNSIGNED_FIELDS))
def test_c39_unsigned_field_on_a_presigned_put(site: Site, name: str) -> None:
    for target in (put(GROUND, "evil"), put(GROUND, "keep/small")):
        request = site.presign(target).having((name, UNSIGNED_FIELDS[name]))
        site.refused(request, 403, "AccessDenied")


def test_c39_content_type_need_not_be_signed(site: Site) -> None:
    """As on AWS: who hands out such a URL leaves the type to whoever uses it."""
    bucket = site.fresh()
    assert site.ask(site.presign(put(bucket, "k")).having(("content-type", "text/html"))).status == 200
    assert site.ok(Request("HEAD", path_of(bucket, "k"))).headers["content-type"] == "text/html"


def test_c39_signed_field_that_is_not_sent_or_sent_otherwise(site: Site) -> None:
    request = site.presign(put(GROUND, "evil", content_type="text/plain", x_amz_meta_a="1"))
    for changed in (
        request.without("content-type"),
        request.without("x-amz-meta-a"),
        request.changed("content-type", "text/html"),
        request.changed("x-amz-meta-a", "2"),
    ):
        site.refused(changed, 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("name", ["X-Amz-Acl", "X-Amz-Tagging", "X-Amz-Object-Lock-Mode", "X-Amz-Meta-Evil"])
def test_c39_the_same_as_parameters(site: Site, name: str) -> None:
    request = site.presign(put(GROUND, "evil"))
    site.refused(replace(request, query=f"{request.query}&{name}=x"), 403, "SignatureDoesNotMatch")
    value = "aws:a=b" if name == "X-Amz-Tagging" else "public-read"
    signed = site.presign(replace(put(GROUND, "evil"), query=f"{name}={quote(value, safe='')}"))
    if name == "X-Amz-Acl":  # it counts like the field, and new buckets have no ACLs
        site.refused(signed, 400, "AccessControlListNotSupported")
    elif name == "X-Amz-Tagging":
        site.refused(signed, 400, "InvalidTag")
    elif name == "X-Amz-Object-Lock-Mode":
        site.refused(signed, 400, "InvalidRequest")


def version_2(site: Site, method: str, path: str, expires: int, query: str = "", signed_query: str = "") -> Request:
    """A presigned URL of version 2; `signed_query` is what the signature covers."""
    return presign_v2(Request(method, path, query), site.root, expires, signed_query)


def test_c34_version_2_expired(site: Site) -> None:
    now = int(time.time())
    path = path_of(GROUND, "keep/small")
    assert site.ask(version_2(site, "GET", path, now + 60)).body == SMALL
    site.refused(version_2(site, "DELETE", path, now - 1), 403, "AccessDenied")
    for method in ("DELETE", "HEAD", "PUT"):
        site.refused(replace(version_2(site, "GET", path, now + 60), method=method), 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("query", ["attributes", "delete=", "append", "x=y", "renameObject", "x-amz-copy-source=/a/b"])
def test_c37_version_2_with_parameters_that_it_does_not_cover(site: Site, query: str) -> None:
    now = int(time.time())
    for method in ("GET", "PUT", "POST", "DELETE"):
        request = version_2(site, method, path_of(GROUND, "keep/small"), now + 60, query=query)
        answer = site.ask(request)
        assert (answer.status, answer.code) in [
            (403, "AccessDenied"),
            (403, "SignatureDoesNotMatch"),
            (501, "NotImplemented"),
        ]


@pytest.mark.parametrize("name", ["x-amz-copy-source", "x-amz-acl", "x-amz-meta-a", "content-type"])
def test_c36_version_2_and_a_field_it_was_not_signed_with(site: Site, name: str) -> None:
    request = version_2(site, "PUT", path_of(GROUND, "evil"), int(time.time()) + 60)
    value = f"/{GROUND}/keep/large" if name == "x-amz-copy-source" else "x"
    site.refused(replace(request.having((name, value)), body=b"evil"), 403, "SignatureDoesNotMatch")
