"""Bucket policies and public access blocks, enforced."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from sluice_s3.app.access.account import account_number
from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway

OTHER = f"arn:aws:iam::{account_number('other-id')}:root"
OPEN = {
    "BlockPublicAcls": False,
    "IgnorePublicAcls": False,
    "BlockPublicPolicy": False,
    "RestrictPublicBuckets": False,
}


def statement(bucket: str, *actions: str, principal: Any = "*", keys: str = "*", **fields: Any) -> dict[str, Any]:
    resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/{keys}"]
    return {"Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": resources} | fields


def put(s3: Any, bucket: str, *statements: dict[str, Any]) -> None:
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


@pytest.fixture
def public(s3: Any, bucket: str) -> str:
    """A bucket of which nothing is blocked, with the object `k`."""
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    return bucket


def denied(call: Any, **arguments: Any) -> None:
    with pytest.raises(ClientError) as error:
        call(**arguments)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_life_of_a_policy(s3: Any, bucket: str, other: Any) -> None:
    with pytest.raises(ClientError) as error:
        s3.get_bucket_policy(Bucket=bucket)
    assert code_of(error) == (404, "NoSuchBucketPolicy")
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement(bucket, "s3:*", principal={"AWS": OTHER})]})
    s3.put_bucket_policy(Bucket=bucket, Policy=text)
    assert s3.get_bucket_policy(Bucket=bucket)["Policy"] == text
    assert s3.get_bucket_policy_status(Bucket=bucket)["PolicyStatus"] == {"IsPublic": False}
    s3.delete_bucket_policy(Bucket=bucket)
    s3.delete_bucket_policy(Bucket=bucket)
    for call in (s3.get_bucket_policy, s3.get_bucket_policy_status):
        with pytest.raises(ClientError) as error:
            call(Bucket=bucket)
        assert code_of(error) == (404, "NoSuchBucketPolicy")


def test_a_public_policy_is_blocked_by_a_setting_that_the_refusal_names(s3: Any, bucket: str) -> None:
    text = json.dumps({"Version": "2012-10-17", "Statement": [statement(bucket, "s3:GetObject")]})
    with pytest.raises(ClientError, match="blocked by the BlockPublicPolicy block public access setting") as error:
        s3.put_bucket_policy(Bucket=bucket, Policy=text)
    assert code_of(error) == (403, "AccessDenied")
    assert f'"arn:aws:s3:::{bucket}"' in error.value.response["Error"]["Message"]
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_bucket_policy(Bucket=bucket, Policy=text)


def test_another_account_may_do_what_the_policy_says_and_no_more(s3: Any, other: Any, public: str) -> None:
    denied(other.get_object, Bucket=public, Key="k")
    put(s3, public, statement(public, "s3:GetObject", "s3:ListBucket", principal={"AWS": OTHER}))
    assert other.get_object(Bucket=public, Key="k")["Body"].read() == b"body"
    assert [entry["Key"] for entry in other.list_objects_v2(Bucket=public)["Contents"]] == ["k"]
    other.head_bucket(Bucket=public)
    denied(other.put_object, Bucket=public, Key="n", Body=b"")
    denied(other.delete_object, Bucket=public, Key="k")
    denied(other.get_bucket_policy, Bucket=public)
    denied(other.get_object_acl, Bucket=public, Key="k")
    put(s3, public, statement(public, "s3:PutObject", "s3:DeleteObject", principal={"AWS": OTHER}, keys="in/*"))
    denied(other.get_object, Bucket=public, Key="k")
    other.put_object(Bucket=public, Key="in/n", Body=b"x")
    other.delete_object(Bucket=public, Key="in/n")
    denied(other.put_object, Bucket=public, Key="n", Body=b"")


def test_canonical_ids_name_accounts(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:GetObject", principal={"CanonicalUser": "other-id"}))
    other.get_object(Bucket=public, Key="k")


def test_f65_explicit_deny_beats_owner_and_allow(s3: Any, other: Any, public: str) -> None:
    put(
        s3,
        public,
        statement(public, "s3:*"),
        statement(public, "s3:GetObject", "s3:*Policy", keys="k", Effect="Deny"),
    )
    for who in (s3, other):
        denied(who.get_object, Bucket=public, Key="k")
        denied(who.head_object, Bucket=public, Key="k")
        denied(who.get_object_attributes, Bucket=public, Key="k", ObjectAttributes=["ETag"])
        denied(who.copy_object, Bucket=public, Key="copy", CopySource=f"{public}/k")
    denied(other.delete_bucket_policy, Bucket=public)
    # but nobody locks himself out
    s3.get_bucket_policy(Bucket=public)
    s3.delete_bucket_policy(Bucket=public)
    s3.get_object(Bucket=public, Key="k")


def test_f68_anonymous_requests(s3: Any, public: str, gateway: Gateway) -> None:
    place = f"{gateway.endpoint}/{public}"
    with httpx.Client() as anonymous:
        for path in ("", "/k", "?versions", "?policy", "?uploads"):
            assert anonymous.get(place + path).status_code == 403
        put(s3, public, statement(public, "s3:GetObject", "s3:PutObject", keys="k*"))
        assert anonymous.get(f"{place}/k").content == b"body"
        assert anonymous.head(f"{place}/k").status_code == 200
        assert anonymous.put(f"{place}/k2", content=b"more").status_code == 200
        assert anonymous.get(f"{place}/k2").content == b"more"
        for path in ("", "?versions", "/other", "/k?acl", "?policy"):
            assert anonymous.get(place + path).status_code == 403, path
        assert anonymous.get(f"{place}/k3").status_code == 403, "who may not list is not told what is not there"
        assert anonymous.delete(f"{place}/k").status_code == 403
        put(s3, public, statement(public, "s3:GetObject", "s3:ListBucket", keys="k*"))
        assert anonymous.get(f"{place}/k3").status_code == 404
        assert anonymous.get(place).status_code == 200
        assert anonymous.get(f"{place}?versions").status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "headers", "says"),
    [
        ("POST", "/new?uploads", {}, "Anonymous users cannot initiate multipart uploads.  Please authenticate."),
        ("PUT", "/new", {"x-amz-copy-source": "{}/k"}, "Anonymous users cannot copy objects.  Please authenticate."),
        ("PUT", "/new?partNumber=1&uploadId=x", {"x-amz-copy-source": "{}/k"}, "cannot copy objects"),
        ("PUT", "?acl", {"x-amz-acl": "private"}, "Anonymous users cannot invoke this API. Please authenticate."),
        ("PUT", "/k?acl", {"x-amz-acl": "private"}, "Anonymous users cannot invoke this API. Please authenticate."),
        ("GET", "?ownershipControls", {}, "s3:GetBucketOwnershipControls does not support Anonymous requests!"),
        ("DELETE", "?ownershipControls", {}, "s3:PutBucketOwnershipControls does not support Anonymous requests!"),
    ],
)
def test_f68_what_nobody_can_give_to_everybody(
    s3: Any, other: Any, public: str, gateway: Gateway, method: str, path: str, headers: dict[str, str], says: str
) -> None:
    put(s3, public, statement(public, "s3:*"))
    named = {name: value.format(public) for name, value in headers.items()}
    answer = httpx.request(method, f"{gateway.endpoint}/{public}{path}", headers=named)
    assert (answer.status_code, "<Code>AccessDenied</Code>" in answer.text, says in answer.text) == (403, True, True)
    assert [found["Key"] for found in s3.list_objects_v2(Bucket=public)["Contents"]] == ["k"]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=public)
    other.copy_object(Bucket=public, Key="new", CopySource=f"{public}/k")  # who is somebody may


def test_f68_restrict_public_buckets(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:*"))
    assert s3.get_bucket_policy_status(Bucket=public)["PolicyStatus"] == {"IsPublic": True}
    other.list_object_versions(Bucket=public)
    s3.put_public_access_block(Bucket=public, PublicAccessBlockConfiguration=OPEN | {"RestrictPublicBuckets": True})
    for call in (other.list_object_versions, other.list_objects_v2, other.get_bucket_policy):
        denied(call, Bucket=public)
    s3.list_object_versions(Bucket=public)


def test_public_policies_are_blocked(s3: Any, bucket: str, other: Any) -> None:
    """As AWS makes new buckets."""
    block = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    assert block == dict.fromkeys(OPEN, True)
    with pytest.raises(ClientError) as error:
        put(s3, bucket, statement(bucket, "s3:GetObject"))
    assert code_of(error) == (403, "AccessDenied")
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": OTHER}))


def test_life_of_a_public_access_block(s3: Any, bucket: str) -> None:
    wanted = OPEN | {"IgnorePublicAcls": True}
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=wanted)
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == wanted
    s3.delete_public_access_block(Bucket=bucket)
    s3.delete_public_access_block(Bucket=bucket)
    with pytest.raises(ClientError) as error:
        s3.get_public_access_block(Bucket=bucket)
    assert code_of(error) == (404, "NoSuchPublicAccessBlockConfiguration")
    put(s3, bucket, statement(bucket, "s3:GetObject"))


def test_f69_headers_are_no_condition_keys(s3: Any, public: str, gateway: Gateway) -> None:
    from_elsewhere = {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}
    named = {"StringEquals": {"aws:userid": "anna"}}
    for condition in (from_elsewhere, named, {"Bool": {"aws:SecureTransport": "true"}}):
        put(s3, public, statement(public, "s3:GetObject", Condition=condition))
        headers = {
            "x-forwarded-for": "203.0.113.7",
            "forwarded": "for=203.0.113.7",
            "userid": "anna",
            "x-forwarded-proto": "https",
        }
        query = {"aws:SourceIp": "203.0.113.7", "userid": "anna", "aws:SecureTransport": "true"}
        for where in (f"{gateway.endpoint}/{public}/k",):
            assert httpx.get(where, headers=headers).status_code == 403
            assert httpx.get(where, params=query).status_code == 403
    put(s3, public, statement(public, "s3:GetObject", Condition={"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}))
    assert httpx.get(f"{gateway.endpoint}/{public}/k").status_code == 200


def test_conditions_on_listings(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:ListBucket", Condition={"StringLike": {"s3:prefix": "home/*"}}))
    other.list_objects_v2(Bucket=public, Prefix="home/a")
    other.list_objects(Bucket=public, Prefix="home/")
    denied(other.list_objects_v2, Bucket=public)
    denied(other.list_objects_v2, Bucket=public, Prefix="k")
    put(s3, public, statement(public, "s3:ListBucket", Condition={"NumericLessThanEquals": {"s3:max-keys": "10"}}))
    other.list_objects_v2(Bucket=public, MaxKeys=10)
    denied(other.list_objects_v2, Bucket=public, MaxKeys=11)
    denied(other.list_objects_v2, Bucket=public)


def test_conditions_on_puts(s3: Any, other: Any, public: str) -> None:
    condition = {"StringEquals": {"s3:x-amz-storage-class": ["STANDARD_IA"]}}
    put(s3, public, statement(public, "s3:PutObject", Condition=condition))
    other.put_object(Bucket=public, Key="n", StorageClass="STANDARD_IA")
    denied(other.put_object, Bucket=public, Key="n")
    denied(other.put_object, Bucket=public, Key="n", StorageClass="STANDARD")


def test_f62_the_source_of_a_copy_needs_its_own_right(s3: Any, other: Any, public: str) -> None:
    """However it is copied: whole, as a part, by a condition, from a version."""
    secret = f"{public}/secret"
    s3.put_object(Bucket=public, Key="secret", Body=b"s" * 10)
    put(
        s3,
        public,
        statement(public, "s3:PutObject", "s3:GetObjectVersion"),
        statement(public, "s3:GetObject", keys="k"),
    )
    other.copy_object(Bucket=public, Key="copy", CopySource=f"{public}/k")
    denied(other.copy_object, Bucket=public, Key="copy", CopySource=secret)
    denied(other.copy_object, Bucket=public, Key="copy", CopySource=f"{public}/none")
    upload = other.create_multipart_upload(Bucket=public, Key="u")["UploadId"]
    part = {"Bucket": public, "Key": "u", "UploadId": upload, "PartNumber": 1}
    denied(other.upload_part_copy, CopySource=secret, **part)
    denied(other.upload_part_copy, CopySource=secret, CopySourceRange="bytes=0-1", **part)
    other.upload_part_copy(CopySource=f"{public}/k", **part)
    # conditions on the target say nothing of the source, and the other way round
    put(
        s3,
        public,
        statement(public, "s3:PutObject", Condition={"StringLike": {"s3:x-amz-copy-source": f"{public}/k*"}}),
        statement(public, "s3:GetObject"),
    )
    other.copy_object(Bucket=public, Key="copy", CopySource=f"{public}/k")
    denied(other.copy_object, Bucket=public, Key="copy", CopySource=secret)
    denied(other.put_object, Bucket=public, Key="copy", Body=b"")


def test_f63_f64_versions_need_their_own_rights(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:GetObject", "s3:DeleteObject", "s3:PutObject"))
    other.get_object(Bucket=public, Key="k")
    denied(other.get_object, Bucket=public, Key="k", VersionId="null")
    denied(other.head_object, Bucket=public, Key="k", VersionId="null")
    denied(other.delete_object, Bucket=public, Key="k", VersionId="null")
    source = {"Bucket": public, "Key": "k", "VersionId": "null"}
    denied(other.copy_object, Bucket=public, Key="copy", CopySource=source)
    answer = other.delete_objects(Bucket=public, Delete={"Objects": [{"Key": "k", "VersionId": "null"}]})
    assert [error["Code"] for error in answer["Errors"]] == ["AccessDenied"]
    put(s3, public, statement(public, "s3:*Version", "s3:PutObject"))
    other.get_object(Bucket=public, Key="k", VersionId="null")
    other.copy_object(Bucket=public, Key="copy", CopySource=source)
    denied(other.get_object, Bucket=public, Key="k")


def test_f66_keys_are_judged_as_they_are(s3: Any, public: str, gateway: Gateway) -> None:
    put(s3, public, statement(public, "s3:GetObject", keys="pub/*"))
    s3.put_object(Bucket=public, Key="secret", Body=b"s")
    for path in ("pub/../secret", "pub/%2e%2e/secret", "pub%2f..%2fsecret", "./secret", "secret"):
        response = httpx.request("GET", f"{gateway.endpoint}/{public}/{path}")
        assert response.status_code in (403, 404)
        assert response.content != b"s"


def test_f73_rights_are_asked_at_every_step(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:PutObject"))
    upload = other.create_multipart_upload(Bucket=public, Key="u")["UploadId"]
    part = {"Bucket": public, "Key": "u", "UploadId": upload}
    etag = other.upload_part(PartNumber=1, Body=b"x", **part)["ETag"]
    put(s3, public, statement(public, "s3:GetObject"))
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    denied(other.complete_multipart_upload, MultipartUpload=parts, **part)
    denied(other.upload_part, PartNumber=2, Body=b"x", **part)
    denied(other.list_parts, **part)
    denied(other.abort_multipart_upload, **part)
    s3.complete_multipart_upload(MultipartUpload=parts, **part)


def test_f74_delete_objects_asks_for_each_key(s3: Any, other: Any, public: str, gateway: Gateway) -> None:
    for key in ("mine", "in/1", "in/2"):
        s3.put_object(Bucket=public, Key=key)
    put(s3, public, statement(public, "s3:DeleteObject", keys="in/*"))
    objects = [{"Key": key} for key in ("in/1", "mine", "in/2", "in/none")]
    answer = other.delete_objects(Bucket=public, Delete={"Objects": objects})
    assert [entry["Key"] for entry in answer["Deleted"]] == ["in/1", "in/2", "in/none"]
    assert [(entry["Key"], entry["Code"]) for entry in answer["Errors"]] == [("mine", "AccessDenied")]
    s3.head_object(Bucket=public, Key="mine")
    put(s3, public, statement(public, "s3:GetObject"))
    answer = other.delete_objects(Bucket=public, Delete={"Objects": objects})
    assert len(answer["Errors"]) == 4


def test_malformed_policies(s3: Any, bucket: str) -> None:
    for text, message in (
        ("", "Policies must be valid JSON and the first byte must be '{'"),
        ("{", "This policy contains invalid Json"),
        ("{}", "Missing required field Statement"),
        (json.dumps({"Statement": [statement("elsewhere", "s3:*")]}), "Policy has invalid resource"),
        (json.dumps({"Statement": [statement(bucket, "s3:Fly")]}), "Policy has invalid action"),
    ):
        with pytest.raises(ClientError) as error:
            s3.put_bucket_policy(Bucket=bucket, Policy=text)
        assert code_of(error) == (400, "MalformedPolicy")
        assert error.value.response["Error"]["Message"] == message
    with pytest.raises(ClientError):
        s3.get_bucket_policy(Bucket=bucket)


def test_only_the_owner_configures(other: Any, bucket: str) -> None:
    for call, arguments in (
        (other.get_bucket_policy, {}),
        (other.put_bucket_policy, {"Policy": "{}"}),
        (other.delete_bucket_policy, {}),
        (other.get_bucket_policy_status, {}),
        (other.get_public_access_block, {}),
        (other.put_public_access_block, {"PublicAccessBlockConfiguration": OPEN}),
        (other.delete_public_access_block, {}),
    ):
        denied(call, Bucket=bucket, **arguments)


def test_policies_are_left_to_the_owners_account(s3: Any, other: Any, public: str) -> None:
    put(s3, public, statement(public, "s3:*", principal={"AWS": OTHER}))
    for call, arguments in (
        (other.get_bucket_policy, {}),
        (other.put_bucket_policy, {"Policy": "{}"}),
        (other.delete_bucket_policy, {}),
    ):
        with pytest.raises(ClientError) as error:
            call(Bucket=public, **arguments)
        assert code_of(error) == (405, "MethodNotAllowed")
    assert other.get_bucket_policy_status(Bucket=public)["PolicyStatus"] == {"IsPublic": False}
