"""ListObjects, ListObjectsV2, ListObjectVersions."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of

pytestmark = pytest.mark.place("postgres", "tree")


@pytest.fixture
def tree(s3: Any, bucket: str) -> list[str]:
    """Keys in UTF-8 byte order."""
    keys = ["a/1", "a/2", "a/b/3", "b", "c d/x", "c/x", "quux", "z/", "z//", "é/1", "日", "🚿"]
    for key in reversed(keys):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    return sorted(keys, key=str.encode)


def pages(call: Any, marker: str, next_marker: str, **options: Any) -> tuple[list[str], list[str], int]:
    """Keys, prefixes and number of pages of a paged listing."""
    keys: list[str] = []
    prefixes: list[str] = []
    count = 0
    while True:
        page = call(**options)
        count += 1
        keys += [entry["Key"] for entry in page.get("Contents", [])]
        prefixes += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        if not page["IsTruncated"]:
            return keys, prefixes, count
        options[marker] = page.get(next_marker) or page["Contents"][-1]["Key"]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_pages(s3: Any, bucket: str, tree: list[str], size: int) -> None:
    found, _, _ = pages(s3.list_objects_v2, "ContinuationToken", "NextContinuationToken", Bucket=bucket, MaxKeys=size)
    assert found == tree
    found, _, _ = pages(s3.list_objects, "Marker", "NextMarker", Bucket=bucket, MaxKeys=size)
    assert found == tree


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_delimiter(s3: Any, bucket: str, tree: list[str], size: int) -> None:
    for call, marker, next_marker in (
        (s3.list_objects_v2, "ContinuationToken", "NextContinuationToken"),
        (s3.list_objects, "Marker", "NextMarker"),
    ):
        keys, prefixes, _ = pages(call, marker, next_marker, Bucket=bucket, Delimiter="/", MaxKeys=size)
        assert keys == [key for key in tree if "/" not in key]
        assert prefixes == ["a/", "c d/", "c/", "z/", "é/"]


def test_prefix_and_delimiter(s3: Any, bucket: str, tree: list[str]) -> None:
    page = s3.list_objects_v2(Bucket=bucket, Prefix="a/", Delimiter="/")
    assert [entry["Key"] for entry in page["Contents"]] == ["a/1", "a/2"]
    assert [entry["Prefix"] for entry in page["CommonPrefixes"]] == ["a/b/"]
    assert page["KeyCount"] == 3
    page = s3.list_objects_v2(Bucket=bucket, Prefix="z/", Delimiter="/")
    assert ([entry["Key"] for entry in page["Contents"]], page["CommonPrefixes"]) == (["z/"], [{"Prefix": "z//"}])


def test_start_after_and_owner(s3: Any, bucket: str, tree: list[str]) -> None:
    page = s3.list_objects_v2(Bucket=bucket, StartAfter="b", FetchOwner=True)
    assert [entry["Key"] for entry in page["Contents"]] == tree[4:]
    assert all(entry["Owner"]["ID"] for entry in page["Contents"])
    assert page["StartAfter"] == "b"


def test_an_entry_says_what_head_says(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"12345", StorageClass="GLACIER_IR", ChecksumAlgorithm="SHA1")
    (entry,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (entry["ETag"], entry["Size"], entry["StorageClass"]) == (head["ETag"], 5, "GLACIER_IR")
    assert entry["LastModified"].replace(microsecond=0) == head["LastModified"]
    assert (entry["ChecksumAlgorithm"], entry["ChecksumType"]) == (["SHA1"], "FULL_OBJECT")


def test_max_keys(s3: Any, bucket: str, tree: list[str]) -> None:
    page = s3.list_objects_v2(Bucket=bucket, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"]) == (0, False)
    assert s3.list_objects_v2(Bucket=bucket, MaxKeys=5000)["MaxKeys"] == 1000
    with pytest.raises(ClientError) as error:
        s3.list_objects_v2(Bucket=bucket, MaxKeys=-1)
    assert code_of(error) == (400, "InvalidArgument")


def test_a_foreign_continuation_token(s3: Any, bucket: str) -> None:
    for token in ("nonsense", "../../etc"):
        with pytest.raises(ClientError) as error:
            s3.list_objects_v2(Bucket=bucket, ContinuationToken=token)
        assert code_of(error) == (400, "InvalidArgument")


def test_versions_of_an_unversioned_bucket(s3: Any, bucket: str, tree: list[str]) -> None:
    found, markers = [], {}
    while True:
        page = s3.list_object_versions(Bucket=bucket, MaxKeys=5, **markers)
        found += [(entry["Key"], entry["VersionId"], entry["IsLatest"]) for entry in page["Versions"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
    assert found == [(key, "null", True) for key in tree]
    assert s3.get_object(Bucket=bucket, Key="b", VersionId="null")["Body"].read() == b"b"
    s3.delete_object(Bucket=bucket, Key="b", VersionId="null")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="b")
    assert code_of(error) == (404, "NoSuchKey")


def test_keys_that_xml_cannot_hold(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a\x01b\x0bc", Body=b"x")
    (entry,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert entry["Key"] == "a\x01b\x0bc"
