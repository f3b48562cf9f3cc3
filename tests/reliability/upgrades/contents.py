"""What an earlier version writes, and what a later one must read of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

PLAIN, VERSIONED = "plain", "versioned"
POLICIES_SINCE, VERSIONS_SINCE = "0007", "0008"
"""The first revisions of the tables whose programs had them."""
PART = 5 << 20
SMALL = b"a small body"
LARGE = bytes(range(256)) * 4096
PARTS = (b"1" * PART, b"2" * 1000)
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": f"arn:aws:s3:::{PLAIN}/held/*"}
    ],
}


def write(s3: Any, revision: str) -> None:
    """Write one of each kind of row and file that a version with these tables has."""
    for bucket in (PLAIN, VERSIONED):
        s3.create_bucket(Bucket=bucket)
    if revision >= POLICIES_SINCE:
        s3.put_bucket_policy(Bucket=PLAIN, Policy=json.dumps(POLICY))
    if revision >= VERSIONS_SINCE:
        s3.put_bucket_versioning(Bucket=VERSIONED, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=PLAIN, Key="small", Body=SMALL, ContentType="text/plain", Metadata={"colour": "red"})
    s3.put_object(Bucket=PLAIN, Key="large", Body=LARGE)
    s3.put_object(Bucket=PLAIN, Key="deleted", Body=SMALL)
    s3.delete_object(Bucket=PLAIN, Key="deleted")
    s3.put_object(Bucket=PLAIN, Key="overwritten", Body=LARGE)
    s3.put_object(Bucket=PLAIN, Key="overwritten", Body=SMALL)
    s3.copy_object(Bucket=PLAIN, Key="copied", CopySource={"Bucket": PLAIN, "Key": "large"})
    upload = {"Bucket": PLAIN, "Key": "parts"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    tags = [s3.upload_part(**upload, PartNumber=n, Body=body)["ETag"] for n, body in enumerate(PARTS, 1)]
    done = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": done})
    upload = {"Bucket": PLAIN, "Key": "unfinished"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    s3.upload_part(**upload, PartNumber=1, Body=SMALL)
    for body in (b"first", b"second"):
        s3.put_object(Bucket=VERSIONED, Key="kept", Body=body)
    s3.delete_object(Bucket=VERSIONED, Key="kept")


def check(s3: Any, revision: str, *, rebuilt: bool = False) -> None:
    """Everything that `write` wrote is there, and nothing else; a rebuilt index has no unfinished uploads."""
    bodies = {"small": SMALL, "large": LARGE, "overwritten": SMALL, "copied": LARGE, "parts": b"".join(PARTS)}
    listed = {entry["Key"] for entry in s3.list_objects_v2(Bucket=PLAIN)["Contents"]}
    assert listed == bodies.keys()
    for key, body in bodies.items():
        assert s3.get_object(Bucket=PLAIN, Key=key)["Body"].read() == body, key
    head = s3.head_object(Bucket=PLAIN, Key="small")
    assert (head["ContentType"], head["Metadata"]) == ("text/plain", {"colour": "red"})
    if revision >= POLICIES_SINCE:
        assert json.loads(s3.get_bucket_policy(Bucket=PLAIN)["Policy"]) == POLICY
    uploads = s3.list_multipart_uploads(Bucket=PLAIN).get("Uploads", [])
    assert len(uploads) == (0 if rebuilt else 1)
    for upload in uploads:
        parts = s3.list_parts(Bucket=PLAIN, Key="unfinished", UploadId=upload["UploadId"])["Parts"]
        assert [part["Size"] for part in parts] == [len(SMALL)]
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket=VERSIONED, Key="kept")
    if revision < VERSIONS_SINCE:
        return
    versions = s3.list_object_versions(Bucket=VERSIONED)
    assert [marker["IsLatest"] for marker in versions["DeleteMarkers"]] == [True]
    read = [
        s3.get_object(Bucket=VERSIONED, Key="kept", VersionId=version["VersionId"])["Body"].read()
        for version in versions["Versions"]
    ]
    assert read == [b"second", b"first"]
