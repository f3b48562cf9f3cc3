"""Errors as AWS was recorded to answer them: status, code, message, and the elements beside them.

The recordings are LocalStack's (tests/aws/services/s3/*.snapshot.json in its repository), read; what differs here is in
docs/s3/differences.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.place("postgres", "tree")

XML = "The XML you provided was not well-formed or did not validate against our published schema"
NO_UPLOAD = (
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or"
    " completed."
)
PART = (
    "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified"
    " entity tag may not match the part's entity tag."
)
UNKNOWN = "0" * 48


def upload(s3: Any, bucket: str, *sizes: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    named = {"Bucket": bucket, "Key": "k", "UploadId": s3.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**named, PartNumber=number, Body=b"x" * size)["ETag"]}
        for number, size in enumerate(sizes, 1)
    ]
    return named, parts


def disordered(s3: Any, bucket: str) -> None:
    named, parts = upload(s3, bucket, 5 << 20, 1)
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts[::-1]})


def unknown_part(s3: Any, bucket: str) -> None:
    named, parts = upload(s3, bucket, 1)
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": [{**parts[0], "ETag": '"0"'}]})


def small_part(s3: Any, bucket: str) -> None:
    named, parts = upload(s3, bucket, 1, 1)
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})


def with_key(call: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """First there is an object of ten bytes at `k`."""

    def done(s3: Any, bucket: str) -> None:
        s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
        call(s3, bucket)

    return done


def tagging(*tags: tuple[str, str]) -> Callable[[Any, str], Any]:
    return lambda s3, bucket: s3.put_object_tagging(
        Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags]}
    )


def left_versions(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)


Expected = tuple[int, str, str, set[str]]
CASES: dict[str, tuple[Callable[[Any, str], Any], Expected]] = {
    "no bucket": (
        lambda s3, bucket: s3.list_objects_v2(Bucket=bucket + "-none"),
        (404, "NoSuchBucket", "The specified bucket does not exist", {"BucketName"}),
    ),
    "no key": (
        lambda s3, bucket: s3.get_object(Bucket=bucket, Key="none"),
        (404, "NoSuchKey", "The specified key does not exist.", {"Key"}),
    ),
    "not empty": (
        with_key(lambda s3, bucket: s3.delete_bucket(Bucket=bucket)),
        (409, "BucketNotEmpty", "The bucket you tried to delete is not empty", {"BucketName"}),
    ),
    "versions left": (
        left_versions,
        (
            409,
            "BucketNotEmpty",
            "The bucket you tried to delete is not empty. You must delete all versions in the bucket.",
            {"BucketName"},
        ),
    ),
    "bucket name": (
        lambda s3, bucket: s3.create_bucket(Bucket="Upper_Case"),
        (400, "InvalidBucketName", "The specified bucket is not valid.", {"BucketName"}),
    ),
    "location": (
        lambda s3, bucket: s3.create_bucket(
            Bucket=bucket + "-x", CreateBucketConfiguration={"LocationConstraint": "nowhere"}
        ),
        (400, "InvalidLocationConstraint", "The specified location-constraint is not valid", {"LocationConstraint"}),
    ),
    "no policy": (
        lambda s3, bucket: s3.get_bucket_policy(Bucket=bucket),
        (404, "NoSuchBucketPolicy", "The bucket policy does not exist", {"BucketName"}),
    ),
    "policy of no object": (
        lambda s3, bucket: s3.put_bucket_policy(Bucket=bucket, Policy="x"),
        (400, "MalformedPolicy", "Policies must be valid JSON and the first byte must be '{'", set()),
    ),
    "policy without statement": (
        lambda s3, bucket: s3.put_bucket_policy(Bucket=bucket, Policy="{}"),
        (400, "MalformedPolicy", "Missing required field Statement", set()),
    ),
    "no cors": (
        lambda s3, bucket: s3.get_bucket_cors(Bucket=bucket),
        (404, "NoSuchCORSConfiguration", "The CORS configuration does not exist", {"BucketName"}),
    ),
    "no lifecycle": (
        lambda s3, bucket: s3.get_bucket_lifecycle_configuration(Bucket=bucket),
        (404, "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist", {"BucketName"}),
    ),
    "no website": (
        lambda s3, bucket: s3.get_bucket_website(Bucket=bucket),
        (
            404,
            "NoSuchWebsiteConfiguration",
            "The specified bucket does not have a website configuration",
            {"BucketName"},
        ),
    ),
    "no tags": (
        lambda s3, bucket: s3.get_bucket_tagging(Bucket=bucket),
        (404, "NoSuchTagSet", "The TagSet does not exist", {"BucketName"}),
    ),
    "no public access block": (
        lambda s3, bucket: (s3.delete_public_access_block(Bucket=bucket), s3.get_public_access_block(Bucket=bucket)),
        (
            404,
            "NoSuchPublicAccessBlockConfiguration",
            "The public access block configuration was not found",
            {"BucketName"},
        ),
    ),
    "no lock": (
        lambda s3, bucket: s3.get_object_lock_configuration(Bucket=bucket),
        (
            404,
            "ObjectLockConfigurationNotFoundError",
            "Object Lock configuration does not exist for this bucket",
            {"BucketName"},
        ),
    ),
    "retention without lock": (
        with_key(lambda s3, bucket: s3.get_object_retention(Bucket=bucket, Key="k")),
        (400, "InvalidRequest", "Bucket is missing Object Lock Configuration", set()),
    ),
    "no upload": (
        lambda s3, bucket: s3.list_parts(Bucket=bucket, Key="k", UploadId=UNKNOWN),
        (404, "NoSuchUpload", NO_UPLOAD, {"UploadId"}),
    ),
    "order of parts": (
        disordered,
        (
            400,
            "InvalidPartOrder",
            "The list of parts was not in ascending order. Parts must be ordered by part number.",
            {"UploadId"},
        ),
    ),
    "unknown part": (unknown_part, (400, "InvalidPart", PART, {"ETag", "PartNumber", "UploadId"})),
    "small part": (
        small_part,
        (
            400,
            "EntityTooSmall",
            "Your proposed upload is smaller than the minimum allowed size",
            {"ETag", "MinSizeAllowed", "PartNumber", "ProposedSize"},
        ),
    ),
    "range": (
        with_key(lambda s3, bucket: s3.get_object(Bucket=bucket, Key="k", Range="bytes=10-20")),
        (416, "InvalidRange", "The requested range is not satisfiable", {"ActualObjectSize", "RangeRequested"}),
    ),
    "part number": (
        with_key(lambda s3, bucket: s3.get_object(Bucket=bucket, Key="k", PartNumber=2)),
        (
            416,
            "InvalidPartNumber",
            "The requested partnumber is not satisfiable",
            {"ActualPartCount", "PartNumberRequested"},
        ),
    ),
    "range and part number": (
        with_key(lambda s3, bucket: s3.get_object(Bucket=bucket, Key="k", PartNumber=1, Range="bytes=0-1")),
        (400, "InvalidRequest", "Cannot specify both Range header and partNumber query parameter", set()),
    ),
    "condition": (
        with_key(lambda s3, bucket: s3.get_object(Bucket=bucket, Key="k", IfMatch='"0"')),
        (412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {"Condition"}),
    ),
    "condition of a write": (
        with_key(lambda s3, bucket: s3.put_object(Bucket=bucket, Key="k", Body=b"", IfNoneMatch="*")),
        (412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {"Condition"}),
    ),
    "storage class": (
        lambda s3, bucket: s3.put_object(Bucket=bucket, Key="k", Body=b"", StorageClass="NOTHING"),
        (400, "InvalidStorageClass", "The storage class you specified is not valid", {"StorageClassRequested"}),
    ),
    "checksum": (
        lambda s3, bucket: s3.put_object(Bucket=bucket, Key="k", Body=b"x", ChecksumSHA256="A" * 43 + "="),
        (400, "BadDigest", "The SHA256 you specified did not match the calculated checksum.", set()),
    ),
    "MD5": (
        lambda s3, bucket: s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5="A" * 22 + "=="),
        (
            400,
            "BadDigest",
            "The Content-MD5 you specified did not match what we received.",
            {"CalculatedDigest", "ExpectedDigest"},
        ),
    ),
    "no MD5": (
        lambda s3, bucket: s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5="x"),
        (400, "InvalidDigest", "The Content-MD5 you specified was invalid.", {"Content-MD5"}),
    ),
    "copy to itself": (
        with_key(lambda s3, bucket: s3.copy_object(Bucket=bucket, Key="k", CopySource=f"{bucket}/k")),
        (400, "InvalidRequest", "", set()),
    ),
    "tags with one key": (
        with_key(tagging(("a", "1"), ("a", "2"))),
        (400, "InvalidTag", "Cannot provide multiple Tags with the same key", {"TagKey"}),
    ),
    "tag of AWS": (
        with_key(tagging(("aws:a", "1"))),
        (400, "InvalidTag", "System tags cannot be added/updated by requester", {"TagKey"}),
    ),
    "tag's key": (
        with_key(tagging(("a,b", "1"))),
        (400, "InvalidTag", "The TagKey you have provided is invalid", {"TagKey"}),
    ),
    "tag's value": (
        with_key(tagging(("a", "1,2"))),
        (400, "InvalidTag", "The TagValue you have provided is invalid", {"TagKey", "TagValue"}),
    ),
    "marker of a version": (
        lambda s3, bucket: s3.list_object_versions(Bucket=bucket, VersionIdMarker="x"),
        (
            400,
            "InvalidArgument",
            "A version-id marker cannot be specified without a key marker.",
            {"ArgumentName", "ArgumentValue"},
        ),
    ),
    "expected owner": (
        lambda s3, bucket: s3.head_bucket(Bucket=bucket, ExpectedBucketOwner="1" * 12),
        (403, "403", "Forbidden", set()),
    ),
}
NOT_ON_PLAIN_FILES = {"no lock", "retention without lock", "versions left"}


@pytest.mark.parametrize("case", CASES)
def test_errors(s3: Any, bucket: str, request: pytest.FixtureRequest, case: str) -> None:
    call, (status, code, message, elements) = CASES[case]
    if case in NOT_ON_PLAIN_FILES and "tree" in request.node.callspec.id:
        pytest.skip("plain files answer 501")
    with pytest.raises(ClientError) as error:
        call(s3, bucket)
    answer = error.value.response
    told = answer["Error"]
    assert (answer["ResponseMetadata"]["HTTPStatusCode"], told["Code"]) == (status, code)
    assert message in (told["Message"], "")
    assert told.keys() - {"Code", "Message", "Resource", "RequestId", "HostId"} == elements
