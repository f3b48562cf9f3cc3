"""SSE-KMS: users and sessions need a right to the key, too."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import User, assume, policy, role
from tests.integration.functional.sealed import arn, bucket, configuration, keys
from tests.integration.functional.test_policy import denied, put, statement
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("tree")

__all__ = ["bucket", "keys"]

WRITE, READ = "kms:GenerateDataKey", "kms:Decrypt"
OBJECTS = policy("s3:*")


def kms(key: str = "") -> dict[str, str]:
    return {"ServerSideEncryption": "aws:kms"} | ({"SSEKMSKeyId": arn(key)} if key else {})


def put_object(s3: Any, bucket: str, **given: Any) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body", **given)


def test_a_named_key_needs_a_right(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    put_object(s3, bucket, **kms("one"))
    user = User(gateway, iam, OBJECTS)
    with pytest.raises(ClientError, match=f"perform: {WRITE} on resource: {arn('one')}") as error:
        put_object(user.s3, bucket, **kms("one"))
    assert error.value.response["Error"]["Code"] == "AccessDenied"
    with pytest.raises(ClientError, match=f"perform: {READ} on resource: {arn('one')}"):
        user.s3.get_object(Bucket=bucket, Key="k")
    denied(user.s3.get_object_attributes, Bucket=bucket, Key="k", ObjectAttributes=["ETag"])
    denied(user.s3.head_object, Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert user.s3.head_object(Bucket=bucket, Key="k")["SSEKMSKeyId"] == arn("one"), "nothing is decrypted for it"
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"


def test_other_encryption_needs_none(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    user = User(gateway, iam, OBJECTS)
    for given in ({}, {"ServerSideEncryption": "AES256"}, kms()):
        put_object(user.s3, bucket, **given)
        assert user.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"


def test_each_right_is_for_itself(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    writer, reader = (User(gateway, iam, OBJECTS, policy(one, resource=arn("one"))) for one in (WRITE, READ))
    put_object(writer.s3, bucket, **kms("one"))
    denied(put_object, s3=writer.s3, bucket=bucket, **kms("two"))
    denied(writer.s3.get_object, Bucket=bucket, Key="k")
    denied(put_object, s3=reader.s3, bucket=bucket, **kms("one"))
    assert reader.s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({"resource": "*"}, True),
        ({"resource": "arn:aws:kms:*:*:key/*"}, True),
        ({"resource": arn("two")}, False),
        ({"resource": "arn:aws:kms:us-east-1:000000000000:alias/one"}, False),
        ({"Condition": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}}, True),
        ({"Condition": {"StringEquals": {"kms:ViaService": "ebs.us-east-1.amazonaws.com"}}}, False),
        ({"Condition": {"Null": {"kms:CallerAccount": "true"}}}, False),
        ({"Condition": {"Null": {"s3:x-amz-server-side-encryption": "false"}}}, False),
        ({"Condition": {"StringLike": {"aws:username": "user-*"}}}, True),
    ],
)
def test_policies_about_keys(gateway: Gateway, iam: Any, bucket: str, fields: dict[str, Any], may: bool) -> None:
    user = User(gateway, iam, OBJECTS, policy(WRITE, **fields))
    if may:
        put_object(user.s3, bucket, **kms("one"))
    else:
        denied(put_object, s3=user.s3, bucket=bucket, **kms("one"))


def test_a_deny_is_for_the_usual_key_as_well(gateway: Gateway, iam: Any, bucket: str) -> None:
    user = User(gateway, iam, policy("s3:*", "kms:*"), policy("kms:*", effect="Deny"))
    put_object(user.s3, bucket, ServerSideEncryption="AES256")
    for key in ("", "one"):
        denied(put_object, s3=user.s3, bucket=bucket, **kms(key))


def test_a_buckets_default_needs_it(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_bucket_encryption(Bucket=bucket, **configuration("aws:kms", key=arn("one")))
    without, having = User(gateway, iam, OBJECTS), User(gateway, iam, OBJECTS, policy(WRITE, resource=arn("one")))
    denied(put_object, s3=without.s3, bucket=bucket)
    put_object(having.s3, bucket)
    put_object(s3, bucket)


def test_uploads(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    without = User(gateway, iam, OBJECTS)
    writer, both = User(gateway, iam, OBJECTS, policy(WRITE)), User(gateway, iam, OBJECTS, policy(WRITE, READ))
    place = {"Bucket": bucket, "Key": "k"}
    denied(without.s3.create_multipart_upload, **place, **kms("one"))
    place["UploadId"] = writer.s3.create_multipart_upload(**place, **kms("one"))["UploadId"]
    part = {**place, "PartNumber": 1}
    denied(without.s3.upload_part, **part, Body=b"body")
    s3.put_object(Bucket=bucket, Key="plain", Body=b"plain")
    denied(without.s3.upload_part_copy, **part, CopySource=f"{bucket}/plain")
    etag = writer.s3.upload_part(**part, Body=b"body")["ETag"]
    done = {**place, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": etag}]}}
    denied(writer.s3.complete_multipart_upload, **done)
    both.s3.complete_multipart_upload(**done)


def test_copies(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    put_object(s3, bucket, **kms("one"))
    write, read = policy(WRITE, resource=arn("two")), policy(READ, resource=arn("one"))
    copy = {"Bucket": bucket, "Key": "copy", "CopySource": f"{bucket}/k"}
    for documents, given, may in (
        ([write], kms("two"), False),
        ([read], kms("two"), False),
        ([write, read], kms("two"), True),
        ([read], kms("one"), False),
        ([policy(WRITE)], kms("one"), False),
        ([policy(WRITE, READ)], kms("one"), True),
        ([], {}, False),
        ([read], {}, True),
    ):
        user = User(gateway, iam, OBJECTS, *documents)
        if may:
            user.s3.copy_object(**copy, **given)
        else:
            denied(user.s3.copy_object, **copy, **given)
    place = {"Bucket": bucket, "Key": "parts", "UploadId": ""}
    place["UploadId"] = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    from_key = {**place, "PartNumber": 1, "CopySource": f"{bucket}/k"}
    denied(User(gateway, iam, OBJECTS).s3.upload_part_copy, **from_key)
    User(gateway, iam, OBJECTS, read).s3.upload_part_copy(**from_key)


def test_sessions(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    user = User(gateway, iam, policy("sts:AssumeRole"))
    arn_of_role = role(iam, user, policy("s3:*", WRITE))
    put_object(assume(gateway, user, arn_of_role), bucket, **kms("one"))
    limited = assume(gateway, user, arn_of_role, Policy=policy("s3:*"))
    denied(put_object, s3=limited, bucket=bucket, **kms("one"))


def test_bucket_policies_do_not_speak_of_keys(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError, match="Policy has invalid action"):
        put(s3, bucket, statement(bucket, READ))
