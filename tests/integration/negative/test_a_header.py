"""Group A: signatures in the Authorization header."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import GROUND, Site, path_of, put
from tests.support.raw_http import Request
from tests.support.signing import Key, sign_v2, stamp

GET = Request("GET", path_of(GROUND, "keep/small"))
DELETE = Request("DELETE", path_of(GROUND, "keep/small"))


def authorization(request: Request, change: Callable[[str], str]) -> Request:
    """The request with something done to its Authorization field."""
    value = request.header("authorization")
    assert value is not None
    changed = change(value)
    assert changed != value
    return request.changed("authorization", changed)


def signature(change: Callable[[str], str]) -> Callable[[str], str]:
    """Something done to the signature alone."""
    return lambda value: re.sub(r"Signature=(\w*)", lambda match: f"Signature={change(match[1])}", value)


def test_a01_wrong_secret(site: Site) -> None:
    wrong = Key(site.root.access, site.root.secret + "x")
    for attack in site.attacks():
        site.refused(site.sign(attack, wrong), 403, "SignatureDoesNotMatch")


def test_a01_secret_of_another_account(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, Key(site.root.access, site.other.secret)), 403, "SignatureDoesNotMatch")


def test_a02_unknown_key(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, Key("NOSUCHKEY", site.root.secret)), 403, "InvalidAccessKeyId")


@pytest.mark.parametrize(
    "access", **cases(["testaccesskey", "TESTACCESSKE", "TESTACCESSKEYX", "TESTACCESSKEY'--", "%", "*", "a" * 128])
)
def test_a02_key_that_is_almost_known(site: Site, access: str) -> None:
    site.refused(site.sign(DELETE, Key(access, site.root.secret)), 403, "InvalidAccessKeyId")


@pytest.mark.parametrize("at", [0, 31, 63])
def test_a03_one_bit_of_the_signature(site: Site, at: int) -> None:
    def flip(text: str) -> str:
        return text[:at] + f"{int(text[at], 16) ^ 1:x}" + text[at + 1 :]

    for attack in site.attacks():
        site.refused(authorization(site.sign(attack), signature(flip)), 403, "SignatureDoesNotMatch")


SIGNATURES: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "short": lambda text: text[:-1],
    "half": lambda text: text[:32],
    "long": lambda text: text + "0",
    "upper case": str.upper,
    "no hex": lambda text: "g" * 64,
    "zeros": lambda text: "0" * 64,
    "not ASCII": lambda text: "\xe9" * 64,
    "huge": lambda text: text * 100,
}


@pytest.mark.parametrize("name", **cases(SIGNATURES))
def test_a04_malformed_signature(site: Site, name: str) -> None:
    request = authorization(site.sign(DELETE), signature(SIGNATURES[name]))
    site.refused(request, 403, "SignatureDoesNotMatch")


HEADERS: dict[str, Callable[[str], str]] = {
    "signature twice": lambda value: value + ", Signature=" + "0" * 64,
    "good signature last": lambda value: value.replace(" Signature=", f" Signature={'0' * 64}, Signature="),
    "credential twice": lambda value: value.replace(" Signed", f" {value.split()[1]} Signed"),
    "no signature": lambda value: value.rpartition(",")[0],
    "no credential": lambda value: re.sub(r"Credential=[^,]*, ", "", value),
    "no signed headers": lambda value: re.sub(r"SignedHeaders=[^,]*, ", "", value),
    "nothing": lambda value: value.split()[0],
    "unknown component": lambda value: value + ", Extra=1",
    "commas": lambda value: "AWS4-HMAC-SHA256 " + "," * 5000,
    "short scope": lambda value: value.replace("/aws4_request", ""),
    "no access key": lambda value: re.sub("Credential=[^/]*", "Credential=", value),
}


@pytest.mark.parametrize("name", **cases(HEADERS))
def test_a05_components_missing_or_repeated(site: Site, name: str) -> None:
    site.refused(authorization(site.sign(DELETE), HEADERS[name]), 400, "AuthorizationHeaderMalformed")


def test_a05_two_authorization_headers(site: Site) -> None:
    signed = site.sign(DELETE)
    other = site.sign(DELETE, site.other)
    value = other.header("authorization")
    assert value is not None
    site.refused(signed.having(("authorization", value)), 400, "InvalidArgument")


@pytest.mark.parametrize(
    "value", **cases(["x", "Basic dGVzdDp0ZXN0", "Bearer token", "AWS4-HMAC-SHA512 Credential=a", "AWS4-HMAC-SHA256"])
)
def test_a05_other_schemes(site: Site, value: str) -> None:
    request = DELETE.having(("authorization", value), ("x-amz-date", stamp()))
    site.refused(request, 400, "InvalidArgument", "AuthorizationHeaderMalformed")


@pytest.mark.parametrize("minutes", [16, -16, 24 * 60, -24 * 60])
def test_a06_clock_is_off(site: Site, minutes: int) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, shift=minutes * 60), 403, "RequestTimeTooSkewed")


@pytest.mark.parametrize("minutes", [14, -14])
def test_a06_a_clock_within_the_bound_is_right(site: Site, minutes: int) -> None:
    site.ok(GET, shift=minutes * 60)


@pytest.mark.parametrize("day", **cases(["20200101", "2020-01-01", "20991231", "x", "0"]))
def test_a07_day_of_the_scope_is_not_that_of_the_request(site: Site, day: str) -> None:
    site.refused(site.sign(DELETE, day=day), 400, "AuthorizationHeaderMalformed")


@pytest.mark.parametrize("part", ["region", "service"])
@pytest.mark.parametrize("value", ["us-west-2", "iam", "", "S3", "US-EAST-1", "*"])
def test_a08_scope_of_another_region_or_service(site: Site, part: str, value: str) -> None:
    answer = site.refused(site.sign(DELETE, None, **{part: value}), 400, "AuthorizationHeaderMalformed")
    assert answer.all("Region") == (["us-east-1"] if part == "region" else [])


@pytest.mark.parametrize("value", ["aws4", "aws4_requests", "AWS4_REQUEST", ""])
def test_a09_terminator(site: Site, value: str) -> None:
    site.refused(site.sign(DELETE, terminator=value), 400, "AuthorizationHeaderMalformed")


def test_a10_host_is_not_signed(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, leave_out=("host",)), 403, "AccessDenied")


def test_a10_another_host_than_was_signed(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack).having(("host", "evil.example")), 403, "SignatureDoesNotMatch")


def test_a10_a_host_that_names_another_bucket(site: Site) -> None:
    request = site.sign(Request("DELETE", "/secret"), host="ground.s3.test").having(("host", "others.s3.test"))
    site.refused(request, 403, "SignatureDoesNotMatch")


FIELDS = {
    "x-amz-copy-source": f"/{GROUND}/keep/large",
    "x-amz-tagging": "a=b",
    "x-amz-acl": "public-read",
    "x-amz-grant-read": "uri=http://acs.amazonaws.com/groups/global/AllUsers",
    "x-amz-meta-evil": "yes",
    "x-amz-security-token": "token",
    "x-amz-storage-class": "GLACIER",
    "x-amz-object-lock-mode": "COMPLIANCE",
    "x-amz-website-redirect-location": "http://evil/",
    "x-amz-checksum-crc32": "AAAAAA==",
    "x-amz-decoded-content-length": "1",
    "x-amz-expected-bucket-owner": "other-id",
    "X-AMZ-META-UPPER": "yes",
    "x-amz-": "empty",
}


@pytest.mark.parametrize("name", **cases(FIELDS))
def test_a11_amz_header_that_is_not_signed(site: Site, name: str) -> None:
    for attack in (put(GROUND, "evil"), put(GROUND, "keep/small"), DELETE):
        answer = site.refused(site.sign(attack).having((name, FIELDS[name])), 403, "AccessDenied")
        assert answer.all("HeadersNotSigned") == [name.lower()]


def test_a11_amz_header_that_was_signed_and_is_gone(site: Site) -> None:
    request = site.sign(put(GROUND, "evil", x_amz_meta_a="1"))
    site.refused(request.without("x-amz-meta-a"), 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("name", ["x-amz-meta-a", "content-type", "x-amz-date", "x-amz-content-sha256"])
@pytest.mark.parametrize("first", [True, False])
def test_a12_signed_header_again_with_another_value(site: Site, name: str, first: bool) -> None:
    request = site.sign(put(GROUND, "evil", x_amz_meta_a="1", content_type="text/plain"))
    again = (name, "evil")
    doubled = replace(request, headers=(again, *request.headers) if first else (*request.headers, again))
    codes = "SignatureDoesNotMatch", "AccessDenied", "InvalidArgument", "AuthorizationHeaderMalformed"
    answer = site.ask(doubled)
    assert answer.status in (400, 403)
    assert answer.code in codes


@pytest.mark.parametrize("name", ["x-amz-copy-source", "x-amz-metadata-directive", "x-amz-checksum-crc32"])
def test_a12_two_values_both_signed(site: Site, name: str) -> None:
    values = {
        "x-amz-copy-source": (f"/{GROUND}/keep/small", f"/{GROUND}/keep/large"),
        "x-amz-metadata-directive": ("COPY", "REPLACE"),
        "x-amz-checksum-crc32": ("AAAAAA==", "sOofwQ=="),
    }[name]
    request = put(GROUND, "evil", b"").having(*((name, value) for value in values))
    if name == "x-amz-metadata-directive":
        request = request.having(("x-amz-copy-source", f"/{GROUND}/keep/small"))
    answer = site.ask(site.sign(request))
    assert answer.status in (400, 404)
    assert answer.code in ("InvalidArgument", "InvalidRequest", "NoSuchKey")


def test_a13_no_time_at_all(site: Site) -> None:
    for attack in site.attacks():
        site.refused(site.sign(attack, clock=""), 403, "AccessDenied")


@pytest.mark.parametrize("value", ["", "x", "20260101", "2026-01-01T00:00:00Z", "20261399T000000Z", "\xb2" * 16])
def test_a13_time_that_is_none(site: Site, value: str) -> None:
    request = site.sign(DELETE.having(("x-amz-date", value)), clock="")
    site.refused(request, 403, "AccessDenied")


def test_a13_date_in_place_of_x_amz_date(site: Site) -> None:
    site.ok(GET, clock="date")
    site.refused(site.sign(DELETE, clock="date", shift=-3600), 403, "RequestTimeTooSkewed")


def test_a13_a_fresh_date_does_not_save_an_old_request(site: Site) -> None:
    now = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    site.refused(site.sign(DELETE, shift=-3600).having(("date", now)), 403, "RequestTimeTooSkewed")


def test_a14_header_and_query_signature_together(site: Site) -> None:
    for attack in site.attacks():
        request = site.sign(site.presign(attack))
        site.refused(request, 400, "InvalidArgument")


def test_a14_header_signature_and_unsigned_query_of_version_2(site: Site) -> None:
    request = site.sign(DELETE)
    request = replace(request, query="AWSAccessKeyId=TESTACCESSKEY&Signature=x&Expires=9999999999")
    site.refused(request, 400, "InvalidArgument")


def test_a15_version_2_in_the_header_is_refused(site: Site) -> None:
    for attack in site.attacks():
        if not attack.query and not any(name.startswith("x-amz-") for name, _ in attack.headers):
            site.refused(sign_v2(attack, site.root), 400, "InvalidRequest")
