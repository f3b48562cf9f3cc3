"""Who may compare what he changes with what is there: its ETag tells what it is like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import User, policy
from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OPEN, denied
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place


def matched(s3: Any, bucket: str, etag: str) -> list[tuple[Any, dict[str, Any]]]:
    """Everything that changes `k` if it has this ETag, but for what completes an upload."""
    named = {"Bucket": bucket, "Key": "k"}
    return [
        (s3.put_object, named | {"IfMatch": etag, "Body": b"body"}),
        (s3.copy_object, named | {"IfMatch": etag, "CopySource": f"{bucket}/other"}),
        (s3.delete_object, named | {"IfMatch": etag}),
    ]


def test_who_compares_must_be_allowed_to_read(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="other", Body=b"other")
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"body")["ETag"]
    changing = ("s3:PutObject", "s3:DeleteObject")
    other_only = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/other"}
    writer = User(gateway, iam, policy(*changing), json.dumps({"Version": "2012-10-17", "Statement": other_only}))
    named = {"Bucket": bucket, "Key": "k"}
    upload = s3.create_multipart_upload(**named)["UploadId"]
    part = s3.upload_part(**named, UploadId=upload, PartNumber=1, Body=b"body")["ETag"]
    parts = {"UploadId": upload, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part}]}}
    for guessed in (etag, '"' + "0" * 32 + '"'):
        for call, arguments in matched(writer.s3, bucket, guessed):
            denied(call, **arguments)
        denied(writer.s3.complete_multipart_upload, **named, **parts, IfMatch=guessed)
        answer = writer.s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "ETag": guessed}]})
        assert [error["Code"] for error in answer["Errors"]] == ["AccessDenied"]
    assert s3.get_object(**named)["Body"].read() == b"body"
    # whether there is an object at all he may ask
    with pytest.raises(ClientError) as error:
        writer.s3.put_object(**named, Body=b"x", IfNoneMatch="*")
    assert code_of(error) == (412, "PreconditionFailed")
    with pytest.raises(ClientError) as error:
        writer.s3.delete_object(Bucket=bucket, Key="none", IfMatch="*")
    assert code_of(error) == (404, "NoSuchKey")
    reader = User(gateway, iam, policy(*changing, "s3:GetObject"))
    with pytest.raises(ClientError) as error:
        reader.s3.put_object(**named, Body=b"x", IfMatch='"' + "0" * 32 + '"')
    assert code_of(error) == (412, "PreconditionFailed")
    for call, arguments in matched(reader.s3, bucket, etag):
        call(**arguments)
        s3.put_object(**named, Body=b"body")
    reader.s3.complete_multipart_upload(**named, **parts, IfMatch=etag)


def test_who_compares_is_told_by_tags_and_acls(
    gateway: Gateway, iam: Any, s3: Any, other: Any, bucket: str, request: pytest.FixtureRequest
) -> None:
    tagged = {"StringEquals": {"s3:ExistingObjectTag/open": "yes"}}
    writer = User(gateway, iam, policy("s3:PutObject"), policy("s3:GetObject", Condition=tagged))
    for key in ("yes", "no"):
        etag = s3.put_object(Bucket=bucket, Key=key, Body=b"body", Tagging=f"open={key}")["ETag"]
    writer.s3.put_object(Bucket=bucket, Key="yes", Body=b"body", IfMatch=etag)
    denied(writer.s3.put_object, Bucket=bucket, Key="no", Body=b"body", IfMatch=etag)
    if "tree" in request.node.name:
        return  # plain files have no ACLs
    ownership = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=ownership)
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    s3.put_object(Bucket=bucket, Key="shown", Body=b"body", ACL="public-read")
    s3.put_object(Bucket=bucket, Key="hidden", Body=b"body")
    denied(other.put_object, Bucket=bucket, Key="hidden", Body=b"body", IfMatch=etag)
    other.put_object(Bucket=bucket, Key="shown", Body=b"body", IfMatch=etag)
    s3.put_object(Bucket=bucket, Key="hidden", Body=b"body", IfMatch=etag)
    denied(s3.put_object, Bucket=bucket, Key="shown", Body=b"body", IfMatch=etag)  # it is the other's now
