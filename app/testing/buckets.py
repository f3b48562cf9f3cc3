"""Buckets of one test each."""

from __future__ import annotations

import re
import secrets
from typing import Any

PAGE = 1000
"""Keys of one DeleteObjects (AWS)."""


def bucket_name(test: str) -> str:
    """Return a name for a bucket of a test, which nothing else has.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    """
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:46].strip("-")
    return f"{words or 'test'}-{secrets.token_hex(4)}"


def remove_bucket(client: Any, bucket: str) -> None:
    """Remove a bucket with all versions, uploads and governance locks in it; a missing one is no error.

    Raises botocore's ClientError, for example for what a legal hold protects.
    """
    try:
        _abort_uploads(client, bucket)
        _delete_versions(client, bucket)
        client.delete_bucket(Bucket=bucket)
    except client.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def _abort_uploads(client: Any, bucket: str) -> None:
    for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
        for upload in page.get("Uploads", ()):
            client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def _delete_versions(client: Any, bucket: str) -> None:
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, MaxKeys=PAGE)
    for page in pages:
        found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if found:
            names = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]
            client.delete_objects(
                Bucket=bucket, Delete={"Objects": names, "Quiet": True}, BypassGovernanceRetention=True
            )
