"""Signature version 4: botocore and AWS's published examples as oracles, and reliability tests A and C."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures import RequestSignature, parse_signature
from sluice_s3.app.s3.wire.checksums import expected_checksum
from sluice_s3.app.s3.wire.dates import format_basic
from sluice_s3.app.s3.wire.request import S3Request
from tests.unit.s3.signing.signed_requests import ACCESS_KEY, REGION, SECRET, make, of_botocore

CREDENTIALS = Credentials(ACCESS_KEY, SECRET)
HOST = "http://127.0.0.1:9000"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def claim_of(
    request: S3Request, *, now: float | None = None, region: str = REGION, sigv2: str = "query"
) -> RequestSignature:
    claim = parse_signature(
        request, now=time.time() if now is None else now, region=region, clock_skew=900, sigv2=sigv2
    )
    assert claim is not None
    return claim


def verify(request: S3Request, *, now: float | None = None, secret: str = SECRET) -> RequestSignature:
    claim = claim_of(request, now=now)
    claim.verify(secret)
    return claim


def header_signed(
    method: str = "GET", url: str = HOST + "/bucket/key", headers: dict[str, str] | None = None, data: bytes = b""
) -> S3Request:
    request = AWSRequest(method, url, headers=headers or {}, data=data)
    S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
    return of_botocore(request)


def presigned(
    method: str = "GET", url: str = HOST + "/bucket/key", headers: dict[str, str] | None = None, expires: int = 3600
) -> S3Request:
    request = AWSRequest(method, url, headers=headers or {})
    S3SigV4QueryAuth(CREDENTIALS, "s3", REGION, expires=expires).add_auth(request)
    return of_botocore(request)


def changed(request: S3Request, *, target: str | None = None, method: str | None = None, **headers: str) -> S3Request:
    """The same request with another target, method or header (underscores are dashes; an empty value removes)."""
    query = b"?" + request.raw_query if request.raw_query else b""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = [(name, value) for name, value in request.headers.items() if name not in names]
    added = [(name, value) for name, value in names.items() if value]
    return make(
        method or request.method,
        target if target is not None else (request.raw_path + query).decode("latin-1"),
        kept + added,
    )


def with_authorization(request: S3Request, edit: Callable[[str], str]) -> S3Request:
    return changed(request, authorization=edit(request.headers["authorization"]))


# AWS's examples: "Signature Calculations for the Authorization Header" and "… Using Query Parameters"

EXAMPLE_TIME = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
EXAMPLE_HOST = ("host", "examplebucket.s3.amazonaws.com")


def example(method: str, target: str, signature: str, payload: str, **headers: str) -> S3Request:
    items = [EXAMPLE_HOST, ("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", payload)]
    items += [(name.replace("_", "-"), value) for name, value in headers.items()]
    names = ";".join(sorted(name for name, _ in items))
    items.append(
        (
            "authorization",
            f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20130524/us-east-1/s3/aws4_request,"
            f"SignedHeaders={names},Signature={signature}",
        )
    )
    return make(method, target, items, virtual_host="examplebucket")


@pytest.mark.parametrize(
    "request_",
    [
        example("GET", "/test.txt", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", EMPTY,
                range="bytes=0-9"),
        example("PUT", "/test%24file.text", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
                "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
                date="Fri, 24 May 2013 00:00:00 GMT", x_amz_storage_class="REDUCED_REDUNDANCY"),
        example("GET", "/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543", EMPTY),
        example("GET", "/?max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
                EMPTY),
        example("PUT", "/examplebucket/chunkObject.txt",
                "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
                "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", content_encoding="aws-chunked", content_length="66824",
                x_amz_decoded_content_length="66560", x_amz_storage_class="REDUCED_REDUNDANCY",
                host="s3.amazonaws.com"),
    ],
    ids=["get object", "put object", "lifecycle", "list", "chunked"],
)  # fmt: skip
def test_the_published_examples(request_: S3Request) -> None:
    if "content-encoding" in request_.headers:
        # this example is path style: its host replaces the one of the others
        request_ = changed(request_, host="s3.amazonaws.com")
        request_.headers["authorization"] = request_.headers["authorization"].replace("host;host", "host")
    verify(request_, now=EXAMPLE_TIME)


def test_the_published_example_of_a_presigned_url() -> None:
    target = (
        "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )
    claim = verify(make("GET", target, [EXAMPLE_HOST]), now=EXAMPLE_TIME)
    assert (claim.access_key, claim.version, claim.via, claim.payload) == (
        ACCESS_KEY,
        "v4",
        "query",
        "UNSIGNED-PAYLOAD",
    )


# botocore

KEYS = ["key", "a b", "a+b", "a%b", "a//b", "/a", "a/", "ü/日本", "~_-.", "()!*'", "a=b&c", "..", "%2F", "a\tb", "?#"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sign", [header_signed, presigned])
def test_keys_as_botocore_signs_them(key: str, sign: Callable[..., S3Request]) -> None:
    verify(sign("GET", f"{HOST}/bucket/{quote(key, safe='/~')}"))


@pytest.mark.parametrize("query", ["acl", "acl=", "prefix=a%20b&list-type=2", "a-b=1&a=2", "b=2&a=1&a=0", "uploads&x"])
@pytest.mark.parametrize("sign", [header_signed, presigned])
def test_queries_as_botocore_signs_them(query: str, sign: Callable[..., S3Request]) -> None:
    verify(sign("GET", f"{HOST}/bucket?{query}"))


@given(key=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40), query=st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), st.text(st.characters(codec="utf-8"), max_size=12),
    max_size=4))  # fmt: skip
def test_any_key_and_query_as_botocore_signs_them(key: str, query: dict[str, str]) -> None:
    pairs = "&".join(f"p{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in query.items())
    url = f"{HOST}/bucket/{quote(key, safe='/~')}" + ("?" + pairs if pairs else "")
    verify(header_signed("PUT", url))
    verify(presigned("PUT", url))


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_other_spellings_of_a_path_are_the_same_path(key: str) -> None:
    signed = header_signed("GET", f"{HOST}/bucket/{quote(key, safe='/~')}")
    every_byte = "/bucket/" + "".join(f"%{byte:02x}" for byte in key.encode())
    verify(changed(signed, target=every_byte))


@pytest.mark.parametrize("value", ["a  b", " a", "a\tb", "a,  b", " "])
def test_header_values_as_botocore_signs_them(value: str) -> None:
    request = header_signed("PUT", headers={"x-amz-meta-a": value})
    assert verify(request).payload == EMPTY


def test_blanks_around_and_within_a_signed_header_do_not_matter() -> None:
    request = header_signed("PUT", headers={"x-amz-meta-a": "a b"})
    verify(changed(request, x_amz_meta_a="  a   b  "))


def test_non_ascii_header_bytes_are_signed_as_they_came() -> None:
    # C3 A0 is "à" in UTF-8 and must not be taken for a capital A and a blank
    from sluice_s3.app.s3.auth.signatures.canonical import canonical_request

    request = make("PUT", "/b/k", {"host": "h", "x-amz-meta-a": "\xc3\xa0"})
    assert b"x-amz-meta-a:\xc3\xa0\n" in canonical_request(request, "/b/k", "", "host;x-amz-meta-a", EMPTY)


def test_payload_digest_is_the_claims_payload() -> None:
    request = header_signed("PUT", data=b"hello")
    assert verify(request).payload == request.headers["x-amz-content-sha256"]


def test_the_date_header_when_x_amz_date_is_absent() -> None:
    now = int(time.time())
    request = AWSRequest("GET", HOST + "/bucket/key", headers={"Date": "x"})
    S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
    signed = of_botocore(request)
    assert "x-amz-date" not in signed.headers
    assert abs(now - time.time()) < 60
    verify(signed)


def test_anonymous_requests_make_no_claim() -> None:
    for request in (make(), make("GET", "/b?versionId=1"), make(headers={"authorization": ""})):
        assert parse_signature(request, now=0, region=REGION, clock_skew=900, sigv2="on") is None


def test_components_in_another_order_and_spacing() -> None:
    def shuffle(value: str) -> str:
        parts = value.removeprefix("AWS4-HMAC-SHA256 ").split(", ")
        return "AWS4-HMAC-SHA256 " + " ,  ".join(reversed(parts))

    verify(with_authorization(header_signed(), shuffle))


# A. header


def test_a01_wrong_secret() -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(header_signed(), secret=SECRET + "x")


@pytest.mark.parametrize("bit", [0, 17, 255])
def test_a03_one_bit_flipped(bit: int) -> None:
    def flip(value: str) -> str:
        head, _, signature = value.rpartition("=")
        return f"{head}={int(signature, 16) ^ (1 << bit):064x}"

    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(with_authorization(header_signed(), flip))


@pytest.mark.parametrize(
    "edit", [lambda s: "", lambda s: s[:63], lambda s: s[:10], lambda s: s + "0", str.upper, lambda s: s[:-1] + "\xe9"]
)
def test_a04_signatures_of_another_form(edit: Callable[[str], str]) -> None:
    request = header_signed()
    if request.headers["authorization"].rpartition("=")[2].isdigit():
        pytest.skip("has no letter to change the case of")
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(with_authorization(request, lambda v: v.rpartition("=")[0] + "=" + edit(v.rpartition("=")[2])))


def test_a05_two_signatures() -> None:
    with pytest.raises(errors.AuthorizationHeaderMalformed):
        verify(with_authorization(header_signed(), lambda value: value + ", Signature=" + value.rpartition("=")[2]))


@pytest.mark.parametrize("minutes", [16, -16])
def test_a06_clock_skew(minutes: int) -> None:
    now = time.time() + 60 * minutes
    with pytest.raises(errors.RequestTimeTooSkewed) as caught:
        verify(header_signed(), now=now)
    assert caught.value.extra["MaxAllowedSkewMilliseconds"] == "900000"
    assert {"RequestTime", "ServerTime"} <= caught.value.extra.keys()


@pytest.mark.parametrize("minutes", [14, -14])
def test_a06_clock_skew_within_bounds(minutes: int) -> None:
    verify(header_signed(), now=time.time() + 60 * minutes)


def scope_edit(position: int, value: str) -> Callable[[str], str]:
    def edit(header: str) -> str:
        head, _, rest = header.partition("Credential=")
        credential, _, tail = rest.partition(",")
        parts = credential.split("/")
        parts[position] = value
        return f"{head}Credential={'/'.join(parts)},{tail}"

    return edit


@pytest.mark.parametrize(
    ("position", "value", "text"),
    [
        (1, "20130524", "Date is not the same"),
        (1, "2013524", "yyyyMMdd"),
        (1, "", "yyyyMMdd"),
        (2, "us-west-2", "expecting 'us-east-1'"),
        (2, "", "expecting 'us-east-1'"),
        (3, "iam", "belongs to"),
        (4, "aws4", "aws4_request"),
        (0, "", "mal-formed"),
    ],
)
def test_a07_a08_a09_scope(position: int, value: str, text: str) -> None:
    with pytest.raises(errors.AuthorizationHeaderMalformed, match=text) as caught:
        verify(with_authorization(header_signed(), scope_edit(position, value)))
    if position == 2:
        assert caught.value.extra == {"Region": REGION}


def test_a10_host_not_signed() -> None:
    with pytest.raises(errors.AccessDenied, match="not signed") as caught:
        verify(with_authorization(header_signed(), lambda value: value.replace("host;", "")))
    assert caught.value.extra["HeadersNotSigned"] == "host"


UNSIGNED = ["x-amz-copy-source", "x-amz-tagging", "x-amz-acl", "x-amz-meta-a", "x-amz-security-token",
            "x-amz-object-lock-mode", "x-amz-website-redirect-location"]  # fmt: skip


@pytest.mark.parametrize("name", UNSIGNED)
def test_a11_unsigned_amz_headers(name: str) -> None:
    request = changed(header_signed("PUT"), **{name: "value"})
    with pytest.raises(errors.AccessDenied, match="not signed") as caught:
        verify(request)
    assert caught.value.extra["HeadersNotSigned"] == name


def test_a12_a_signed_header_given_twice() -> None:
    request = header_signed("PUT", headers={"x-amz-meta-a": "1"})
    doubled = make("PUT", "/bucket/key", [*request.headers.items(), ("x-amz-meta-a", "2")])
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(doubled)


def test_a12_a_header_signed_twice() -> None:
    request = AWSRequest("PUT", HOST + "/bucket/key")
    request.headers.add_header("x-amz-meta-a", "1")
    request.headers.add_header("x-amz-meta-a", "2 ")
    S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(request)
    verify(of_botocore(request))


def test_a13_x_amz_date_rules_over_date() -> None:
    verify(changed(header_signed(), date="Fri, 24 May 2013 00:00:00 GMT"))


@pytest.mark.parametrize("date", ["", "yesterday", "20130524", "2013-05-24T00:00:00Z", "99999999T999999Z"])
def test_a13_no_valid_date(date: str) -> None:
    with pytest.raises(errors.AccessDenied, match="valid Date or x-amz-date"):
        verify(changed(header_signed(), x_amz_date=date))


def test_a14_two_mechanisms() -> None:
    request = header_signed()
    for other in (presigned(), make("GET", "/bucket/key?AWSAccessKeyId=a&Signature=b&Expires=1")):
        target = (other.raw_path + b"?" + other.raw_query).decode()
        with pytest.raises(errors.InvalidArgument, match="Only one auth mechanism"):
            verify(changed(request, target=target))


def test_a14_two_authorization_headers() -> None:
    request = header_signed()
    value = request.headers["authorization"]
    with pytest.raises(errors.InvalidArgument):
        verify(make("GET", "/bucket/key", [*request.headers.items(), ("authorization", value)]))


def test_a16_payload_digest_missing() -> None:
    request = header_signed()
    request = changed(request, x_amz_content_sha256="")
    request = with_authorization(request, lambda value: value.replace("x-amz-content-sha256;", ""))
    with pytest.raises(errors.InvalidRequest, match="x-amz-content-sha256"):
        verify(request)


@pytest.mark.parametrize("value", ["garbage", EMPTY[:-1], EMPTY + "0", "STREAMING-", "unsigned-payload", "x" * 64])
def test_a16_payload_digest_garbage(value: str) -> None:
    with pytest.raises(errors.InvalidArgument) as caught:
        verify(changed(header_signed(), x_amz_content_sha256=value))
    assert caught.value.extra["ArgumentName"] == "x-amz-content-sha256"


def test_a16_another_payload_digest() -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(header_signed(), x_amz_content_sha256="0" * 64))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "POST"])
@pytest.mark.parametrize("sign", [header_signed, presigned])
def test_a17_c37_another_method(method: str, sign: Callable[..., S3Request]) -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(sign(), method=method))


@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        ("/bucket/a", "/bucket/b"),
        ("/bucket/a", "/other/a"),
        ("/bucket/a/b", "/bucket//a/b"),
        ("/bucket/a//b", "/bucket/a/b"),
        ("/bucket/a%20b", "/bucket/a+b"),
        ("/bucket/a%2Bb", "/bucket/a%20b"),
        ("/bucket/a%252Fb", "/bucket/a%2Fb"),
        ("/bucket/a/../b", "/bucket/b"),
        ("/bucket/a", "/bucket/a/"),
        ("/bucket/a", "/bucket/a%00"),
        ("/bucket/%C3%BC", "/bucket/u%CC%88"),
    ],
)
def test_a18_another_path(signed: str, sent: str) -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(header_signed("GET", HOST + signed), target=sent))


def test_a18_an_escaped_slash_is_the_slash_of_the_same_key() -> None:
    verify(changed(header_signed("GET", HOST + "/bucket/a/b"), target="/bucket/a%2Fb"))
    verify(header_signed("GET", HOST + "/bucket/a%2Fb"))
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(header_signed("GET", HOST + "/bucket/a%2Fb"), target="/bucket/a/b"))


@pytest.mark.parametrize("query", ["acl", "versionId=1", "uploadId=1", "tagging=", "x-id=GetObject"])
@pytest.mark.parametrize("sign", [header_signed, presigned])
def test_a19_a_parameter_added(query: str, sign: Callable[..., S3Request]) -> None:
    request = sign()
    more = (request.raw_query.decode() + "&" if request.raw_query else "") + query
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(request, target="/bucket/key?" + more))


def test_a19_a_plus_is_a_blank_and_not_a_plus() -> None:
    verify(changed(header_signed("GET", HOST + "/bucket?prefix=a%20b"), target="/bucket?prefix=a+b"))
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(header_signed("GET", HOST + "/bucket?prefix=a%2Bb"), target="/bucket?prefix=a+b"))


def test_a20_a_session_token() -> None:
    credentials = Credentials(ACCESS_KEY, SECRET, "token")
    for signer in (S3SigV4Auth, S3SigV4QueryAuth):
        request = AWSRequest("GET", HOST + "/bucket/key")
        signer(credentials, "s3", REGION).add_auth(request)
        assert verify(of_botocore(request)).token == "token"
    assert verify(header_signed()).token is None


@pytest.mark.parametrize(
    "value",
    ["AWS4-ECDSA-P256-SHA256 Credential=a/20130524/s3/aws4_request, SignedHeaders=host, Signature=0"],
)
def test_signature_version_4a(value: str) -> None:
    with pytest.raises(errors.NotImplemented):
        verify(make(headers={"host": "h", "authorization": value}))
    with pytest.raises(errors.NotImplemented):
        verify(make("GET", "/b/k?X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256&X-Amz-Signature=0"))
    with pytest.raises(errors.NotImplemented):
        verify(changed(header_signed(), x_amz_content_sha256="STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"))


@pytest.mark.parametrize("value", ["Bearer token", "Basic YTpi", "AWS4-HMAC-SHA512 x", "HAHAHA", " "])
def test_other_schemes(value: str) -> None:
    with pytest.raises(errors.InvalidArgument):
        verify(make(headers={"host": "h", "authorization": value}))


@pytest.mark.parametrize(
    "rest",
    ["", "Credential", "Credential=a", "Credential=a/20130524/us-east-1/s3/aws4_request",
     "Credential=a/20130524/us-east-1/s3/aws4_request, SignedHeaders=host", "SignedHeaders=host, Signature=0", ",,,",
     "Credential=a/b/20130524/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0, Other=1"],
)  # fmt: skip
def test_malformed_headers(rest: str) -> None:
    with pytest.raises(errors.AuthorizationHeaderMalformed):
        verify(make(headers={"host": "h", "authorization": "AWS4-HMAC-SHA256 " + rest}))


@given(st.text(st.characters(codec="latin-1"), max_size=120))
def test_any_header_raises_only_s3_errors(rest: str) -> None:
    for prefix in ("", "AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 Credential=", "AWS "):
        try:
            request = make(headers={"host": "h", "authorization": prefix + rest})
            parse_signature(request, now=0, region=REGION, clock_skew=900, sigv2="on")
        except errors.S3Error:
            continue


def test_b29_b30_unsigned_trailer_with_a_wrong_signature_or_in_a_presigned_url() -> None:
    signed = AWSRequest("PUT", HOST + "/bucket/key")
    signed.context["checksum"] = {"request_algorithm": {"in": "trailer"}}
    S3SigV4Auth(CREDENTIALS, "s3", REGION).add_auth(signed)
    request = of_botocore(signed)
    assert verify(request).payload == "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(request, secret="another")
    with pytest.raises(errors.InvalidRequest):
        verify(presigned("PUT", headers={"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}))


# C. presigned URLs


def with_parameter(request: S3Request, name: str, value: str | None) -> S3Request:
    fields = [field for field in request.raw_query.decode().split("&") if not field.startswith(name + "=")]
    if value is not None:
        fields.append(f"{name}={value}")
    return changed(request, target=request.raw_path.decode() + "?" + "&".join(fields))


@pytest.mark.parametrize("value", ["-1", "604801", "1e9", "", None, "abc", "%C2%B2", "1.5", "9" * 40, "+5", " 5"])
def test_c33_expires_out_of_bounds(value: str | None) -> None:
    with pytest.raises(errors.AuthorizationQueryParametersError):
        verify(with_parameter(presigned(), "X-Amz-Expires", value))


def test_c33_expires_at_the_bounds() -> None:
    verify(presigned(expires=604_800))
    verify(presigned(expires=60))
    with pytest.raises(errors.AccessDenied, match="expired"):
        verify(presigned(expires=0))


def test_c34_expired_by_a_second_and_dated_in_the_future() -> None:
    request = presigned(expires=100)
    signed = datetime.strptime(request.query["X-Amz-Date"], "%Y%m%dT%H%M%S%z").timestamp()
    verify(request, now=signed + 99)
    with pytest.raises(errors.AccessDenied, match="expired") as caught:
        verify(request, now=signed + 101)
    assert caught.value.extra["X-Amz-Expires"] == "100"
    verify(request, now=signed - 800)
    with pytest.raises(errors.AccessDenied, match="not valid yet"):
        verify(request, now=signed - 1000)


@pytest.mark.parametrize("name", ["Algorithm", "Credential", "Signature", "Date", "SignedHeaders", "Expires"])
def test_c35_a_parameter_twice_or_missing(name: str) -> None:
    request = presigned()
    field = "X-Amz-" + name
    twice = changed(request, target=f"/bucket/key?{request.raw_query.decode()}&{field}=1")
    with pytest.raises(errors.AuthorizationQueryParametersError):
        verify(twice)
    hidden = changed(request, target=f"/bucket/key?{request.raw_query.decode()}&X%2DAmz%2D{name}=1")
    with pytest.raises(errors.AuthorizationQueryParametersError):
        verify(hidden)
    with pytest.raises(errors.AuthorizationQueryParametersError):
        verify(with_parameter(request, field, None))


@pytest.mark.parametrize("name", UNSIGNED)
def test_c36_c39_unsigned_amz_headers(name: str) -> None:
    with pytest.raises(errors.AccessDenied, match="not signed") as caught:
        verify(changed(presigned("PUT"), **{name: "/other/secret"}))
    assert caught.value.extra["HeadersNotSigned"] == name


def test_c39_an_unsigned_content_type_is_allowed_and_a_signed_one_bound() -> None:
    verify(changed(presigned("PUT"), content_type="text/html"))
    request = AWSRequest("PUT", HOST + "/bucket/key", headers={"content-type": "text/plain"})
    signed = presigned("PUT", headers={"content-md5": "abc"})
    verify(signed)
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(changed(signed, content_md5="abd"))
    assert request.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (f"{ACCESS_KEY}%2F20130524%2Fus-east-1%2Fs3%2Faws4_request", "not the same as X-Amz-Date"),
        (f"{ACCESS_KEY}%2FDAY%2Fus-west-2%2Fs3%2Faws4_request", "expecting 'us-east-1'"),
        (f"{ACCESS_KEY}%2FDAY%2Fus-east-1%2Fiam%2Faws4_request", "belongs to"),
        (f"{ACCESS_KEY}%2FDAY%2Fus-east-1%2Fs3%2Faws4", "aws4_request"),
        (ACCESS_KEY, "mal-formed"),
    ],
)
def test_the_scope_of_a_presigned_url(value: str, text: str) -> None:
    request = presigned()
    day = request.query["X-Amz-Date"][:8]
    with pytest.raises(errors.AuthorizationQueryParametersError, match=text):
        verify(with_parameter(request, "X-Amz-Credential", value.replace("DAY", day)))


@pytest.mark.parametrize("signature", ["", "0", "0" * 64, "%C3%A9" * 32])
def test_signatures_of_another_form_in_the_query(signature: str) -> None:
    with pytest.raises(errors.SignatureDoesNotMatch):
        verify(with_parameter(presigned(), "X-Amz-Signature", signature))


def test_parameters_that_stand_for_headers() -> None:
    query = "x-amz-acl=private&x-amz-meta-a=%C3%BC&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD"
    request = presigned("PUT", f"{HOST}/bucket/key?{query}")
    assert verify(request).payload == "UNSIGNED-PAYLOAD"
    assert request.headers["x-amz-acl"] == "private"
    assert request.headers["x-amz-meta-a"] == "\xc3\xbc"


@pytest.mark.parametrize("name", ["%D0%B6", "a%0D%0Ab", "a%3A%20b", "a%20b", "a%00", "%C3%A9"])
def test_no_parameter_makes_a_header_that_there_cannot_be(name: str) -> None:
    """An object with such metadata would be kept, and every answer about it fail."""
    with pytest.raises(errors.InvalidArgument):
        verify(presigned("PUT", f"{HOST}/bucket/key?x-amz-meta-{name}=1"))


def test_checksums_are_taken_from_headers_only() -> None:
    """The JavaScript SDK signs the CRC32 of an empty body into the URL of whatever will be uploaded by it."""
    query = "x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32&x-amz-checksum-mode=ENABLED"
    request = presigned("PUT", f"{HOST}/bucket/key?{query}")
    verify(request)
    assert expected_checksum(request).value == ""
    assert request.headers["x-amz-checksum-mode"] == "ENABLED"
    request = presigned("PUT", f"{HOST}/bucket/key?{query}", {"x-amz-checksum-crc32": "MoZR6A=="})
    verify(request)
    assert expected_checksum(request).value == "MoZR6A=="


def test_a_parameter_may_not_contradict_its_header() -> None:
    request = presigned("PUT", HOST + "/bucket/key?x-amz-acl=private", {"x-amz-acl": "public-read"})
    with pytest.raises(errors.InvalidRequest):
        verify(request)


@pytest.mark.parametrize("query", ["x-amz-meta-a=%0D%0Ax: y", "x-amz-meta-a=%00", "x-amz-acl=%7F"])
def test_a_parameter_that_no_header_can_carry(query: str) -> None:
    with pytest.raises(errors.InvalidArgument):
        verify(presigned("PUT", f"{HOST}/bucket/key?{query.replace(' ', '%20')}"))


@pytest.mark.parametrize("name", ["x-amz-copy-source", "X-Amz-Copy-Source", "x-amz-copy-source-range"])
def test_a_parameter_that_would_make_a_copy_of_a_put(name: str) -> None:
    with pytest.raises(errors.NotImplemented):
        verify(presigned("PUT", f"{HOST}/bucket/key?{name}=%2Fother%2Fsecret"))


def test_the_claim_of_a_request_does_not_hold_it() -> None:
    import gc

    claim = verify(header_signed())
    assert not any(isinstance(held, S3Request) for held in gc.get_referents(claim))


def test_format_basic_is_what_parse_reads() -> None:
    from sluice_s3.app.s3.wire.dates import parse_basic

    assert parse_basic(format_basic(EXAMPLE_TIME)) == EXAMPLE_TIME


class ByName(S3SigV4Auth):
    """Signs as clients in Go do: repeated parameters stay in the order in which they are sent."""

    def canonical_query_string(self, request: AWSRequest) -> str:
        return "user=b&user=a&user=c%20d&x="


def test_repeated_parameters_in_the_order_sent() -> None:
    signed = AWSRequest("GET", HOST + "/bucket?x&user=b&user=a&user=c%20d")
    ByName(CREDENTIALS, "s3", REGION).add_auth(signed)
    request = of_botocore(signed)
    claim = claim_of(request)
    with pytest.raises(errors.SignatureDoesNotMatch):
        claim.verify(SECRET)
    assert claim.matches_by_name(request, SECRET)
    assert not claim.matches_by_name(request, SECRET + "x")
    other = changed(request, target="/bucket?x&user=a&user=b&user=c%20d")
    assert not claim_of(other).matches_by_name(other, SECRET)


@pytest.mark.parametrize("request_of", [presigned, header_signed])
def test_no_other_query_matches_by_name(request_of: Callable[..., S3Request]) -> None:
    request = changed(request_of(url=HOST + "/bucket/key?a=1"), target="/bucket/key?a=2")
    if request_of is presigned:
        request = request_of(url=HOST + "/bucket/key?a=1")
    assert not claim_of(request).matches_by_name(request, SECRET)
