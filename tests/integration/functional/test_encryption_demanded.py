"""Policies that demand encryption ask of parts how their upload is encrypted."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import User, policy
from tests.integration.functional.sealed import SECRET, arn, bucket, customer, keys
from tests.integration.functional.test_policy import denied, put, statement
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("tree")

__all__ = ["bucket", "keys"]

SSE = "s3:x-amz-server-side-encryption"
PART = b"part" * 100
KMS = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": arn("one")}


def demand(bucket: str, **conditions: dict[str, Any]) -> dict[str, Any]:
    """A statement that denies writing under some conditions."""
    return statement(bucket, "s3:PutObject", Effect="Deny", Condition=conditions)


def whole(s3: Any, bucket: str, upload: str, **given: Any) -> None:
    """Put a part, copy another one, and complete the upload."""
    place = {"Bucket": bucket, "Key": "made", "UploadId": upload}
    etags = [s3.upload_part(**place, PartNumber=1, Body=PART * 14000, **given)["ETag"]]
    copied = s3.upload_part_copy(**place, PartNumber=2, CopySource=f"{bucket}/source", **given)
    etags.append(copied["CopyPartResult"]["ETag"])
    parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
    for _ in range(2):
        s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})


def begin(s3: Any, bucket: str, **given: Any) -> str:
    return str(s3.create_multipart_upload(Bucket=bucket, Key="made", **given)["UploadId"])


def all_denied(s3: Any, bucket: str, upload: str) -> None:
    place = {"Bucket": bucket, "Key": "made", "UploadId": upload}
    denied(s3.upload_part, **place, PartNumber=1, Body=PART)
    denied(s3.upload_part_copy, **place, PartNumber=1, CopySource=f"{bucket}/source")
    denied(s3.complete_multipart_upload, **place, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": "x"}]})


def test_a_header_is_demanded(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=PART)
    plain = begin(s3, bucket)
    put(s3, bucket, demand(bucket, Null={SSE: "true"}))
    denied(begin, s3=s3, bucket=bucket)
    all_denied(s3, bucket, plain)
    all_denied(s3, bucket, "0" * 32)
    whole(s3, bucket, begin(s3, bucket, ServerSideEncryption="AES256"))
    whole(s3, bucket, begin(s3, bucket, **KMS))


def test_a_method_and_a_key_are_demanded(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=PART)
    begun = [begin(s3, bucket, ServerSideEncryption="AES256"), begin(s3, bucket, **{**KMS, "SSEKMSKeyId": "two"})]
    begun.append(begin(s3, bucket, **customer(SECRET)))
    key = {f"{SSE}-aws-kms-key-id": arn("one")}
    put(s3, bucket, demand(bucket, StringNotEquals={SSE: "aws:kms"}), demand(bucket, StringNotEquals=key))
    for upload in begun:
        all_denied(s3, bucket, upload)
    whole(s3, bucket, begin(s3, bucket, **KMS))


def test_customers_keys_are_demanded(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=PART)
    sealed = begin(s3, bucket, ServerSideEncryption="AES256")
    put(s3, bucket, demand(bucket, Null={f"{SSE}-customer-algorithm": "true"}))
    all_denied(s3, bucket, sealed)
    whole(s3, bucket, begin(s3, bucket, **customer(SECRET)), **customer(SECRET))


def test_users_whose_own_policies_demand_it(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=PART)
    writes = policy("s3:PutObject", Condition={"StringEquals": {SSE: "AES256"}})
    user = User(gateway, iam, writes, policy("s3:GetObject"))
    all_denied(user.s3, bucket, begin(s3, bucket))
    all_denied(user.s3, bucket, begin(s3, bucket, **KMS))
    whole(user.s3, bucket, begin(user.s3, bucket, ServerSideEncryption="AES256"))
    without = User(gateway, iam, writes)
    place = {"Bucket": bucket, "Key": "made", "UploadId": begin(s3, bucket, ServerSideEncryption="AES256")}
    without.s3.upload_part(**place, PartNumber=1, Body=PART)
    denied(without.s3.upload_part_copy, **place, PartNumber=1, CopySource=f"{bucket}/source")


def test_an_upload_that_there_is_not(s3: Any, bucket: str) -> None:
    put(s3, bucket, demand(bucket, StringEquals={SSE: "aws:kms"}))
    with pytest.raises(ClientError, match="NoSuchUpload"):
        s3.upload_part(Bucket=bucket, Key="made", UploadId="0" * 32, PartNumber=1, Body=PART)


def test_sources_whose_tags_are_asked_for_are_asked_still(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    for key, tag in (("red", "colour=red"), ("source", "colour=blue")):
        s3.put_object(Bucket=bucket, Key=key, Body=PART, Tagging=tag)
    red = {"StringEquals": {"s3:ExistingObjectTag/colour": "red"}}
    writes = policy("s3:PutObject", Condition={"StringEquals": {SSE: "AES256"}})
    user = User(gateway, iam, writes, policy("s3:GetObject", Condition=red))
    upload = begin(user.s3, bucket, ServerSideEncryption="AES256")
    place = {"Bucket": bucket, "Key": "made", "UploadId": upload, "PartNumber": 1}
    denied(user.s3.upload_part_copy, **place, CopySource=f"{bucket}/source")
    user.s3.upload_part_copy(**place, CopySource=f"{bucket}/red")
