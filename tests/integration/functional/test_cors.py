"""Cross-origin rules as browsers see them, and who pays for requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OTHER, denied, public, put, statement  # noqa: F401 - `public` is a fixture
from tests.integration.functional.test_post_object import BOUNDARY, encoded, error
from tests.integration.functional.test_tagging import refused, signed_put
from tests.support.gateway import Gateway, client

RULES = [
    {
        "ID": "pages & more",
        "AllowedOrigins": ["https://app.example.org", "https://*.example.com"],
        "AllowedMethods": ["GET", "PUT"],
        "AllowedHeaders": ["Content-Type", "x-amz-*"],
        "ExposeHeaders": ["ETag", "x-amz-request-id"],
        "MaxAgeSeconds": 600,
    },
    {"AllowedOrigins": ["*"], "AllowedMethods": ["GET", "HEAD"], "MaxAgeSeconds": 0},
    {"AllowedOrigins": ["http*"], "AllowedMethods": ["POST"], "AllowedHeaders": ["*"]},
]
VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"
PAGE = "https://app.example.org"


@pytest.fixture
def shared(s3: Any, bucket: str) -> str:
    """A bucket with RULES and the object `k`."""
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES})
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    return bucket


def told(answer: httpx.Response) -> dict[str, str]:
    """What an answer says to a browser."""
    prefix = "access-control-"
    found = {name.removeprefix(prefix): value for name, value in answer.headers.items() if name.startswith(prefix)}
    return found | ({"vary": answer.headers["vary"]} if "vary" in answer.headers else {})


def asked(gateway: Gateway, path: str, origin: str, method: str, headers: str | None = None) -> httpx.Response:
    fields = {"origin": origin, "access-control-request-method": method}
    if headers is not None:
        fields["access-control-request-headers"] = headers
    return httpx.options(f"{gateway.endpoint}/{path}", headers=fields)


FIRST = {
    "allow-origin": PAGE,
    "allow-credentials": "true",
    "allow-methods": "GET, PUT",
    "expose-headers": "ETag, x-amz-request-id",
    "max-age": "600",
    "vary": VARY,
}
SECOND = {"allow-origin": "*", "allow-methods": "GET, HEAD", "max-age": "0", "vary": VARY}


def test_life_of_rules(s3: Any, bucket: str) -> None:
    refused((404, "NoSuchCORSConfiguration"), s3.get_bucket_cors, Bucket=bucket)
    s3.delete_bucket_cors(Bucket=bucket)
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES[1:2]})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES[1:2]
    answer = s3.delete_bucket_cors(Bucket=bucket)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    refused((404, "NoSuchCORSConfiguration"), s3.get_bucket_cors, Bucket=bucket)


def test_preflights(gateway: Gateway, shared: str) -> None:
    answer = asked(gateway, f"{shared}/k", PAGE, "PUT")
    assert (answer.status_code, answer.content, told(answer)) == (200, b"", FIRST)
    answer = asked(gateway, f"{shared}/k", "https://a.example.com", "PUT", "content-type, X-Amz-Meta-A")
    wanted = {"allow-origin": "https://a.example.com", "allow-headers": "content-type, x-amz-meta-a"}
    assert (answer.status_code, told(answer)) == (200, FIRST | wanted)
    assert told(asked(gateway, shared, "null", "GET")) == SECOND
    assert told(asked(gateway, f"{shared}/none?X-Amz-Signature=0", "https://else.where", "HEAD")) == SECOND
    third = asked(gateway, shared, "https://else.where", "POST", "Anything,At-All,")
    assert told(third)["allow-headers"] == "anything, at-all"
    for origin, method, headers in (
        ("https://else.where", "PUT", None),
        ("https://app.example.org.evil", "PUT", None),
        ("https://example.com", "PUT", None),
        ("HTTPS://app.example.org", "PUT", None),
        (PAGE, "DELETE", None),
        (PAGE, "PUT", "authorization"),
        ("https://else.where", "GET", "content-type"),
    ):
        answer = asked(gateway, f"{shared}/k", origin, method, headers)
        assert error(answer)[:2] == (403, "AccessForbidden"), (origin, method, headers)
        assert told(answer) == {}


def test_preflights_that_ask_nothing(gateway: Gateway, shared: str) -> None:
    url = f"{gateway.endpoint}/{shared}/k"
    assert error(httpx.options(url)) == (400, "BadRequest", "Insufficient information. Origin request header needed.")
    assert error(httpx.options(url, headers={"origin": PAGE}))[:2] == (400, "BadRequest")
    assert error(asked(gateway, f"{shared}/k", PAGE, "PATCH"))[:2] == (400, "BadRequest")
    assert error(asked(gateway, f"{shared}/k", PAGE, "put"))[:2] == (400, "BadRequest")
    found = error(asked(gateway, "no-such-bucket-at-all", PAGE, "GET"))
    assert found == (403, "AccessForbidden", "CORSResponse: Bucket not found")


def test_answers_to_requests(gateway: Gateway, s3: Any, shared: str) -> None:
    url = s3.generate_presigned_url("get_object", Params={"Bucket": shared, "Key": "k"})

    def answer(method: str = "GET", where: str = url, **headers: str) -> httpx.Response:
        return httpx.request(method, where, headers={name.replace("_", "-"): value for name, value in headers.items()})

    assert told(answer()) == {}
    found = answer(origin=PAGE)
    assert (found.content, told(found)) == (b"body", FIRST)
    assert told(answer(origin="https://else.where")) == SECOND
    assert told(answer(origin=PAGE, access_control_request_method="HEAD")) == SECOND
    assert told(answer(origin=PAGE, access_control_request_method="DELETE")) == {}
    assert told(answer(origin=PAGE, if_none_match=found.headers["etag"])) == FIRST
    assert told(answer(origin=PAGE, range="bytes=1-2")) == FIRST
    head = s3.generate_presigned_url("head_object", Params={"Bucket": shared, "Key": "k"})
    assert told(answer("HEAD", head, origin=PAGE)) == SECOND
    # a page must be able to read what went wrong
    for where, status in ((f"{gateway.endpoint}/{shared}/k", 403), (url.replace("Signature=", "Signature=A"), 403)):
        wrong = answer(where=where, origin=PAGE)
        assert (wrong.status_code, told(wrong)) == (status, FIRST)
    missing = s3.generate_presigned_url("get_object", Params={"Bucket": shared, "Key": "none"})
    wrong = answer(where=missing, origin=PAGE)
    assert (wrong.status_code, told(wrong)) == (404, FIRST)
    put_url = s3.generate_presigned_url("put_object", Params={"Bucket": shared, "Key": "new"})
    assert told(answer("PUT", put_url, origin=PAGE)) == FIRST
    assert told(answer("PUT", put_url, origin="https://else.where")) == {}
    delete = s3.generate_presigned_url("delete_object", Params={"Bucket": shared, "Key": "new"})
    gone = answer("DELETE", delete, origin=PAGE)
    assert (gone.status_code, told(gone)) == (204, {})
    assert told(answer(where=f"{gateway.endpoint}/no-such-bucket-at-all", origin=PAGE)) == {}
    assert told(answer(where=f"{gateway.endpoint}/", origin=PAGE)) == {}


def test_answers_to_forms(gateway: Gateway, s3: Any, shared: str) -> None:
    fields = s3.generate_presigned_post(shared, "k")["fields"]
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "origin": PAGE}
    for body, status in ((encoded(fields), 204), (encoded({**fields, "acl": "private"}), 403)):
        answer = httpx.post(f"{gateway.endpoint}/{shared}", content=body, headers=headers)
        assert (answer.status_code, told(answer)["allow-origin"]) == (status, PAGE)


def test_no_rules_say_nothing(gateway: Gateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"})
    answer = httpx.get(url, headers={"origin": PAGE})
    assert (answer.content, told(answer)) == (b"body", {})


def rule(**changed: str) -> str:
    fields = {"AllowedOrigin": "*", "AllowedMethod": "GET", **changed}
    content = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items() if value)
    return f"<CORSConfiguration><CORSRule>{content}</CORSRule></CORSConfiguration>"


BAD_RULES = [
    ("", "MalformedXML"),
    ("<CORSConfiguration/>", "MalformedXML"),
    ("<CORSConfiguration><CORSRule/></CORSConfiguration>", "MalformedXML"),
    ("<CORSConfiguration><Rule/></CORSConfiguration>", "MalformedXML"),
    (rule(AllowedOrigin=""), "MalformedXML"),
    (rule(AllowedMethod=""), "MalformedXML"),
    (rule(MaxAgeSeconds="soon"), "MalformedXML"),
    (rule(MaxAgeSeconds="-1"), "MalformedXML"),
    (rule(Colour="red"), "MalformedXML"),
    (rule(AllowedHeader="<a>b</a>"), "MalformedXML"),
    (rule(ID="<a>b</a>"), "MalformedXML"),
    (rule(ID="i" * 256), "InvalidRequest"),
    (rule(AllowedMethod="PATCH"), "InvalidRequest"),
    (rule(AllowedMethod="get"), "InvalidRequest"),
    (rule(AllowedOrigin="*.*"), "InvalidRequest"),
    (rule(AllowedHeader="*a*"), "InvalidRequest"),
    (rule(ExposeHeader="x-*"), "InvalidRequest"),
    (rule(ExposeHeader="a&#10;b"), "InvalidRequest"),
    (rule(ExposeHeader="&#228;"), "InvalidRequest"),
    ("<CORSConfiguration>" + rule()[19:-20] * 101 + "</CORSConfiguration>", "InvalidRequest"),
    (rule(ID="x" * 65_536), "MaxMessageLengthExceeded"),
]


@pytest.mark.parametrize(("body", "code"), BAD_RULES, ids=range(len(BAD_RULES)))
def test_rules_that_cannot_be(gateway: Gateway, bucket: str, body: str, code: str) -> None:
    answer = httpx.put(signed_put(gateway, "get_bucket_cors", Bucket=bucket), content=body)
    assert error(answer)[:2] == (400, code)


def test_rules_are_the_owners(s3: Any, other: Any, shared: str) -> None:
    for call, more in (
        (other.get_bucket_cors, {}),
        (other.delete_bucket_cors, {}),
        (other.put_bucket_cors, {"CORSConfiguration": {"CORSRules": RULES[1:2]}}),
    ):
        denied(call, Bucket=shared, **more)
    put(s3, shared, statement(shared, "s3:GetBucketCORS", principal={"AWS": OTHER}))
    assert other.get_bucket_cors(Bucket=shared)["CORSRules"] == RULES


# request payment


def payer(s3: Any, bucket: str, name: str | None = None) -> str:
    if name is not None:
        s3.put_bucket_request_payment(Bucket=bucket, RequestPaymentConfiguration={"Payer": name})
    found: str = s3.get_bucket_request_payment(Bucket=bucket)["Payer"]
    return found


def charged(answer: Mapping[str, Any]) -> str | None:
    return answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-request-charged")


def test_the_requester_pays(
    gateway: Gateway,
    s3: Any,
    other: Any,
    public: str,  # noqa: F811 - the fixture
) -> None:
    assert payer(s3, public) == "BucketOwner"
    assert payer(s3, public, "BucketOwner") == "BucketOwner"
    put(s3, public, statement(public, "s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject"))
    assert httpx.get(f"{gateway.endpoint}/{public}/k").status_code == 200
    assert charged(other.get_object(Bucket=public, Key="k", RequestPayer="requester")) is None
    assert payer(s3, public, "Requester") == "Requester"
    assert charged(s3.get_object(Bucket=public, Key="k")) is None
    for fields in ({}, {"x-amz-request-payer": "requester"}):
        assert httpx.get(f"{gateway.endpoint}/{public}/k", headers=fields).status_code == 403
    pays = {"RequestPayer": "requester"}
    delete = {"Delete": {"Objects": [{"Key": "n"}]}}
    for call, arguments in (
        (other.get_object, {"Key": "k"}),
        (other.head_object, {"Key": "k"}),
        (other.put_object, {"Key": "n", "Body": b""}),
        (other.list_objects_v2, {}),
        (other.copy_object, {"Key": "n", "CopySource": f"{public}/k"}),
        (other.create_multipart_upload, {"Key": "n"}),
        (other.delete_object, {"Key": "n"}),
    ):
        denied(call, Bucket=public, **arguments)
        assert charged(call(Bucket=public, **arguments, **pays)) == "requester"
    errors = other.delete_objects(Bucket=public, **delete)["Errors"]
    assert [one["Code"] for one in errors] == ["AccessDenied"]
    assert "Errors" not in other.delete_objects(Bucket=public, **delete, **pays)
    signer = client(gateway.endpoint, "OTHERKEY", "other-secret-0123", signature_version="s3v4")
    for more, fields, status in (({}, {}, 403), (pays, {"x-amz-request-payer": "requester"}, 200)):
        url = signer.generate_presigned_url("get_object", Params={"Bucket": public, "Key": "k", **more})
        assert httpx.get(url, headers=fields).status_code == status


def test_a_copy_pays_for_its_source(s3: Any, other: Any, public: str) -> None:  # noqa: F811 - the fixture
    mine = f"{public}-copies"
    other.create_bucket(Bucket=mine)
    put(s3, public, statement(public, "s3:GetObject"))
    payer(s3, public, "Requester")
    copy = {"Bucket": mine, "Key": "k", "CopySource": f"{public}/k"}
    denied(other.copy_object, **copy)
    assert charged(other.copy_object(**copy, RequestPayer="requester")) == "requester"
    other.delete_object(Bucket=mine, Key="k")
    other.delete_bucket(Bucket=mine)


def test_payers_that_are_none(gateway: Gateway, s3: Any, bucket: str) -> None:
    url = signed_put(gateway, "get_bucket_request_payment", Bucket=bucket)
    for payer_of in ("", "<Payer/>", "<Payer>Nobody</Payer>", "<Payer>Requester</Payer><Other/>"):
        body = f"<RequestPaymentConfiguration>{payer_of}</RequestPaymentConfiguration>"
        assert error(httpx.put(url, content=body))[:2] == (400, "MalformedXML")
    with pytest.raises(ClientError) as found:
        payer(s3, bucket, "Nobody")
    assert code_of(found) == (400, "MalformedXML")
    assert payer(s3, bucket) == "BucketOwner"
