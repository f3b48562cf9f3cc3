"""boto3 with its defaults untouched."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.clients.files import DOUBLE_SLASH, NAMES, SIZES, digest, digests, stored

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("name", SIZES)
def test_file_of_each_size_comes_back(s3: Any, bucket: str, tree: Path, tmp_path: Path, name: str) -> None:
    s3.upload_file(str(tree / "sizes" / name), bucket, name)
    s3.download_file(bucket, name, str(tmp_path / "back"))
    assert digest(tmp_path / "back") == digest(tree / "sizes" / name)
    head = s3.head_object(Bucket=bucket, Key=name, ChecksumMode="ENABLED")
    assert head["ContentLength"] == SIZES[name]
    assert head["ChecksumType"] == ("COMPOSITE" if SIZES[name] >= SIZES["threshold"] else "FULL_OBJECT")


@pytest.mark.parametrize("name", ["empty", "record and one", "largest"])
def test_put_object_from_a_file(s3: Any, bucket: str, tree: Path, name: str) -> None:
    with (tree / "sizes" / name).open("rb") as file:
        s3.put_object(Bucket=bucket, Key=name, Body=file, Metadata={"colour": "blue"}, ContentType="text/x-test")
    answer = s3.get_object(Bucket=bucket, Key=name)
    assert answer["Metadata"] == {"colour": "blue"}
    assert answer["ContentType"] == "text/x-test"
    assert answer["Body"].read() == (tree / "sizes" / name).read_bytes()


def test_managed_copy_of_a_large_object(s3: Any, bucket: str, tree: Path) -> None:
    s3.upload_file(str(tree / "sizes" / "largest"), bucket, "from here+%")
    s3.copy({"Bucket": bucket, "Key": "from here+%"}, bucket, "to there")
    found = stored(s3, bucket)
    assert found["to there"] == found["from here+%"] == digest(tree / "sizes" / "largest")


def test_every_name_is_listed_read_and_deleted(s3: Any, bucket: str) -> None:
    names = {*NAMES, *DOUBLE_SLASH}
    for name in names:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    for operation in ("list_objects", "list_objects_v2"):
        pages = s3.get_paginator(operation).paginate(Bucket=bucket, PaginationConfig={"PageSize": 4})
        listed = [entry["Key"] for page in pages for entry in page["Contents"]]
        assert listed == sorted(names, key=str.encode)
    for name in names:
        assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == name.encode()
    entries = [{"Key": name} for name in names]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": entries})
    assert {entry["Key"] for entry in answer["Deleted"]} == names
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    s3.delete_bucket(Bucket=bucket)


def test_folders_of_double_slashes(s3: Any, bucket: str) -> None:
    for name in DOUBLE_SLASH:
        s3.put_object(Bucket=bucket, Key=name, Body=b"")
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="a/", Delimiter="/")
    assert [entry["Prefix"] for entry in answer["CommonPrefixes"]] == ["a//"]
    assert "Contents" not in answer


@pytest.mark.parametrize("key", ["plain", "with space+plus%percent/日本語//x?y=z&q"])
def test_presigned_urls(s3: Any, bucket: str, key: str) -> None:
    target = {"Bucket": bucket, "Key": key}
    put = urllib.request.Request(s3.generate_presigned_url("put_object", Params=target), b"signed", method="PUT")
    # urllib sends a type that the signature of a URL made without one does not cover
    put.add_header("Content-Type", "")
    with urllib.request.urlopen(put, timeout=30) as answer:
        assert answer.status == 200
    with urllib.request.urlopen(s3.generate_presigned_url("get_object", Params=target), timeout=30) as answer:
        assert answer.read() == b"signed"
    tampered = s3.generate_presigned_url("get_object", Params=target).replace("plain", "other")
    if key == "plain":
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(tampered, timeout=30)


def test_errors_are_named(s3: Any, bucket: str) -> None:
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=bucket, Key="absent")
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.list_objects_v2(Bucket="no-such-bucket-here")
    s3.put_object(Bucket=bucket, Key="key", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key="key", Body=b"2", IfNoneMatch="*")
    assert caught.value.response["Error"]["Code"] == "PreconditionFailed"


def test_whole_tree(s3: Any, bucket: str, tree: Path) -> None:
    for path in tree.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), bucket, f"tree//{path.relative_to(tree)}")
    assert stored(s3, bucket, "tree//") == digests(tree)
