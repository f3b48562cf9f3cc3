"""CopyObject and UploadPartCopy."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_multipart import MIB, complete, upload
from tests.integration.functional.test_objects import KEYS, code_of

pytestmark = pytest.mark.place


@pytest.mark.parametrize("key", KEYS)
def test_copy_of_any_key(s3: Any, bucket: str, key: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=b"bytes", Metadata={"a": "b"}, ContentType="x/y")
    answer = s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
    assert answer["CopyObjectResult"]["ETag"] == f'"{hashlib.md5(b"bytes").hexdigest()}"'
    got = s3.get_object(Bucket=bucket, Key="copy")
    assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (b"bytes", {"a": "b"}, "x/y")


def test_a_plus_in_the_name_of_the_source_is_a_blank(s3: Any, bucket: str) -> None:
    for key in ("a b", "a+b"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())

    def raw(request: Any, **_: Any) -> None:
        request.headers.replace_header("x-amz-copy-source", f"{bucket}/{written}")

    s3.meta.events.register("before-sign.s3.CopyObject", raw)
    try:
        for written, key in (("a+b", "a b"), ("a%2Bb", "a+b"), ("a%20b", "a b")):  # noqa: B007 - `raw` reads it
            s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
            assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == key.encode()
    finally:
        s3.meta.events.unregister("before-sign.s3.CopyObject", raw)


def test_a_copy_outlives_its_source(s3: Any, bucket: str) -> None:
    body = os.urandom(300_000)
    s3.put_object(Bucket=bucket, Key="source", Body=body)
    for number in range(3):
        s3.copy_object(Bucket=bucket, Key=f"copy{number}", CopySource={"Bucket": bucket, "Key": "source"})
    s3.delete_object(Bucket=bucket, Key="source")
    s3.delete_object(Bucket=bucket, Key="copy0")
    assert s3.get_object(Bucket=bucket, Key="copy1")["Body"].read() == body
    assert s3.get_object(Bucket=bucket, Key="copy2")["Body"].read() == body


@pytest.mark.parametrize("directive", ["COPY", "REPLACE"])
def test_a_redirect_that_leads_nowhere_is_refused(s3: Any, bucket: str, directive: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", WebsiteRedirectLocation="/of-the-source")
    copied = {"Bucket": bucket, "Key": "copy", "CopySource": f"{bucket}/k", "MetadataDirective": directive}
    with pytest.raises(ClientError) as error:
        s3.copy_object(**copied, WebsiteRedirectLocation="elsewhere")
    assert code_of(error) == (400, "InvalidArgument")
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]
    s3.copy_object(**copied, WebsiteRedirectLocation="/there")
    assert s3.head_object(Bucket=bucket, Key="copy")["WebsiteRedirectLocation"] == "/there"
    s3.copy_object(**copied)
    assert "WebsiteRedirectLocation" not in s3.head_object(Bucket=bucket, Key="copy")


def test_what_makes_a_copy_onto_itself_lawful(s3: Any, bucket: str) -> None:
    """What LocalStack recorded of AWS: a class or redirect that is named, be it the same; never the default."""
    at = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**at, Body=b"x", StorageClass="STANDARD_IA", Metadata={"a": "b"})
    with pytest.raises(ClientError) as error:
        s3.copy_object(**at, CopySource=at)
    assert code_of(error) == (400, "InvalidRequest")
    assert s3.head_object(**at)["StorageClass"] == "STANDARD_IA"
    for storage_class in ("STANDARD_IA", "STANDARD", "STANDARD"):
        s3.copy_object(**at, CopySource=at, StorageClass=storage_class)
        head = s3.head_object(**at)
        assert (head.get("StorageClass", "STANDARD"), head["Metadata"]) == (storage_class, {"a": "b"})
    for _ in range(2):
        s3.copy_object(**at, CopySource=at, WebsiteRedirectLocation="/there")
    assert s3.get_object(**at)["Body"].read() == b"x"


def test_replaced_metadata(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"a": "b"}, ContentType="x/y")
    source = {"Bucket": bucket, "Key": "k"}
    with pytest.raises(ClientError) as error:
        s3.copy_object(Bucket=bucket, Key="k", CopySource=source)
    assert code_of(error) == (400, "InvalidRequest")
    s3.copy_object(Bucket=bucket, Key="k", CopySource=source, MetadataDirective="REPLACE", Metadata={"c": "d"})
    got = s3.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (b"x", {"c": "d"}, "binary/octet-stream")


def test_conditions_of_copy(s3: Any, bucket: str) -> None:
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    source = {"Bucket": bucket, "Key": "k"}
    s3.copy_object(Bucket=bucket, Key="c", CopySource=source, CopySourceIfMatch=etag)
    for wanted in ({"CopySourceIfNoneMatch": etag}, {"CopySourceIfMatch": '"no"'}, {"IfNoneMatch": "*"}):
        with pytest.raises(ClientError) as error:
            s3.copy_object(Bucket=bucket, Key="c", CopySource=source, **wanted)
        assert code_of(error) == (412, "PreconditionFailed")


def test_copy_of_what_is_not_there(s3: Any, bucket: str) -> None:
    for source, expected in [
        ({"Bucket": bucket, "Key": "missing"}, "NoSuchKey"),
        ({"Bucket": "no-such-bucket-here", "Key": "k"}, "NoSuchBucket"),
    ]:
        with pytest.raises(ClientError) as error:
            s3.copy_object(Bucket=bucket, Key="c", CopySource=source)
        assert code_of(error) == (404, expected)
    for source in ("", "x", "/", f"{bucket}/"):
        with pytest.raises(ClientError) as error:
            s3.copy_object(Bucket=bucket, Key="c", CopySource=source or "/")
        assert code_of(error) == (400, "InvalidArgument")


def test_another_checksum_is_made(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"hello")
    wanted = s3.put_object(Bucket=bucket, Key="k2", Body=b"hello", ChecksumAlgorithm="SHA256")["ChecksumSHA256"]
    copied = s3.copy_object(
        Bucket=bucket, Key="c", CopySource={"Bucket": bucket, "Key": "k"}, ChecksumAlgorithm="SHA256"
    )
    assert copied["CopyObjectResult"]["ChecksumSHA256"] == wanted


def test_copy_of_a_multipart_object(s3: Any, bucket: str) -> None:
    parts = [os.urandom(5 * MIB), os.urandom(10)]
    upload_id, named = upload(s3, bucket, "m", parts)
    complete(s3, bucket, "m", upload_id, named)
    s3.copy_object(Bucket=bucket, Key="c", CopySource={"Bucket": bucket, "Key": "m"})
    s3.delete_object(Bucket=bucket, Key="m")
    assert s3.get_object(Bucket=bucket, Key="c")["Body"].read() == b"".join(parts)


def test_upload_part_copy(s3: Any, bucket: str) -> None:
    body = os.urandom(12 * MIB)
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    named = []
    for number, (first, last) in enumerate([(0, 6 * MIB - 1), (MIB, 7 * MIB), (5, 9)], 1):
        answer = s3.upload_part_copy(
            Bucket=bucket,
            Key="m",
            UploadId=upload_id,
            PartNumber=number,
            CopySource={"Bucket": bucket, "Key": "k"},
            CopySourceRange=f"bytes={first}-{last}",
        )
        etag = answer["CopyPartResult"]["ETag"]
        assert etag == f'"{hashlib.md5(body[first : last + 1]).hexdigest()}"'
        named.append({"PartNumber": number, "ETag": etag})
    complete(s3, bucket, "m", upload_id, named)
    s3.delete_object(Bucket=bucket, Key="k")
    assert (
        s3.get_object(Bucket=bucket, Key="m")["Body"].read() == body[: 6 * MIB] + body[MIB : 7 * MIB + 1] + body[5:10]
    )
    # a copy of a range that spans the parts of a multipart object
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="n")["UploadId"]
    answer = s3.upload_part_copy(
        Bucket=bucket,
        Key="n",
        UploadId=upload_id,
        PartNumber=1,
        CopySource={"Bucket": bucket, "Key": "m"},
        CopySourceRange=f"bytes={6 * MIB - 3}-{6 * MIB + 2}",
    )
    complete(s3, bucket, "n", upload_id, [{"PartNumber": 1, "ETag": answer["CopyPartResult"]["ETag"]}])
    s3.delete_object(Bucket=bucket, Key="m")
    assert s3.get_object(Bucket=bucket, Key="n")["Body"].read() == body[6 * MIB - 3 : 6 * MIB] + body[MIB : MIB + 3]


def test_copy_range_past_the_end(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="m")["UploadId"]
    for asked in ("bytes=5-10", "bytes=9-3", "5-6", "bytes=5-"):
        with pytest.raises(ClientError) as error:
            s3.upload_part_copy(
                Bucket=bucket,
                Key="m",
                UploadId=upload_id,
                PartNumber=1,
                CopySource={"Bucket": bucket, "Key": "k"},
                CopySourceRange=asked,
            )
        assert code_of(error)[1] in ("InvalidArgument", "InvalidRange")
    assert "Parts" not in s3.list_parts(Bucket=bucket, Key="m", UploadId=upload_id)
