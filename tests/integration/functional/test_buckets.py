"""Buckets, and what was never configured."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError, ParamValidationError

from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.place("postgres", "tree")


def test_life_of_a_bucket(s3: Any, bucket: str) -> None:
    assert bucket in [entry["Name"] for entry in s3.list_buckets()["Buckets"]]
    head = s3.head_bucket(Bucket=bucket)
    assert head["BucketRegion"] == "us-east-1"
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    with pytest.raises(ClientError) as error:
        s3.delete_bucket(Bucket=bucket)
    assert code_of(error) == (409, "BucketNotEmpty")
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)
    with pytest.raises(ClientError) as error:
        s3.head_bucket(Bucket=bucket)
    assert code_of(error)[0] == 404
    s3.create_bucket(Bucket=bucket)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_names_are_shared_by_all_accounts(s3: Any, other: Any, bucket: str) -> None:
    assert s3.create_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    with pytest.raises(ClientError) as error:
        other.create_bucket(Bucket=bucket)
    assert code_of(error) == (409, "BucketAlreadyExists")
    assert bucket not in [entry["Name"] for entry in other.list_buckets()["Buckets"]]


@pytest.mark.parametrize(
    "name", ["a", "ab", "A-bucket", "a..b", "192.168.0.1", "xn--abc", "-abc", "abc-", "a_b", "x" * 64]
)
def test_names_that_are_none(s3: Any, name: str) -> None:
    with pytest.raises((ClientError, ParamValidationError)) as error:
        s3.create_bucket(Bucket=name)
    if isinstance(error.value, ClientError):
        assert code_of(error) == (400, "InvalidBucketName")


def test_location_constraint(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.create_bucket(Bucket=bucket + "-x", CreateBucketConfiguration={"LocationConstraint": "eu-nowhere-9"})
    assert code_of(error) == (400, "InvalidLocationConstraint")
    assert bucket + "-x" not in [entry["Name"] for entry in s3.list_buckets()["Buckets"]]


def test_list_buckets_pages(s3: Any, bucket: str) -> None:
    names = [f"{bucket}-page-{number}" for number in range(5)]
    for name in names:
        s3.create_bucket(Bucket=name)
    found, options = [], {}
    while True:
        page = s3.list_buckets(MaxBuckets=2, Prefix=f"{bucket}-page-", **options)
        found += [entry["Name"] for entry in page["Buckets"]]
        if "ContinuationToken" not in page:
            break
        options = {"ContinuationToken": page["ContinuationToken"]}
    assert found == names


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("get_bucket_tagging", "NoSuchTagSet"),
        ("get_bucket_policy", "NoSuchBucketPolicy"),
        ("get_bucket_policy_status", "NoSuchBucketPolicy"),
        ("get_bucket_cors", "NoSuchCORSConfiguration"),
        ("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration"),
        ("get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError"),
        ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ],
)
def test_never_configured(s3: Any, bucket: str, call: str, code: str) -> None:
    with pytest.raises(ClientError) as error:
        getattr(s3, call)(Bucket=bucket)
    assert code_of(error) == (404, code)


def test_what_holds_anyway(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="private")
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    for acl in (s3.get_bucket_acl(Bucket=bucket), s3.get_object_acl(Bucket=bucket, Key="k")):
        assert [grant["Permission"] for grant in acl["Grants"]] == ["FULL_CONTROL"]
        assert acl["Grants"][0]["Grantee"]["ID"] == acl["Owner"]["ID"]
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    s3.put_object_acl(Bucket=bucket, Key="k", ACL="bucket-owner-full-control")
    s3.put_object_acl(Bucket=bucket, Key="k", AccessControlPolicy={"Owner": acl["Owner"], "Grants": acl["Grants"]})
    for call in ("policy", "tagging", "cors", "lifecycle", "encryption"):
        getattr(s3, f"delete_bucket_{call}")(Bucket=bucket)
    assert s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == []


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("get_bucket_accelerate_configuration", {}),
        ("get_bucket_replication", {}),
    ],
)
def test_not_built(s3: Any, bucket: str, call: str, options: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as error:
        getattr(s3, call)(Bucket=bucket, **options)
    assert code_of(error) == (501, "NotImplemented")


@pytest.mark.parametrize("options", [{"ServerSideEncryption": "aws:kms:dsse"}])
def test_headers_of_what_is_not_built_are_refused(s3: Any, bucket: str, options: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", **options)
    assert code_of(error) == (501, "NotImplemented")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_expected_owner(s3: Any, bucket: str) -> None:
    owner = s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"]
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ExpectedBucketOwner=owner)
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k2", Body=b"x", ExpectedBucketOwner="1" * 12)
    assert code_of(error) == (403, "AccessDenied")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]


def test_preflight_without_cors(gateway: Gateway, bucket: str) -> None:
    for headers, status, code in [
        ({}, 400, "BadRequest"),
        ({"Origin": "https://example.org"}, 400, "BadRequest"),
        ({"Origin": "https://example.org", "Access-Control-Request-Method": "GET"}, 403, "AccessForbidden"),
    ]:
        answer = httpx.options(f"{gateway.endpoint}/{bucket}/k", headers=headers)
        assert answer.status_code == status
        assert f"<Code>{code}</Code>" in answer.text
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("name", ["metadataAnnotationTable", "metadataInventoryTable", "metadataTable", "abac"])
def test_sub_resources_that_are_not_built(gateway: Gateway, bucket: str, name: str) -> None:
    def ask(request: Any, **_: Any) -> None:
        request.url += f"?{name}="

    asking = client(gateway.endpoint)
    asking.meta.events.register("before-sign.s3.CreateBucket", ask)
    with pytest.raises(ClientError) as error:
        asking.create_bucket(Bucket=bucket)
    assert code_of(error) == (501, "NotImplemented")
