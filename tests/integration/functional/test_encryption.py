"""Encryption, by boto3: what is written in each way is read, copied, uploaded in parts, and plain nowhere."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.functional.conftest import MASTER
from tests.integration.functional.sealed import CHUNK, MODES, SEALED, SECRET, SIZES, body_of, bucket, keys, md5, spelled
from tests.integration.functional.test_multipart import MIB
from tests.integration.functional.test_post_object import policy_of, post, signed_v2
from tests.integration.functional.test_versioning import refused
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("tree", "memory")

__all__ = ["bucket", "keys"]


@pytest.mark.parametrize("name", MODES)
def test_what_is_put_is_got(s3: Any, bucket: str, name: str) -> None:
    mode = MODES[name]
    for size in SIZES:
        body = body_of(size)
        made = s3.put_object(Bucket=bucket, Key="k", Body=body, **mode.write)
        assert (made["ETag"] == md5(body)) is not mode.opaque
        for call in (s3.get_object, s3.head_object):
            told = call(Bucket=bucket, Key="k", **mode.read)
            assert (told["ETag"], told["ContentLength"]) == (made["ETag"], size)
            for field in ("ServerSideEncryption", "SSEKMSKeyId", "SSECustomerAlgorithm", "SSECustomerKeyMD5"):
                assert told.get(field) == made.get(field)
        assert s3.get_object(Bucket=bucket, Key="k", **mode.read)["Body"].read() == body
        (listed,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
        assert (listed["Size"], listed["ETag"]) == (size, made["ETag"])


@pytest.mark.parametrize("name", SEALED)
def test_ranges(s3: Any, bucket: str, name: str) -> None:
    mode, body = MODES[name], body_of(5 * CHUNK + 17)
    for size in (len(body), 2 * CHUNK, 300):
        s3.put_object(Bucket=bucket, Key="k", Body=body[:size], **mode.write)
        for first, last in ((0, 0), (CHUNK - 1, CHUNK), (CHUNK, 2 * CHUNK - 1), (3, 4 * CHUNK), (size - 1, size - 1)):
            if first < size:
                got = s3.get_object(Bucket=bucket, Key="k", Range=f"bytes={first}-{last}", **mode.read)
                assert got["Body"].read() == body[first : min(last + 1, size)]
        assert (
            s3.get_object(Bucket=bucket, Key="k", Range="bytes=-5", **mode.read)["Body"].read() == body[size - 5 : size]
        )


@pytest.mark.parametrize("source", MODES)
@pytest.mark.parametrize("target", MODES)
def test_copies(s3: Any, bucket: str, source: str, target: str) -> None:
    given, wanted, body = MODES[source], MODES[target], body_of(CHUNK + 5)
    s3.put_object(Bucket=bucket, Key="a", Body=body, Metadata={"a": "b"}, **given.write)
    place = {"Bucket": bucket, "Key": "a"}
    made = s3.copy_object(Bucket=bucket, Key="b", CopySource=place, **wanted.write, **given.copy)
    got = s3.get_object(Bucket=bucket, Key="b", **wanted.read)
    assert (got["Body"].read(), got["Metadata"], got["ETag"]) == (body, {"a": "b"}, made["CopyObjectResult"]["ETag"])
    assert (got["ETag"] == md5(body)) is not wanted.opaque
    assert got.get("ServerSideEncryption") == wanted.write.get("ServerSideEncryption")
    s3.delete_object(Bucket=bucket, Key="a")
    assert s3.get_object(Bucket=bucket, Key="b", **wanted.read)["Body"].read() == body
    # onto itself, to another encryption
    place["Key"] = "b"
    s3.copy_object(Bucket=bucket, Key="b", CopySource=place, ServerSideEncryption="AES256", **wanted.copy)
    got = s3.get_object(Bucket=bucket, Key="b")
    assert (got["Body"].read(), got["ETag"], got["ServerSideEncryption"]) == (body, md5(body), "AES256")


@pytest.mark.parametrize("name", ["s3", "kms", "customer"])
def test_uploads(s3: Any, bucket: str, name: str) -> None:
    mode = MODES[name]
    whole = {other: body_of(70_000) for other in ("plain", name, "another customer", "kms of another key")}
    for other, body in whole.items():
        s3.put_object(Bucket=bucket, Key=other, Body=body, **MODES[other].write)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="k", **mode.write)
    assert upload.get("ServerSideEncryption") == mode.write.get("ServerSideEncryption")
    place = {"Bucket": bucket, "Key": "k", "UploadId": upload["UploadId"]}
    first = body_of(5 * MIB + 1)
    sent = s3.upload_part(**place, PartNumber=1, Body=first, **mode.read)
    again = s3.upload_part(**place, PartNumber=1, Body=first, **mode.read)
    assert again["ETag"] == sent["ETag"]
    assert (sent["ETag"] == md5(first)) is not mode.opaque
    parts = [{"PartNumber": 1, "ETag": sent["ETag"]}]
    s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts}, **mode.read)
    # all of one, and a range of another, as the last part of an upload each
    for number, (other, body) in enumerate(whole.items()):
        upload = s3.create_multipart_upload(Bucket=bucket, Key="c", **mode.write)
        place = {"Bucket": bucket, "Key": "c", "UploadId": upload["UploadId"]}
        source = {"Bucket": bucket, "Key": "k"}
        range_ = {"CopySourceRange": "bytes=100-65999"} if number % 2 else {}
        parts = []
        copied = s3.upload_part_copy(**place, PartNumber=1, CopySource=source, **mode.read, **mode.copy)
        parts.append({"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"]})
        source = {"Bucket": bucket, "Key": other}
        copied = s3.upload_part_copy(
            **place, PartNumber=2, CopySource=source, **mode.read, **MODES[other].copy, **range_
        )
        parts.append({"PartNumber": 2, "ETag": copied["CopyPartResult"]["ETag"]})
        s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts}, **mode.read)
        expected = first + (body[100:66_000] if range_ else body)
        assert s3.get_object(Bucket=bucket, Key="c", **mode.read)["Body"].read() == expected
        for begin, end in ((0, 9), (5 * MIB - 3, 5 * MIB + 3), (len(expected) - 3, len(expected) - 1)):
            got = s3.get_object(Bucket=bucket, Key="c", Range=f"bytes={begin}-{end}", **mode.read)
            assert got["Body"].read() == expected[begin : end + 1]
        got = s3.get_object(Bucket=bucket, Key="c", PartNumber=2, **mode.read)
        assert (got["Body"].read(), got["PartsCount"]) == (expected[len(first) :], 2)
    told = s3.get_object_attributes(
        Bucket=bucket, Key="c", ObjectAttributes=["ObjectSize", "ObjectParts"], **spelled(mode.read)
    )
    assert (told["ObjectSize"], told["ObjectParts"]["TotalPartsCount"]) == (len(expected), 2)
    # a copy of a multipart object in each way
    for other in MODES.values():
        place = {"Bucket": bucket, "Key": "c"}
        s3.copy_object(Bucket=bucket, Key="d", CopySource=place, **other.write, **mode.copy)
        assert s3.get_object(Bucket=bucket, Key="d", **other.read)["Body"].read() == expected


# other ways to write and read
def test_a_form(s3: Any, gateway: Gateway, bucket: str) -> None:
    fields = {"key": "k", "x-amz-server-side-encryption": "AES256"}
    conditions = [{"bucket": bucket}, ["eq", "$key", "k"], ["eq", "$x-amz-server-side-encryption", "AES256"]]
    answer = post(gateway, bucket, {**fields, **signed_v2(policy_of(*conditions))}, b"body")
    assert (answer.status_code, answer.headers["x-amz-server-side-encryption"]) == (204, "AES256")
    assert answer.headers["etag"] == md5(b"body")
    got = s3.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["ServerSideEncryption"]) == (b"body", "AES256")


def test_presigned(s3: Any, bucket: str) -> None:
    body = body_of(CHUNK)
    url = s3.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "k", "ServerSideEncryption": "AES256"})
    headers = {"x-amz-server-side-encryption": "AES256"}
    assert httpx.put(url, content=body, headers=headers).headers["x-amz-server-side-encryption"] == "AES256"
    url = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"})
    assert httpx.get(url).content == body


def test_versions_each_in_its_own_way(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    bodies = {name: body_of(1000) for name in MODES}
    ids = {
        name: s3.put_object(Bucket=bucket, Key="k", Body=body, **MODES[name].write)["VersionId"]
        for name, body in bodies.items()
    }
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}, VersionId=ids["s3"])
    for name, version in ids.items():
        got = s3.get_object(Bucket=bucket, Key="k", VersionId=version, **MODES[name].read)
        assert got["Body"].read() == bodies[name]
        source = {"Bucket": bucket, "Key": "k", "VersionId": version}
        s3.copy_object(Bucket=bucket, Key="c", CopySource=source, **MODES["kms"].write, **MODES[name].copy)
        assert s3.get_object(Bucket=bucket, Key="c")["Body"].read() == bodies[name]


# the ring
def test_keys_are_rotated_disabled_and_enabled(gateway: Gateway, s3: Any, bucket: str) -> None:
    name = f"turned-{bucket}"
    gateway.run("key", "create", name)
    mode = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": name}
    old, new = body_of(CHUNK + 1), body_of(10)
    before = s3.put_object(Bucket=bucket, Key="old", Body=old, **mode)
    gateway.run("key", "rotate", name)
    gateway.run("key", "rotate", "sse-s3")
    s3.put_object(Bucket=bucket, Key="new", Body=new, **mode)
    assert s3.get_object(Bucket=bucket, Key="old")["Body"].read() == old
    assert s3.get_object(Bucket=bucket, Key="new")["Body"].read() == new
    assert s3.put_object(Bucket=bucket, Key="again", Body=old, **mode)["ETag"] == before["ETag"]
    listed = {one["key"]: one for one in json.loads(gateway.run("key", "list", "--json").stdout)}
    assert (listed[name]["versions"], listed[name]["disabled"]) == (2, False)
    gateway.run("key", "disable", name)
    refused(s3.put_object, 400, "KMS.DisabledException", Bucket=bucket, Key="new", Body=new, **mode)
    refused(s3.get_object, 400, "KMS.DisabledException", Bucket=bucket, Key="old")
    gateway.run("key", "enable", name)
    assert s3.get_object(Bucket=bucket, Key="old")["Body"].read() == old


def test_what_a_disabled_key_is_of_cannot_be_copied(gateway: Gateway, s3: Any, bucket: str) -> None:
    """Though nothing but its source says that the ring is needed."""
    name, body = f"off-{bucket}", body_of(CHUNK + 1)
    gateway.run("key", "create", name)
    s3.put_object(Bucket=bucket, Key="old", Body=body, ServerSideEncryption="aws:kms", SSEKMSKeyId=name)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
    place = {"Bucket": bucket, "CopySource": {"Bucket": bucket, "Key": "old"}}
    part = {**place, "Key": "parts", "UploadId": upload, "PartNumber": 1}
    for _ in range(4):  # in more than one worker
        gateway.run("key", "disable", name)
        refused(s3.copy_object, 400, "KMS.DisabledException", **place, Key="copied")
        gateway.run("key", "enable", name)
        s3.copy_object(**place, Key="copied")
        gateway.run("key", "disable", name)
        refused(s3.upload_part_copy, 400, "KMS.DisabledException", **part)
        gateway.run("key", "enable", name)
        s3.upload_part_copy(**part)
    assert s3.get_object(Bucket=bucket, Key="copied")["Body"].read() == body


def test_commands_that_cannot_be_done(gateway: Gateway, keys: None) -> None:
    for arguments, why in (
        (("create", "one"), "there is a key"),
        (("create", "not a name"), "no name"),
        (("rotate", "none"), "no key"),
        (("disable", "none"), "no key"),
    ):
        ended = gateway.run("key", *arguments, check=False)
        assert (ended.returncode, why in ended.stderr) == (1, True)


# at rest
@pytest.fixture
def found(gateway: Gateway) -> Iterator[Any]:
    def look(text: bytes) -> list[str]:
        return [str(path) for path in gateway.store.rglob("*") if path.is_file() and text in path.read_bytes()]

    return look  # type: ignore[return-value]


def test_nothing_of_it_is_plain_at_rest(gateway: Gateway, s3: Any, bucket: str, found: Any) -> None:
    for name, mode in MODES.items():
        secret = f"what nobody may read {name} {bucket}".encode()
        s3.put_object(Bucket=bucket, Key="small", Body=secret * 3, **mode.write)
        s3.put_object(Bucket=bucket, Key="large", Body=secret * 20_000, **mode.write)
        upload = s3.create_multipart_upload(Bucket=bucket, Key="m", **mode.write)["UploadId"]
        place = {"Bucket": bucket, "Key": "m", "UploadId": upload}
        s3.upload_part(**place, PartNumber=1, Body=secret * 5000, **mode.read)
        s3.upload_part_copy(
            **place, PartNumber=2, CopySource={"Bucket": bucket, "Key": "large"}, **mode.read, **mode.copy
        )
        if name == "plain":
            if gateway.store.exists() and gateway.place.store.get("driver") != "fsspec":
                assert found(secret)  # the search finds what there is
        else:
            assert found(secret) == []
    for kept in (base64.b64decode(MASTER), MASTER.encode(), SECRET, base64.b64encode(SECRET)):
        assert found(kept) == []
