"""Multipart uploads, whole."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of

pytestmark = pytest.mark.place

MIB = 1024 * 1024


def upload(s3: Any, bucket: str, key: str, parts: list[bytes], **options: Any) -> tuple[str, list[dict[str, Any]]]:
    """Upload parts; returns the upload id and what Complete must name."""
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]
    named = []
    for number, body in enumerate(parts, 1):
        answer = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body)
        named.append({"PartNumber": number, "ETag": answer["ETag"]})
    return upload_id, named


def complete(s3: Any, bucket: str, key: str, upload_id: str, named: list[dict[str, Any]], **options: Any) -> Any:
    """Complete an upload."""
    return s3.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": named}, **options
    )


def test_upload_and_read_back(s3: Any, bucket: str) -> None:
    parts = [os.urandom(5 * MIB), os.urandom(6 * MIB), os.urandom(100)]
    upload_id, named = upload(s3, bucket, "m", parts, Metadata={"a": "b"}, ContentType="x/y")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    answer = complete(s3, bucket, "m", upload_id, named)
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    assert answer["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    whole = b"".join(parts)
    got = s3.get_object(Bucket=bucket, Key="m")
    assert got["Body"].read() == whole
    assert (got["ContentType"], got["Metadata"]) == ("x/y", {"a": "b"})
    middle = s3.get_object(Bucket=bucket, Key="m", Range=f"bytes={5 * MIB - 10}-{11 * MIB + 9}")
    assert middle["Body"].read() == whole[5 * MIB - 10 : 11 * MIB + 10]
    second = s3.get_object(Bucket=bucket, Key="m", PartNumber=2)
    assert (second["Body"].read(), second["PartsCount"]) == (parts[1], 3)
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=bucket, Key="m", PartNumber=4)
    assert code_of(error) == (416, "InvalidPartNumber")


def test_complete_is_idempotent(s3: Any, bucket: str) -> None:
    upload_id, named = upload(s3, bucket, "m", [b"one"])
    first = complete(s3, bucket, "m", upload_id, named)
    again = complete(s3, bucket, "m", upload_id, named)
    assert first["ETag"] == again["ETag"]
    s3.delete_object(Bucket=bucket, Key="m")
    with pytest.raises(ClientError) as error:
        complete(s3, bucket, "m", upload_id, named)
    assert code_of(error) == (404, "NoSuchUpload")


def test_what_complete_refuses(s3: Any, bucket: str) -> None:
    upload_id, named = upload(s3, bucket, "m", [b"small", b"last"])
    cases = [
        ([], (400, "MalformedXML")),
        ([named[1], named[0]], (400, "InvalidPartOrder")),
        ([named[0], named[0]], (400, "InvalidPartOrder")),
        ([{"PartNumber": 1, "ETag": named[1]["ETag"]}], (400, "InvalidPart")),
        ([{"PartNumber": 9, "ETag": named[0]["ETag"]}], (400, "InvalidPart")),
        (named, (400, "EntityTooSmall")),
    ]
    for parts, expected in cases:
        with pytest.raises(ClientError) as error:
            complete(s3, bucket, "m", upload_id, parts)
        assert code_of(error) == expected
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    complete(s3, bucket, "m", upload_id, named[1:])
    assert s3.get_object(Bucket=bucket, Key="m")["Body"].read() == b"last"


def test_abort(s3: Any, bucket: str) -> None:
    upload_id, named = upload(s3, bucket, "m", [b"x"])
    s3.abort_multipart_upload(Bucket=bucket, Key="m", UploadId=upload_id)
    for call in (
        lambda: s3.upload_part(Bucket=bucket, Key="m", UploadId=upload_id, PartNumber=1, Body=b"x"),
        lambda: s3.list_parts(Bucket=bucket, Key="m", UploadId=upload_id),
        lambda: complete(s3, bucket, "m", upload_id, named),
        lambda: s3.abort_multipart_upload(Bucket=bucket, Key="m", UploadId=upload_id),
    ):
        with pytest.raises(ClientError) as error:
            call()
        assert code_of(error) == (404, "NoSuchUpload")


def test_a_condition_of_an_abort_is_not_ignored(s3: Any, bucket: str) -> None:
    upload_id, _ = upload(s3, bucket, "m", [b"part"])
    place = {"Bucket": bucket, "Key": "m", "UploadId": upload_id}
    with pytest.raises(ClientError) as error:  # AWS has it for directory buckets
        s3.abort_multipart_upload(**place, IfMatchInitiatedTime=datetime(2020, 1, 1, tzinfo=UTC))
    assert code_of(error) == (501, "NotImplemented")
    assert len(s3.list_parts(**place)["Parts"]) == 1


def test_an_upload_belongs_to_its_key(s3: Any, bucket: str) -> None:
    upload_id, _ = upload(s3, bucket, "m", [b"x"])
    with pytest.raises(ClientError) as error:
        s3.upload_part(Bucket=bucket, Key="other", UploadId=upload_id, PartNumber=1, Body=b"x")
    assert code_of(error) == (404, "NoSuchUpload")


@pytest.mark.parametrize("number", [0, 10_001])
def test_part_numbers_outside_1_to_10000(s3: Any, bucket: str, number: int) -> None:
    upload_id, _ = upload(s3, bucket, "m", [])
    with pytest.raises(ClientError) as error:
        s3.upload_part(Bucket=bucket, Key="m", UploadId=upload_id, PartNumber=number, Body=b"x")
    assert code_of(error) == (400, "InvalidArgument")


def test_list_parts_pages(s3: Any, bucket: str) -> None:
    bodies = [f"part {number}".encode() for number in range(1, 8)]
    upload_id, named = upload(s3, bucket, "m", bodies)
    replaced = s3.upload_part(Bucket=bucket, Key="m", UploadId=upload_id, PartNumber=3, Body=b"again")
    named[2]["ETag"] = replaced["ETag"]
    found, marker = [], 0
    while True:
        page = s3.list_parts(Bucket=bucket, Key="m", UploadId=upload_id, MaxParts=3, PartNumberMarker=marker)
        found += [(part["PartNumber"], part["ETag"]) for part in page["Parts"]]
        if not page["IsTruncated"]:
            break
        marker = page["NextPartNumberMarker"]
    assert found == [(part["PartNumber"], part["ETag"]) for part in named]


def test_list_uploads_pages(s3: Any, bucket: str) -> None:
    ids = {}
    for key in ("a/1", "a/2", "b", "b", "c"):
        ids.setdefault(key, []).append(s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"])
    expected = [(key, upload_id) for key in sorted(ids) for upload_id in ids[key]]
    found, markers = [], {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=2, **markers)
        found += [(entry["Key"], entry["UploadId"]) for entry in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert found == expected
    page = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [entry["Prefix"] for entry in page["CommonPrefixes"]] == ["a/"]
    assert [entry["Key"] for entry in page["Uploads"]] == ["b", "b", "c"]


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("CRC32", "FULL_OBJECT"),
        ("CRC64NVME", "FULL_OBJECT"),
        ("SHA256", "COMPOSITE"),
        ("SHA512", "COMPOSITE"),
        ("XXHASH3", "COMPOSITE"),
    ],
)
def test_checksums_of_the_whole(s3: Any, bucket: str, algorithm: str, kind: str) -> None:
    parts = [os.urandom(5 * MIB), os.urandom(1000)]
    options = {"ChecksumAlgorithm": algorithm, "ChecksumType": kind}
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key="m", **options)["UploadId"]
    named = []
    for number, body in enumerate(parts, 1):
        part = s3.upload_part(
            Bucket=bucket, Key="m", UploadId=upload_id, PartNumber=number, Body=body, ChecksumAlgorithm=algorithm
        )
        checksum = {f"Checksum{algorithm}": part[f"Checksum{algorithm}"]}
        named.append({"PartNumber": number, "ETag": part["ETag"], **checksum})
    answer = complete(s3, bucket, "m", upload_id, named)
    name = f"Checksum{algorithm}"
    assert answer["ChecksumType"] == kind
    if kind == "FULL_OBJECT":
        s3.put_object(Bucket=bucket, Key="whole", Body=b"".join(parts), ChecksumAlgorithm=algorithm)
        whole = s3.head_object(Bucket=bucket, Key="whole", ChecksumMode="ENABLED")
        assert answer[name] == whole[name]
    else:
        assert answer[name].endswith("-2")
    head = s3.head_object(Bucket=bucket, Key="m", ChecksumMode="ENABLED")
    assert (head[name], head["ChecksumType"]) == (answer[name], kind)


def test_the_number_of_parts_in_a_promised_checksum_counts(s3: Any, bucket: str) -> None:
    def text(digest: bytes) -> str:
        return base64.b64encode(digest).decode()

    full = text(zlib.crc32(b"x").to_bytes(4, "big"))
    composite = text(hashlib.sha256(hashlib.sha256(b"x").digest()).digest())
    for algorithm, kind, wrong, right in (
        ("CRC32", "FULL_OBJECT", [full + "-1", full + "-7"], [full]),
        ("SHA256", "COMPOSITE", [composite + "-2", composite + "-01"], [composite, composite + "-1"]),
    ):
        for value in right:
            options = {"ChecksumAlgorithm": algorithm, "ChecksumType": kind}
            upload_id, _ = upload(s3, bucket, "m", [], **options)
            at = {"Bucket": bucket, "Key": "m", "UploadId": upload_id}
            part = s3.upload_part(**at, PartNumber=1, Body=b"x", ChecksumAlgorithm=algorithm)
            name = f"Checksum{algorithm}"
            named = [{"PartNumber": 1, "ETag": part["ETag"], name: part[name]}]
            for other in wrong:
                with pytest.raises(ClientError) as error:
                    complete(s3, bucket, "m", upload_id, named, **{name: other})
                assert code_of(error) == (400, "BadDigest")
            complete(s3, bucket, "m", upload_id, named, **{name: value})


def test_conditions_on_complete(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="m", Body=b"there")
    upload_id, named = upload(s3, bucket, "m", [b"x"])
    with pytest.raises(ClientError) as error:
        complete(s3, bucket, "m", upload_id, named, IfNoneMatch="*")
    assert code_of(error) == (412, "PreconditionFailed")
    assert s3.get_object(Bucket=bucket, Key="m")["Body"].read() == b"there"
    etag = s3.head_object(Bucket=bucket, Key="m")["ETag"]
    complete(s3, bucket, "m", upload_id, named, IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="m")["Body"].read() == b"x"


def test_attributes_show_checksums_as_they_were_kept(s3: Any, bucket: str) -> None:
    """What LocalStack recorded of AWS: a composite checksum without its `-2`, and with those of its parts."""
    asked = {"Bucket": bucket, "Key": "m", "ObjectAttributes": ["Checksum", "ObjectParts"]}
    bodies = [b"x" * (5 * MIB), b"y"]
    for options in ({"ChecksumAlgorithm": "SHA256"}, {"ChecksumAlgorithm": "CRC64NVME"}, {}):
        upload_id = s3.create_multipart_upload(Bucket=bucket, Key="m", **options)["UploadId"]
        at = {"Bucket": bucket, "Key": "m", "UploadId": upload_id}
        named = []
        for number, body in enumerate(bodies, 1):
            part = s3.upload_part(PartNumber=number, Body=body, **at, **options)
            sums = {name: value for name, value in part.items() if name.startswith("Checksum")}
            named.append({"PartNumber": number, "ETag": part["ETag"], **sums})
        made = complete(s3, bucket, "m", upload_id, named)
        got = s3.get_object_attributes(**asked)
        name = next(name for name in made if name.startswith("Checksum") and name != "ChecksumType")
        assert got["Checksum"] == {name: made[name].removesuffix("-2"), "ChecksumType": made["ChecksumType"]}
        shown = [part.get(name) for part in got["ObjectParts"]["Parts"]]
        assert shown == ([part[name] for part in named] if made["ChecksumType"] == "COMPOSITE" else [None, None])


def test_object_attributes(s3: Any, bucket: str) -> None:
    upload_id, named = upload(s3, bucket, "m", [b"x" * (5 * MIB), b"y"])
    complete(s3, bucket, "m", upload_id, named)
    asked = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    got = s3.get_object_attributes(Bucket=bucket, Key="m", ObjectAttributes=asked, MaxParts=1)
    assert (got["ObjectSize"], got["StorageClass"]) == (5 * MIB + 1, "STANDARD")
    assert got["ObjectParts"]["TotalPartsCount"] == 2
    assert got["ObjectParts"]["IsTruncated"] is True
    assert [part["PartNumber"] for part in got["ObjectParts"]["Parts"]] == [1]
    rest = s3.get_object_attributes(Bucket=bucket, Key="m", ObjectAttributes=asked, PartNumberMarker=1)
    assert [(part["PartNumber"], part["Size"]) for part in rest["ObjectParts"]["Parts"]] == [(2, 1)]


def test_uploads_are_their_makers(s3: Any, other: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    """Where ACLs hold; else all is the bucket owner's. Names are shown of everybody."""
    if "tree" in request.node.callspec.id:
        pytest.skip("plain files have no ACLs")
    name = f"{bucket}-writers"
    s3.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    s3.delete_public_access_block(Bucket=name)
    s3.put_bucket_acl(Bucket=name, ACL="public-read-write")
    theirs = other.create_multipart_upload(Bucket=name, Key="k")["UploadId"]
    account = other.list_buckets()["Owner"]
    for who in (s3, other):
        (shown,) = who.list_multipart_uploads(Bucket=name)["Uploads"]
        assert shown["Owner"] == shown["Initiator"] == account
    for who in (s3, other):
        listed = who.list_parts(Bucket=name, Key="k", UploadId=theirs)
        assert listed["Owner"] == listed["Initiator"] == account
    ours = s3.create_multipart_upload(Bucket=name, Key="k")["UploadId"]
    for upload in (ours, "0" * 48):  # whose it is, and whether there is one, only its maker is told
        for call in (other.list_parts, other.abort_multipart_upload):
            with pytest.raises(ClientError) as error:
                call(Bucket=name, Key="k", UploadId=upload)
            assert code_of(error) == (403, "AccessDenied")
    other.abort_multipart_upload(Bucket=name, Key="k", UploadId=theirs)
    (left,) = s3.list_multipart_uploads(Bucket=name)["Uploads"]
    assert left["UploadId"] == ours
