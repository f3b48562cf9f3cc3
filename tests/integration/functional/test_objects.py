"""PutObject, GetObject, HeadObject, DeleteObject, DeleteObjects."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Any

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.place

KEYS = [
    "a",
    "a/b",
    "a//b",
    "/a",
    "a/",
    "//",
    "a b+c%d&e=f?g#h",
    "Zoë/日本/🚿",
    ".",
    "a/../b",
    "x" * 1024,
    "\\",
    "'\"<>&",
]


def code_of(error: pytest.ExceptionInfo[ClientError]) -> tuple[int, str]:
    """Status and code of an error answer."""
    answer = error.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


@pytest.mark.parametrize("size", [0, 1, 1000, 65_536, 300_000, 3 * 1024 * 1024 + 1])
def test_body_comes_back(s3: Any, bucket: str, size: int) -> None:
    body = os.urandom(size)
    put = s3.put_object(Bucket=bucket, Key="k", Body=body)
    assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == body
    assert got["ETag"] == put["ETag"]
    assert got["ContentLength"] == size
    assert got["AcceptRanges"] == "bytes"


@pytest.mark.parametrize("key", KEYS)
def test_any_key(s3: Any, bucket: str, key: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [key]
    s3.delete_object(Bucket=bucket, Key=key)
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_keys_a_and_a_slash_b_live_together(s3: Any, bucket: str) -> None:
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    listed = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert listed == sorted(KEYS, key=str.encode)
    for key in KEYS:
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()


@pytest.mark.parametrize("key", ["..", "../x", "a/../../b"])
def test_a_key_may_not_climb_above_the_bucket(s3: Any, bucket: str, key: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    assert code_of(error)[0] == 400
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_a_key_of_1025_bytes_is_too_long(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="x" * 1025, Body=b"x")
    assert code_of(error) == (400, "KeyTooLongError")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_overwrite_shows_the_new_object_only(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"old", Metadata={"a": "1"})
    s3.put_object(Bucket=bucket, Key="k", Body=b"newer", ContentType="text/x")
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == b"newer"
    assert got["Metadata"] == {}
    assert got["ContentType"] == "text/x"


def test_metadata_and_system_headers_are_kept(s3: Any, bucket: str) -> None:
    kept = {
        "CacheControl": "max-age=5",
        "ContentDisposition": "attachment",
        "ContentEncoding": "gzip",
        "ContentLanguage": "de",
        "ContentType": "text/plain",
        "Expires": "Wed, 21 Oct 2065 07:28:00 GMT",
        "StorageClass": "STANDARD_IA",
        "Metadata": {"one": "1", "two": "zwei drei"},
    }
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", **kept)
    for got in (s3.head_object(Bucket=bucket, Key="k"), s3.get_object(Bucket=bucket, Key="k")):
        assert {name: got[name] for name in kept if name != "Expires"} == {
            name: value for name, value in kept.items() if name != "Expires"
        }
        assert got["ExpiresString"] == kept["Expires"]


def test_metadata_over_2_kb_is_refused(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"m": "x" * 2048})
    assert code_of(error) == (400, "MetadataTooLarge")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"m": "x" * 2047})


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-0", 206, (0, 1)),
        ("bytes=5-", 206, (5, 1000)),
        ("bytes=-7", 206, (993, 1000)),
        ("bytes=10-19", 206, (10, 20)),
        ("bytes=990-5000", 206, (990, 1000)),
        ("bytes=-5000", 206, (0, 1000)),
        ("bytes=0-1,5-6", 200, (0, 1000)),
        ("bytes=9-5", 200, (0, 1000)),
        ("lines=0-1", 200, (0, 1000)),
    ],
)
def test_ranges(s3: Any, bucket: str, asked: str, status: int, part: tuple[int, int]) -> None:
    body = os.urandom(1000)
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    got = s3.get_object(Bucket=bucket, Key="k", Range=asked)
    assert got["ResponseMetadata"]["HTTPStatusCode"] == status
    assert got["Body"].read() == body[part[0] : part[1]]
    if status == 206:
        assert got["ContentRange"] == f"bytes {part[0]}-{part[1] - 1}/1000"


def test_range_past_the_end(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="k", Range="bytes=10-")
    assert code_of(error) == (416, "InvalidRange")
    assert error.value.response["Error"]["ActualObjectSize"] == "10"


def test_large_range_is_exact(s3: Any, bucket: str) -> None:
    body = os.urandom(5 * 1024 * 1024)
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    got = s3.get_object(Bucket=bucket, Key="k", Range="bytes=1000001-4000007")
    assert got["Body"].read() == body[1000001:4000008]


def test_conditional_reads(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    modified = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=etag)["Body"].read() == b"x"
    for wanted, status in [
        ({"IfNoneMatch": etag}, 304),
        ({"IfModifiedSince": modified}, 304),
        ({"IfMatch": '"0123456789abcdef0123456789abcdef"'}, 412),
        ({"IfUnmodifiedSince": modified.replace(year=2000)}, 412),
    ]:
        for call in (s3.get_object, s3.head_object):
            with pytest.raises(ClientError) as error:
                call(Bucket=bucket, Key="k", **wanted)
            assert code_of(error)[0] == status


def test_conditional_writes(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"1", IfNoneMatch="*")["ETag"]
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch="*")
    assert code_of(error) == (412, "PreconditionFailed")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="missing", Body=b"2", IfMatch=etag)
    assert code_of(error) == (404, "NoSuchKey")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"2", IfNoneMatch=etag)
    assert code_of(error) == (501, "NotImplemented")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"
    s3.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"3"
    with pytest.raises(ClientError) as error:
        s3.delete_object(Bucket=bucket, Key="k", IfMatch=etag)
    assert code_of(error) == (412, "PreconditionFailed")
    s3.delete_object(Bucket=bucket, Key="k", IfMatch="*")


def test_missing_things(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="missing")
    assert code_of(error) == (404, "NoSuchKey")
    with pytest.raises(ClientError) as error:
        s3.head_object(Bucket=bucket, Key="missing")
    assert code_of(error)[0] == 404
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket="no-such-bucket-here", Key="k")
    assert code_of(error) == (404, "NoSuchBucket")
    assert s3.delete_object(Bucket=bucket, Key="missing")["ResponseMetadata"]["HTTPStatusCode"] == 204


def test_delete_objects(s3: Any, bucket: str) -> None:
    keys = [f"k{number}" for number in range(20)]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    wanted = [{"Key": key} for key in [*keys[:10], "missing"]]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted})
    assert sorted(entry["Key"] for entry in answer["Deleted"]) == sorted([*keys[:10], "missing"])
    etag = s3.head_object(Bucket=bucket, Key="k10")["ETag"]
    answer = s3.delete_objects(
        Bucket=bucket,
        Delete={"Quiet": True, "Objects": [{"Key": "k10", "ETag": '"wrong"'}, {"Key": "k11", "ETag": etag}]},
    )
    assert "Deleted" not in answer
    assert [(entry["Key"], entry["Code"]) for entry in answer["Errors"]] == [("k10", "PreconditionFailed")]
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k10", *keys[12:]]


def test_response_overrides(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentType="a/b")
    got = s3.get_object(Bucket=bucket, Key="k", ResponseContentType="c/d", ResponseCacheControl="no-store")
    assert (got["ContentType"], got["CacheControl"]) == ("c/d", "no-store")


@pytest.mark.parametrize(
    "algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64"]
)
def test_checksums_are_kept(s3: Any, bucket: str, algorithm: str) -> None:
    put = s3.put_object(Bucket=bucket, Key="k", Body=b"hello", ChecksumAlgorithm=algorithm)
    name = f"Checksum{algorithm}"
    assert put[name]
    got = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert got["Body"].read() == b"hello"
    assert (got[name], got["ChecksumType"]) == (put[name], "FULL_OBJECT")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"other", **{name: put[name]})
    assert code_of(error) == (400, "BadDigest")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"hello"


def test_md5_as_a_checksum(s3: Any, bucket: str) -> None:
    """boto3 hands on what its user worked out. As a part's and a copy's it is worked out here."""
    md5 = base64.b64encode(hashlib.md5(b"hello").digest()).decode()
    assert s3.put_object(Bucket=bucket, Key="k", Body=b"hello", ChecksumMD5=md5)["ChecksumMD5"] == md5
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert (head["ChecksumMD5"], head["ChecksumType"]) == (md5, "FULL_OBJECT")
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["ChecksumAlgorithm"] == ["MD5"]
    got = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["Checksum"])
    assert got["Checksum"] == {"ChecksumMD5": md5, "ChecksumType": "FULL_OBJECT"}
    for body, wrong in ((b"other", md5), (b"hello", md5[:-4] + "AA==")):
        with pytest.raises(ClientError) as error:
            s3.put_object(Bucket=bucket, Key="k", Body=body, ChecksumMD5=wrong)
        assert code_of(error) == (400, "BadDigest")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"hello", ChecksumMD5=hashlib.md5(b"hello").hexdigest())
    assert code_of(error) == (400, "InvalidRequest")
    s3.put_object(Bucket=bucket, Key="other", Body=b"hello")
    source = {"Bucket": bucket, "Key": "other"}
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource=source, ChecksumAlgorithm="MD5")
    assert copied["CopyObjectResult"]["ChecksumMD5"] == md5
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="m", ChecksumAlgorithm="MD5")["UploadId"]
    at = {"Bucket": bucket, "Key": "m", "UploadId": upload_id}
    part = s3.upload_part(**at, PartNumber=1, Body=b"hello", ChecksumMD5=md5)
    named = [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumMD5": md5}]
    whole = base64.b64encode(hashlib.md5(hashlib.md5(b"hello").digest()).digest()).decode() + "-1"
    made = s3.complete_multipart_upload(**at, MultipartUpload={"Parts": named})
    assert (made["ChecksumMD5"], made["ChecksumType"]) == (whole, "COMPOSITE")


def test_wrong_content_md5_stores_nothing(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5="AAAAAAAAAAAAAAAAAAAAAA==")
    assert code_of(error) == (400, "BadDigest")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentMD5="nonsense")
    assert code_of(error) == (400, "InvalidDigest")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_another_account_may_do_nothing(s3: Any, other: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    calls = [
        lambda: other.get_object(Bucket=bucket, Key="k"),
        lambda: other.put_object(Bucket=bucket, Key="k2", Body=b"y"),
        lambda: other.delete_object(Bucket=bucket, Key="k"),
        lambda: other.list_objects_v2(Bucket=bucket),
        lambda: other.delete_bucket(Bucket=bucket),
        lambda: other.get_bucket_acl(Bucket=bucket),
        lambda: other.create_multipart_upload(Bucket=bucket, Key="m"),
    ]
    for call in calls:
        with pytest.raises(ClientError) as error:
            call()
        assert code_of(error) == (403, "AccessDenied")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]
    other.create_bucket(Bucket="of-the-other-account")
    with pytest.raises(ClientError) as error:
        other.copy_object(Bucket="of-the-other-account", Key="k", CopySource={"Bucket": bucket, "Key": "k"})
    assert code_of(error) == (403, "AccessDenied")
