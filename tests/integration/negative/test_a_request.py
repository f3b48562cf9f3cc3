"""Group A: requests that are not what was signed, and keys that are not there."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from tests.integration.negative.checks import cases, xml
from tests.integration.negative.site import GROUND, OTHERS, Site, delete_many, path_of, put
from tests.support.gateway import Gateway
from tests.support.raw_http import Request
from tests.support.signing import SIGNED_CHUNKS, Key

GET = Request("GET", path_of(GROUND, "keep/small"))
DIGESTS = {
    "empty": ("", 400, "InvalidArgument"),
    "garbage": ("garbage", 400, "InvalidArgument"),
    "short": ("ab" * 31, 400, "InvalidArgument"),
    "base64": ("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", 400, "InvalidArgument"),
    "another body's": (sha256(b"other").hexdigest(), 400, "XAmzContentSHA256Mismatch"),
    "of nothing": (sha256(b"").hexdigest(), 400, "XAmzContentSHA256Mismatch"),
    "unsigned, spelled wrong": ("unsigned-payload", 400, "InvalidArgument"),
    "unknown stream": ("STREAMING-AWS4-HMAC-SHA512-PAYLOAD", 400, "InvalidArgument"),
    "ECDSA": ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", 501, "NotImplemented"),
}


@pytest.mark.parametrize("name", **cases(DIGESTS))
def test_a16_payload_hash(site: Site, name: str) -> None:
    digest, status, *codes = DIGESTS[name]
    part = f"partNumber=2&uploadId={site.upload}"
    delete = delete_many(GROUND, "keep/small")
    for attack in (
        put(GROUND, "evil"),
        put(GROUND, "keep/small"),
        put(GROUND, "evil", b"x" * 700_000),
        Request("PUT", path_of(GROUND, "keep/upload"), part, body=b"evil"),
        delete,
        Request("PUT", "/evil-bucket", body=xml("CreateBucketConfiguration", "")),
    ):
        if digest:
            site.refused(site.sign(attack, payload=digest), status, *codes)
        else:  # the signer would send no field at all
            site.refused(site.sign(attack.having(("x-amz-content-sha256", "")), payload=""), status, *codes)


def test_a16_no_payload_hash(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, payload=""), 400, "InvalidRequest")


def test_a16_payload_hash_changed_to_unsigned(site: Site) -> None:
    request = site.sign(put(GROUND, "evil", b"good")).changed("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    site.refused(replace(request, body=b"evil"), 403, "SignatureDoesNotMatch")
    request = site.sign(put(GROUND, "evil", b"good")).changed("x-amz-content-sha256", SIGNED_CHUNKS)
    site.refused(replace(request, body=b"evil"), 403, "SignatureDoesNotMatch")


def test_a16_body_changed_after_signing(site: Site) -> None:
    for attack in (put(GROUND, "keep/small"), put(GROUND, "keep/small", b"e" * 1_000_000)):
        request = site.sign(attack)
        site.refused(replace(request, body=request.body[:-1] + b"!"), 400, "XAmzContentSHA256Mismatch")
    request = site.sign(delete_many(GROUND, "evil"))
    longer = delete_many(GROUND, "keep/small")
    site.refused(replace(request, body=longer.body), 400, "XAmzContentSHA256Mismatch", "BadDigest")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "POST"])
def test_a17_signed_for_get_and_sent_as_another(site: Site, method: str) -> None:
    request = site.sign(GET)
    site.refused(replace(request, method=method), 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("name", ["x-http-method-override", "x-method-override", "x-http-method", "x-original-method"])
def test_a17_methods_are_not_overridden(site: Site, name: str) -> None:
    site.ok(GET.having((name, "DELETE")))


PATHS = {
    "another key": ("/ground/keep/none", "/ground/keep/small"),
    "another bucket": ("/fresh/keep/small", "/ground/keep/small"),
    "one slash less": ("/ground//keep/small", "/ground/keep/small"),
    "one slash more": ("/ground/keep/small", "/ground/keep//small"),
    "trailing slash": ("/ground/keep/small/", "/ground/keep/small"),
    "plus": ("/ground/a%20b", "/ground/a+b"),
    "plus back": ("/ground/a%2Bb", "/ground/a%20b"),
    "escaped percent": ("/ground/keep%252Fsmall", "/ground/keep%2Fsmall"),
    "dot segments": ("/ground/keep/x/../small", "/ground/keep/small"),
    "dot": ("/ground/./keep/small", "/ground/keep/small"),
    "case": ("/ground/keep/SMALL", "/ground/keep/small"),
    "bucket only": ("/ground/x", "/ground"),
    "question mark": ("/ground/keep/small%3Facl", "/ground/keep/small?acl"),
}


@pytest.mark.parametrize("name", **cases(PATHS))
def test_a18_signed_for_one_path_and_sent_to_another(site: Site, name: str) -> None:
    signed, sent = PATHS[name]
    for method in ("GET", "PUT", "DELETE"):
        request = site.sign(Request(method, signed, body=b"evil" if method == "PUT" else b""))
        site.refused(replace(request, path=sent), 403, "SignatureDoesNotMatch")


def test_a18_an_escaped_slash_is_the_slash_it_stands_for(site: Site) -> None:
    """So the key that was authorised is the key that is read, however it is written."""
    for signed, sent in (("keep/small", "keep%2Fsmall"), ("keep%2Fsmall", "keep%2fsmall")):
        request = site.sign(Request("GET", f"/ground/{signed}"))
        assert site.ask(replace(request, path=f"/ground/{sent}")).body == b"hello world"


@pytest.mark.parametrize(
    "query",
    **cases(
        ["acl", "versionId=null", "uploads", "uploadId=x", "tagging", "x", "delete", "partNumber=1", "x-id=GetObject"]
    ),
)
def test_a19_query_parameter_added_after_signing(site: Site, query: str) -> None:
    for attack in site.attacks():
        if not attack.query:
            site.refused(replace(site.sign(attack), query=query), 403, "SignatureDoesNotMatch")


def test_a19_query_parameter_removed_or_changed(site: Site) -> None:
    key = path_of(GROUND, "keep/upload")
    for signed, sent in (
        (f"uploadId={site.upload}", ""),
        ("uploadId=none", f"uploadId={site.upload}"),
        (f"uploadId={site.upload}&uploadId=none", f"uploadId=none&uploadId={site.upload}&x"),
    ):
        request = site.sign(Request("DELETE", key, signed))
        site.refused(replace(request, query=sent), 403, "SignatureDoesNotMatch")


def test_a20_disabled_and_removed_keys(site: Site) -> None:
    gateway: Gateway = site.gateway
    key = Key("LEAVINGKEY", "leaving-secret-0123")
    gateway.run("user", "add", "--access-key", key.access, "--secret-key", key.secret, "--id", "leaving-id")
    site.ok(Request("GET", "/"), key)
    gateway.run("user", "disable", key.access)
    for _ in range(8):  # both workers
        site.refused(site.sign(Request("GET", "/"), key), 403, "InvalidAccessKeyId")
        site.refused(site.sign(Request("PUT", "/evil-bucket"), key), 403, "InvalidAccessKeyId")
    gateway.run("user", "remove", key.access)
    for _ in range(8):
        site.refused(site.sign(Request("GET", "/"), key), 403, "InvalidAccessKeyId")


def test_a20_session_tokens_are_nobodys(site: Site) -> None:
    for attack in site.attacks():
        request = attack.having(("x-amz-security-token", "FwoGZXIvYXdzEXAMPLE"))
        site.refused(site.sign(request), 400, "InvalidToken")
        presigned = site.presign(attack, change={"X-Amz-Security-Token": "FwoGZXIvYXdzEXAMPLE"})
        site.refused(presigned, 400, "InvalidToken")


def test_a20_keys_of_one_account_do_not_work_on_anothers(site: Site) -> None:
    for attack in site.attacks(OTHERS):
        site.refused(site.sign(attack, site.root), 403, "AccessDenied")
    for attack in site.attacks(GROUND):
        site.refused(site.sign(attack, site.other), 403, "AccessDenied")
