"""What requests say to conditions: each key from its one source, and from nowhere else."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.auth.condition_context import GLOBAL_KEYS, TARGET_KEYS, ConditionContext
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.wire.request import S3Request

BUCKET = Bucket(1, "b", "123456789012", "eu-west-1", 0)


def facts(
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    operation: str = "PutObject",
    *,
    copying_from: bool = False,
    version_id: str | None = None,
) -> ConditionContext:
    request = S3Request()
    found = headers or {}
    request.set_headers([name.encode() for name in found], [value.encode("latin-1") for value in found.values()])
    request.query = query or {}
    request.operation = operation
    request.client, request.scheme = "192.0.2.7", "http"
    return ConditionContext(request, BUCKET, copying_from=copying_from, version_id=version_id)


@pytest.mark.parametrize("key", sorted(GLOBAL_KEYS.keys() | TARGET_KEYS.keys()))
def test_f69_no_header_or_parameter_bears_the_name_of_a_key(key: str) -> None:
    short = key.partition(":")[2]
    spoofed = {key: "evil", short: "evil", f"x-amz-{short}": "evil"}
    own = {"referer", "user-agent", "if-match", "if-none-match", "x-amz-copy-source"}
    headers = {name: value for name, value in spoofed.items() if name not in own and not name.startswith("x-amz-x-")}
    headers = {name: value for name, value in headers.items() if not key.startswith("s3:x-amz-") and name != "referer"}
    assert facts(headers, spoofed, "ListBuckets").find_values(key) in (facts().find_values(key), ("false",))


def test_keys_of_listings_are_of_listings_only() -> None:
    query = {"prefix": "p/", "delimiter": "/", "max-keys": "5"}
    for key, expected in (("s3:prefix", "p/"), ("s3:delimiter", "/"), ("s3:max-keys", "5")):
        assert facts(query=query, operation="ListObjects").find_values(key) == (expected,)
        assert facts(query=query, operation="ListObjectVersions").find_values(key) == (expected,)
        assert facts(query=query, operation="GetObject").find_values(key) is None
        assert facts(operation="ListObjects").find_values(key) is None


def test_the_source_of_a_copy_has_no_keys_of_its_target() -> None:
    headers = {"x-amz-copy-source": "/b/k%20y?versionId=null", "x-amz-acl": "private", "referer": "r"}
    assert facts(headers).find_values("s3:x-amz-copy-source") == ("b/k y",)
    source = facts(headers, copying_from=True, version_id="null")
    assert source.find_values("s3:x-amz-copy-source") is None
    assert source.find_values("s3:x-amz-acl") is None
    assert source.find_values("s3:versionid") == ("null",)
    assert source.find_values("aws:referer") == ("r",)


def test_a_copy_source_that_is_none() -> None:
    with pytest.raises(InvalidArgument):
        facts({"x-amz-copy-source": "b"}).find_values("s3:x-amz-copy-source")


def test_who_and_where() -> None:
    found = facts()
    assert found.find_values("aws:sourceip") == ("192.0.2.7",)
    assert found.find_values("aws:securetransport") == ("false",)
    assert found.find_values("aws:principaltype") == ("Anonymous",)
    assert found.find_values("aws:principalarn") is None
    assert found.find_values("aws:resourceaccount") == ("123456789012",)
    assert found.find_values("aws:requestedregion") == ("eu-west-1",)
    assert found.find_values("aws:sourcevpce") is None
    found.request.account_id = "210987654321"
    assert found.find_values("aws:principalarn") == ("arn:aws:iam::210987654321:root",)
    assert found.find_values("aws:principalaccount") == ("210987654321",)
    assert found.find_values("aws:userid") == ("210987654321",)
    assert found.find_values("aws:username") is None


def test_of_what_is_in_no_bucket() -> None:
    found = facts()
    found.bucket = None
    assert found.find_values("aws:requestedregion") is None
    assert found.find_values("aws:resourceaccount") is None
    found.request.region, found.request.account_id = "eu-west-1", "210987654321"
    assert found.find_values("aws:requestedregion") == ("eu-west-1",)
    assert found.find_values("aws:resourceaccount") == found.find_values("s3:resourceaccount") == ("210987654321",)


class Claim:
    version, via = "v4", "query"


def test_signatures() -> None:
    found = facts(query={"X-Amz-Date": "20200101T000000Z"})
    assert found.find_values("s3:signatureage") is None
    found.request.signature = Claim()
    assert found.find_values("s3:authtype") == ("REST-QUERY-STRING",)
    assert found.find_values("s3:signatureversion") == ("AWS4-HMAC-SHA256",)
    (age,) = found.find_values("s3:signatureage") or ("",)
    assert int(age) == int((found.now - 1577836800) * 1000)
    found.request.query = {"X-Amz-Date": "yesterday"}
    assert found.find_values("s3:signatureage") is None
    found.request.signature.version = "v2"
    assert found.find_values("s3:signatureage") == ("0",)
    found.request.signature.via = "header"
    assert found.find_values("s3:signatureage") is None
