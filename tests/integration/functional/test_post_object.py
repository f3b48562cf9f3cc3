"""Uploads by HTML forms."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_acl import writers  # noqa: F401 - a fixture
from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OTHER, put, statement
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client
from tests.support.signing import ALGORITHM, Key, sign_policy_v2, sign_text, stamp

BOUNDARY = "----form"


def encoded(fields: Mapping[str, str], file: bytes | None = b"body", filename: str = "a.txt") -> bytes:
    """The body of a form, the file last."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    if file is not None:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        parts.append(f"{head}Content-Type: text/html\r\n\r\n".encode() + file + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(
    gateway: Gateway, bucket: str, fields: Mapping[str, str], file: bytes | None = b"body", **more: Any
) -> httpx.Response:
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", **more.pop("headers", {})}
    return httpx.post(f"{gateway.endpoint}/{bucket}", content=encoded(fields, file, **more), headers=headers)


def error(answer: httpx.Response) -> tuple[int, str, str]:
    tree = ElementTree.fromstring(answer.content)
    return answer.status_code, tree.findtext("Code") or "", tree.findtext("Message") or ""


def policy_of(*conditions: Any, seconds: float = 600, **more: Any) -> str:
    expiration = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + seconds))
    return json.dumps({"expiration": expiration, "conditions": list(conditions), **more})


def signed_v2(policy: str, key: str = ACCESS_KEY, secret: str = SECRET_KEY) -> dict[str, str]:
    return sign_policy_v2(policy, Key(key, secret))


def uploaded(s3: Any, bucket: str, key: str) -> bytes:
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_signed_by_boto3(gateway: Gateway, s3: Any, bucket: str, version: str) -> None:
    fields = {"Content-Type": "text/plain", "x-amz-meta-who": "ädam", "success_action_status": "201"}
    conditions = [{name: value} for name, value in fields.items()] + [["content-length-range", 1, 100]]
    signer = client(gateway.endpoint, signature_version=version)
    made = signer.generate_presigned_post(bucket, "dir/${filename}", Fields=fields, Conditions=conditions)
    body = b"hello"
    answer = post(gateway, bucket, made["fields"], body, filename="C:\\files\\a b.txt")
    assert answer.status_code == 201, answer.text
    tree = ElementTree.fromstring(answer.content)
    etag = f'"{hashlib.md5(body).hexdigest()}"'
    assert [tree.findtext(name) for name in ("Bucket", "Key", "ETag")] == [bucket, "dir/a b.txt", etag]
    assert tree.tag == "PostResponse"
    assert answer.headers["etag"] == etag
    location = f"{gateway.endpoint}/{bucket}/dir/a%20b.txt"
    assert tree.findtext("Location") == answer.headers["location"] == location
    found = s3.get_object(Bucket=bucket, Key="dir/a b.txt", ChecksumMode="ENABLED")
    assert (found["Body"].read(), found["ContentType"], found["ChecksumType"]) == (body, "text/plain", "FULL_OBJECT")
    assert s3.head_object(Bucket=bucket, Key="dir/a b.txt")["ResponseMetadata"]["HTTPHeaders"]["x-amz-meta-who"]


def test_a_form_signed_with_version_2(gateway: Gateway, s3: Any, bucket: str) -> None:
    policy = policy_of({"bUcKeT": bucket}, ["StArTs-WiTh", "$KeY", "k"], ["eq", "$cache-control", "no-store"])
    answer = post(gateway, bucket, {"kEy": "k1", "Cache-Control": "no-store", **signed_v2(policy)})
    assert (answer.status_code, answer.content) == (204, b"")
    assert s3.get_object(Bucket=bucket, Key="k1")["CacheControl"] == "no-store"
    fields = {"key": "k1", "Cache-Control": "no-store", **signed_v2(policy)}
    for name, value, expected in (
        ("signature", fields["signature"][::-1], "SignatureDoesNotMatch"),
        ("signature", "ä", "SignatureDoesNotMatch"),
        ("policy", fields["policy"][:-4] + "AAAA", "SignatureDoesNotMatch"),
        ("AWSAccessKeyId", "NOBODY", "InvalidAccessKeyId"),
    ):
        assert error(post(gateway, bucket, {**fields, name: value}))[:2] == (403, expected)
    for name in ("signature", "policy", "AWSAccessKeyId"):
        code = error(post(gateway, bucket, {**fields, name: ""}))
        assert code == (
            400,
            "InvalidArgument",
            f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of the "
            "fields.",
        )


def test_what_the_signature_of_version_4_can_be_wrong_in(gateway: Gateway, bucket: str) -> None:
    fields = client(gateway.endpoint, signature_version="s3v4").generate_presigned_post(bucket, "k")["fields"]
    credential = fields["x-amz-credential"]
    for name, value, expected in (
        ("x-amz-signature", "0" * 64, (403, "SignatureDoesNotMatch")),
        ("x-amz-signature", "", (400, "InvalidArgument")),
        ("x-amz-algorithm", "AWS4-HMAC-SHA1", (400, "InvalidArgument")),
        ("x-amz-credential", credential.replace("us-east-1", "eu-1"), (400, "AuthorizationQueryParametersError")),
        ("x-amz-credential", "k", (400, "AuthorizationQueryParametersError")),
        ("x-amz-credential", credential.replace(ACCESS_KEY, "NOBODY"), (403, "InvalidAccessKeyId")),
        ("x-amz-date", "20200101T000000Z", (400, "InvalidArgument")),
        ("x-amz-security-token", "t", (400, "InvalidToken")),
        ("signature", "s", (400, "InvalidArgument")),
    ):
        assert error(post(gateway, bucket, {**fields, name: value}))[:2] == expected, (name, value)
    # the day of the credential is what the key was made for, and so may not be another than was signed
    changed = {**fields, "x-amz-credential": credential.replace(fields["x-amz-date"][:8], "20200101")}
    assert error(post(gateway, bucket, {**changed, "x-amz-date": "20200101T000000Z"}))[0] == 403
    assert post(gateway, bucket, fields).status_code == 204


DENIED = (403, "AccessDenied")


def test_every_field_but_the_exempt_needs_a_condition(gateway: Gateway, s3: Any, bucket: str) -> None:
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}))
    assert post(gateway, bucket, {"key": "k", "x-ignore-this": "1", "X-Ignore-that": "2", **signed}).status_code == 204
    for name in ("acl", "x-amz-meta-a", "Content-Type", "success_action_redirect", "x-amz-storage-class", "unknown"):
        found = error(post(gateway, bucket, {"key": "k", name: "private", **signed}))
        assert found == (*DENIED, f"Invalid according to Policy: Extra input fields: {name.lower()}")
    found = error(post(gateway, bucket, {"key": "k", **signed_v2(policy_of({"key": "k"}))}))
    assert found == (*DENIED, "Invalid according to Policy: Extra input fields: bucket")
    # what is signed for one bucket says nothing of another, whatever the form calls it
    elsewhere = signed_v2(policy_of({"bucket": "another"}, {"key": "k"}))
    assert error(post(gateway, bucket, {"key": "k", "bucket": "another", **elsewhere}))[:2] == DENIED
    # a header is not covered by the policy
    fields = {"key": "k", **signed}
    assert error(post(gateway, bucket, fields, headers={"x-amz-meta-a": "1"}))[:2] == (501, "NotImplemented")
    assert post(gateway, bucket, fields, headers={"cache-control": "no-store"}).status_code == 204
    assert "CacheControl" not in s3.head_object(Bucket=bucket, Key="k")


def test_conditions_must_hold(gateway: Gateway, s3: Any, bucket: str) -> None:
    def tried(key: str, *conditions: Any, **fields: str) -> tuple[int, str]:
        signed = signed_v2(policy_of({"bucket": bucket}, ["starts-with", "$key", ""], *conditions))
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        answer = post(gateway, bucket, {"key": key, **named, **signed})
        return (204, "") if answer.status_code == 204 else error(answer)[:2]

    assert tried("k") == (204, "")
    assert tried("k", {"key": "k"}) == (204, "")
    assert tried("l", {"key": "k"}) == DENIED
    assert tried("k", ["starts-with", "$key", "user/"]) == DENIED
    assert tried("user/${filename}", ["eq", "$key", "user/a.txt"]) == (204, "")
    assert tried(r"\$k", ["eq", "$key", r"\$k"]) == (204, "")
    assert tried("k", ["starts-with", "$x-amz-meta-a", "b"]) == DENIED
    # any value is right, but there must be one
    for operator in ("starts-with", "eq"):
        assert tried("k", [operator, "$x-amz-meta-a", ""]) == DENIED
        assert tried("k", [operator, "$x-amz-meta-a", ""], x_amz_meta_a="") == (204, "")
    assert tried("k", ["starts-with", "$x-amz-meta-a", ""], x_amz_meta_a="a") == (204, "")
    assert tried("k", ["starts-with", "$x-amz-server-side-encryption", ""]) == (204, "")
    assert tried("k", ["starts-with", "$Content-Type", "image/"], Content_Type="image/png,image/gif") == (204, "")
    assert tried("k", ["starts-with", "$Content-Type", "image/"], Content_Type="image/png,text/html") == DENIED
    assert tried("k", ["content-length-range", 0, 4]) == (204, "")
    assert tried("k", ["content-length-range", "4", "4"]) == (204, "")
    assert tried("k", ["content-length-range", 0, 3]) == (400, "EntityTooLarge")
    assert tried("k", ["content-length-range", 5, 10]) == (400, "EntityTooSmall")
    assert tried("k", ["content-length-range", 0, 10], ["content-length-range", 0, 3]) == (400, "EntityTooLarge")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"conditions": []}',
        '{"expiration": "2099-01-01T00:00:00Z"}',
        '{"EXPIRATION": "2099-01-01T00:00:00Z", "conditions": []}',
        '{"expiration": "2099-01-01T00:00:00Z", "CONDITIONS": []}',
        '{"expiration": "2099-01-01 00:00:00", "conditions": []}',
        '{"expiration": 4102444800, "conditions": []}',
        '{"expiration": "2099-01-01T00:00:00Z", "conditions": {}}',
        *(
            '{"expiration": "2099-01-01T00:00:00Z", "conditions": [' + one + "]}"
            for one in (
                "{}", '{"key": "k", "acl": "private"}', '{"key": 1}', "1", "[]", '["eq", "$key"]', '["eq", "key", "k"]',
                '["like", "$key", "k"]', '["content-length-range", 0]', '["content-length-range", -1, 0]',
                '["content-length-range", 0, "x"]', '["content-length-range", true, 1]', '["eq", "$key", ["k"]]',
            )
        ),
    ],
)  # fmt: skip
def test_policies_that_are_none(gateway: Gateway, bucket: str, text: str) -> None:
    assert error(post(gateway, bucket, {"key": "k", **signed_v2(text)}))[:2] == (400, "InvalidPolicyDocument")


@pytest.mark.parametrize(
    "name", ["x-amz-meta-日", "x-amz-meta-a b", "x-amz-meta-a:b", "x-amz-meta-ä", "x-amz-meta-a\tb"]
)
def test_fields_that_no_header_can_be(gateway: Gateway, s3: Any, bucket: str, name: str) -> None:
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, ["starts-with", f"${name}", ""]))
    assert error(post(gateway, bucket, {"key": "k", name: "v", **signed}))[:2] == (400, "InvalidArgument")
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, ["starts-with", "$x-amz-meta-a", ""]))
    found = error(post(gateway, bucket, {"key": "k", "x-amz-meta-a": "v\r\nevil: 1", **signed}))
    assert found[:2] == (400, "InvalidArgument")


def test_the_owner_that_a_form_expects(gateway: Gateway, s3: Any, bucket: str) -> None:
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, ["starts-with", "$x-amz-expected-bucket-owner", ""]))
    fields = {"key": "k", **signed}
    assert error(post(gateway, bucket, {"x-amz-expected-bucket-owner": "0" * 12, **fields}))[:2] == DENIED
    owner = s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"]
    assert post(gateway, bucket, {"x-amz-expected-bucket-owner": owner, **fields}).status_code == 204


def test_a_policy_expires(gateway: Gateway, bucket: str) -> None:
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, seconds=-1))
    assert error(post(gateway, bucket, {"key": "k", **signed})) == (
        *DENIED,
        "Invalid according to Policy: Policy expired.",
    )


def test_what_success_is_answered_with(gateway: Gateway, s3: Any, bucket: str) -> None:
    def answer(**fields: str) -> httpx.Response:
        tests = [["starts-with", f"${name}", ""] for name in fields]
        signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k +"}, *tests))
        return post(gateway, bucket, {"key": "k +", **fields, **signed})

    etag = hashlib.md5(b"body").hexdigest()
    for status, expected in (("200", 200), ("201", 201), ("204", 204), ("404", 204), ("", 204)):
        assert answer(success_action_status=status).status_code == expected
    told = f"bucket={bucket}&key=k%20%2B&etag=%22{etag}%22"
    for wanted, expected_url in (
        ("https://example.org/done", f"https://example.org/done?{told}"),
        ("https://example.org/done?a=b#c", f"https://example.org/done?a=b&{told}#c"),
    ):
        for name in ("success_action_redirect", "redirect"):
            found = answer(**{name: wanted, "success_action_status": "200"})
            assert (found.status_code, found.headers["location"]) == (303, expected_url)
    for wanted in ("done", "javascript:alert(1)", "https://", "http://[", "//example.org"):
        assert answer(success_action_redirect=wanted).status_code == 204
    broken = answer(success_action_redirect="http://e.org/\r\nx-evil: 1")
    assert "x-evil" not in broken.headers


def test_checksums_of_the_file(gateway: Gateway, s3: Any, bucket: str) -> None:
    sha = base64.b64encode(hashlib.sha256(b"body").digest()).decode()
    md5 = base64.b64encode(hashlib.md5(b"body").digest()).decode()
    other = base64.b64encode(hashlib.sha256(b"other").digest()).decode()

    def sent(**given: str) -> httpx.Response:
        named = [["starts-with", f"${name}", ""] for name in given]
        signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, *named))
        return post(gateway, bucket, {"key": "k", **given, **signed})

    assert sent(**{"x-amz-checksum-sha256": sha, "Content-MD5": md5}).status_code == 204
    assert s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")["ChecksumSHA256"] == sha
    for name, value, code in (
        ("x-amz-checksum-sha256", other, "BadDigest"),
        ("x-amz-checksum-sha256", "nonsense", "InvalidRequest"),
        ("Content-MD5", other[:22] + "==", "BadDigest"),
    ):
        assert error(sent(**{name: value}))[:2] == (400, code)


def test_forms_that_are_none(gateway: Gateway, s3: Any, bucket: str) -> None:
    fields = {"key": "k", **signed_v2(policy_of({"bucket": bucket}, ["starts-with", "$key", ""]))}
    url = f"{gateway.endpoint}/{bucket}"
    form = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}

    def sent(content: bytes, headers: Mapping[str, str] = form) -> tuple[int, str]:
        return error(httpx.post(url, content=content, headers=headers))[:2]

    body = encoded(fields)
    malformed = (400, "MalformedPOSTRequest")
    assert sent(body, {"content-type": "application/x-www-form-urlencoded"}) == (412, "PreconditionFailed")
    assert sent(body, {}) == (412, "PreconditionFailed")
    assert sent(body, {"content-type": "multipart/form-data"}) == malformed
    assert sent(body, {"content-type": f"multipart/form-data; boundary={'b' * 300}"}) == malformed
    assert sent(body, {"content-type": "multipart/form-data; boundary=other"}) == malformed
    assert sent(b"nonsense") == malformed
    assert sent(body[: -len(BOUNDARY) - 8]) == malformed  # the file does not end
    assert sent(body.replace(b'; name="policy"', b"")) == malformed
    assert sent(body.replace(b'name="key"', b'name="k\xff"')) == malformed
    assert sent(b"") == (400, "InvalidArgument")
    assert sent(encoded(fields, None)) == (400, "InvalidArgument")
    assert sent(encoded({**fields, "key": ""})) == (400, "InvalidArgument")
    assert sent(encoded({name: value for name, value in fields.items() if name != "key"})) == (400, "InvalidArgument")
    assert sent(encoded({**fields, "key": "k" * 1025})) == (400, "KeyTooLongError")
    assert sent(encoded({**fields, "KEY": "evil"})) == (400, "InvalidArgument")
    assert sent(encoded({**fields, "x-ignore-a": "a" * 20_480})) == (400, "MaxPostPreDataLengthExceeded")
    assert sent(encoded({**fields, **{f"x-ignore-{number}": "" for number in range(1000)}}))[1].startswith("MaxPost")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert error(post(gateway, "no-such-bucket-here", fields))[:2] == (404, "NoSuchBucket")
    # what comes behind the file is ignored
    end = f"--{BOUNDARY}--\r\n".encode()
    more = body.removesuffix(end) + encoded({"key": "evil", "acl": "public-read"}, None)
    assert httpx.post(url, content=more, headers=form).status_code == 204
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]
    log = gateway.data.with_name(f"{gateway.data.name}.log")
    assert "python_multipart" not in log.read_text(), "what anybody may send fills no log"


def test_the_signer_needs_the_right(gateway: Gateway, s3: Any, other: Any, bucket: str) -> None:
    fields = other.generate_presigned_post(bucket, "k")["fields"]
    assert error(post(gateway, bucket, fields))[:2] == DENIED
    allowed = statement(bucket, "s3:PutObject", principal={"AWS": OTHER}, keys="in/*")
    only_forms = {"StringEquals": {"s3:authType": "POST"}}
    put(s3, bucket, allowed | {"Condition": only_forms})
    assert error(post(gateway, bucket, fields))[:2] == DENIED
    fields = other.generate_presigned_post(bucket, "in/k")["fields"]
    assert post(gateway, bucket, fields).status_code == 204
    with pytest.raises(ClientError) as refused:
        other.put_object(Bucket=bucket, Key="in/k", Body=b"")
    assert code_of(refused) == DENIED
    # a request that is signed as others are is no form's
    fields = {"key": "k"}
    url = client(gateway.endpoint, signature_version="s3v4").generate_presigned_url(
        "list_objects", Params={"Bucket": bucket}, HttpMethod="POST"
    )
    form = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = httpx.post(url, content=encoded(fields), headers=form)
    assert error(answer)[:2] == (400, "InvalidArgument")


def test_a_policy_says_how_old_a_signature_may_be(gateway: Gateway, s3: Any, bucket: str) -> None:
    old = {"Condition": {"NumericGreaterThan": {"s3:signatureAge": "600000"}}, "Effect": "Deny"}
    put(s3, bucket, statement(bucket, "s3:PutObject", **old))

    def form(age: float) -> tuple[int, str]:
        text = stamp(-age)
        scope = f"{text[:8]}/us-east-1/s3/aws4_request"
        fields = {
            "key": "k",
            "x-amz-algorithm": ALGORITHM,
            "x-amz-credential": f"{ACCESS_KEY}/{scope}",
            "x-amz-date": text,
        }
        policy = policy_of({"bucket": bucket}, *({name: value} for name, value in fields.items()))
        fields["policy"] = base64.b64encode(policy.encode()).decode()
        fields["x-amz-signature"] = sign_text(SECRET_KEY, scope, fields["policy"])
        answer = post(gateway, bucket, fields)
        return (204, "") if answer.status_code == 204 else error(answer)[:2]

    assert form(0) == (204, "")
    assert form(601) == DENIED
    # version 2 does not say when it was signed, and counts as new
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}))
    assert post(gateway, bucket, {"key": "k", **signed}).status_code == 204


def test_anonymous_forms(gateway: Gateway, s3: Any, bucket: str, writers: str) -> None:  # noqa: F811 - the fixture
    assert error(post(gateway, bucket, {"key": "k"}))[:2] == DENIED
    s3.put_bucket_acl(Bucket=writers, ACL="public-read-write")
    assert post(gateway, writers, {"key": "k", "acl": "public-read", "Content-Type": "text/plain"}).status_code == 204
    found = httpx.get(f"{gateway.endpoint}/{writers}/k")
    assert (found.content, found.headers["content-type"]) == (b"body", "text/plain")
    assert error(post(gateway, writers, {"key": "k", "acl": "none"}))[:2] == (400, "InvalidArgument")
    assert error(post(gateway, writers, {"key": "k", "AWSAccessKeyId": "A"}))[:2] == (400, "InvalidArgument")


@pytest.mark.parametrize("size", [0, 1, 200_000, 5_000_000])
def test_files_of_any_size(gateway: Gateway, s3: Any, bucket: str, size: int) -> None:
    # line ends and beginnings of boundaries are the file's, wherever they fall into its pieces
    body = (b"\r\n--" + BOUNDARY[:-1].encode() + b"\r\n-" * 3 + bytes(range(256))) * (size // 280 + 1)
    body = body[:size]
    fields = s3.generate_presigned_post(bucket, "k")["fields"]
    assert post(gateway, bucket, fields, body).status_code == 204
    assert uploaded(s3, bucket, "k") == body
    form = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    whole = encoded(fields, body + b"!")
    pieces = (whole[at : at + 9973] for at in range(0, len(whole), 9973))
    assert httpx.post(f"{gateway.endpoint}/{bucket}", content=pieces, headers=form).status_code == 204
    assert uploaded(s3, bucket, "k") == body + b"!"


def test_on_a_virtual_host(gateway: Gateway, s3: Any, bucket: str) -> None:
    fields = s3.generate_presigned_post(bucket, "k")["fields"]
    form = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "host": f"{bucket}.s3.test"}
    answer = httpx.post(f"{gateway.endpoint}/", content=encoded(fields), headers=form)
    assert (answer.status_code, answer.headers["location"]) == (204, f"http://{bucket}.s3.test/k")
    assert client(gateway.endpoint).head_object(Bucket=bucket, Key="k")["ContentLength"] == 4
