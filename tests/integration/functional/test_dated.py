"""Versions with a time of their own (`x-amz-sluice-last-modified`), as copies from elsewhere have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.integration.functional.test_policy import put, statement
from tests.integration.functional.test_versioning import refused, switch

pytestmark = pytest.mark.place("postgres")
HEADER = "x-amz-sluice-last-modified"
FIRST, SECOND, THIRD = (f"2021-03-04T05:06:0{second}.250+00:00" for second in (7, 8, 9))


def sent_at(client: Any, when: str, operation: str, **arguments: Any) -> Any:
    """Send an operation with that time."""

    def add(request: Any, **_: Any) -> None:
        request.headers[HEADER] = when

    client.meta.events.register("before-sign.s3", add)
    try:
        return getattr(client, operation)(**arguments)
    finally:
        client.meta.events.unregister("before-sign.s3", add)


@pytest.fixture
def at(s3: Any) -> Any:
    """`at(TIME, OPERATION, …)` sends the operation with that time, as the first account."""
    return partial(sent_at, s3)


def times(s3: Any, bucket: str) -> list[tuple[str, bool]]:
    """The times of the versions and markers of key `k`, newest first, and whether each is a marker."""
    found = s3.list_object_versions(Bucket=bucket)
    entries = [(one["LastModified"].isoformat(timespec="milliseconds"), False) for one in found.get("Versions", [])]
    entries += [
        (one["LastModified"].isoformat(timespec="milliseconds"), True) for one in found.get("DeleteMarkers", [])
    ]
    return sorted(entries, reverse=True)


def test_versions_and_markers_have_the_given_times(s3: Any, bucket: str, at: Any) -> None:
    switch(s3, bucket, "Enabled")
    first = at(FIRST, "put_object", Bucket=bucket, Key="k", Body=b"1")["VersionId"]
    at(SECOND, "delete_object", Bucket=bucket, Key="k")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    etag = s3.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=1, Body=b"3")["ETag"]
    parts = {"Parts": [{"ETag": etag, "PartNumber": 1}]}
    at(THIRD, "complete_multipart_upload", Bucket=bucket, Key="k", UploadId=upload, MultipartUpload=parts)
    assert times(s3, bucket) == [(THIRD, False), (SECOND, True), (FIRST, False)]
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=first)["Body"].read() == b"1"
    assert s3.head_object(Bucket=bucket, Key="k")["LastModified"] == datetime(2021, 3, 4, 5, 6, 9, tzinfo=UTC)
    s3.put_object(Bucket=bucket, Key="k", Body=b"now")
    assert datetime.now(UTC) - s3.head_object(Bucket=bucket, Key="k")["LastModified"] < timedelta(hours=1)


def test_a_version_that_is_not_the_newest_is_refused(s3: Any, bucket: str, at: Any) -> None:
    """So a repeated request adds no second version."""
    switch(s3, bucket, "Enabled")
    at(SECOND, "put_object", Bucket=bucket, Key="k", Body=b"2")
    for when in (FIRST, SECOND):
        for operation in ("put_object", "delete_object"):
            refused(at, 412, "PreconditionFailed", when=when, operation=operation, Bucket=bucket, Key="k")
    at(THIRD, "delete_object", Bucket=bucket, Key="k")
    refused(at, 412, "PreconditionFailed", when=THIRD, operation="put_object", Bucket=bucket, Key="k")
    assert times(s3, bucket) == [(THIRD, True), (SECOND, False)]


def test_without_versioning_only_an_older_object_is_replaced(s3: Any, bucket: str, at: Any) -> None:
    at(FIRST, "put_object", Bucket=bucket, Key="k", Body=b"1")
    at(SECOND, "put_object", Bucket=bucket, Key="k", Body=b"2")
    refused(at, 412, "PreconditionFailed", when=SECOND, operation="put_object", Bucket=bucket, Key="k")
    assert times(s3, bucket) == [(SECOND, False)]
    refused(at, 501, "NotImplemented", when=THIRD, operation="delete_object", Bucket=bucket, Key="k")


def test_times_that_cannot_be_are_refused(s3: Any, bucket: str, at: Any) -> None:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    wrong = ("yesterday", "2021-03-04", "2021-03-04T05:06:07", "1969-12-31T00:00:00Z", "9999-12-31T23:59:59-23:00")
    for when in (*wrong, ahead):
        refused(at, 400, "InvalidArgument", when=when, operation="put_object", Bucket=bucket, Key="k", Body=b"")
    refused(at, 501, "NotImplemented", when=FIRST, operation="copy_object", Bucket=bucket, Key="k", CopySource="b/k")
    refused(at, 501, "NotImplemented", when=FIRST, operation="create_multipart_upload", Bucket=bucket, Key="k")


def test_a_time_needs_the_right_to_replicate(s3: Any, bucket: str, other: Any) -> None:
    switch(s3, bucket, "Enabled")
    s3.delete_public_access_block(Bucket=bucket)
    writes = ("s3:PutObject", "s3:DeleteObject")
    put(s3, bucket, statement(bucket, *writes))
    for operation in ("put_object", "delete_object"):
        refused(sent_at, 403, "AccessDenied", client=other, when=FIRST, operation=operation, Bucket=bucket, Key="k")
    put(s3, bucket, statement(bucket, *writes, "s3:ReplicateObject", "s3:ReplicateDelete"))
    sent_at(other, FIRST, "put_object", Bucket=bucket, Key="k")
    sent_at(other, SECOND, "delete_object", Bucket=bucket, Key="k")
    assert times(s3, bucket) == [(SECOND, True), (FIRST, False)]
