"""RenameObject and appending, by boto3."""

from __future__ import annotations

import base64
import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.errors import TooManyParts
from sluice_s3.app.s3.objects import append
from sluice_s3.app.s3.wire import checksums
from tests.integration.functional.test_policy import OTHER, put, statement
from tests.integration.functional.test_versioning import refused, switch
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place

OLD, NEW = datetime(2001, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)


@pytest.fixture
def plain(s3: Any, bucket: str, request: pytest.FixtureRequest) -> str:
    """A bucket where both can be done."""
    if "tree" in request.node.name:
        s3.put_object(Bucket=bucket, Key="a", Body=b"a")
        refused(s3.rename_object, 501, "NotImplemented", Bucket=bucket, Key="b", RenameSource="a")
        refused(s3.put_object, 501, "NotImplemented", Bucket=bucket, Key="a", Body=b"b", WriteOffsetBytes=1)
        pytest.skip("others may change plain files")
    return bucket


def body(s3: Any, bucket: str, key: str, **more: Any) -> bytes:
    found: bytes = s3.get_object(Bucket=bucket, Key=key, **more)["Body"].read()
    return found


def names(s3: Any, bucket: str) -> list[str]:
    return [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_rename(s3: Any, plain: str) -> None:
    at = {"Bucket": plain}
    s3.put_object(Key="dir/ö a", Body=b"body", Metadata={"m": "1"}, Tagging="t=1", ContentType="text/x", **at)
    before = s3.head_object(Key="dir/ö a", **at)
    s3.rename_object(Key="new+key", RenameSource="dir/%C3%B6%20a", **at)
    after = s3.head_object(Key="new+key", **at)
    for name in ("ETag", "ContentLength", "Metadata", "ContentType"):
        assert before[name] == after[name]
    assert s3.get_object_tagging(Key="new+key", **at)["TagSet"] == [{"Key": "t", "Value": "1"}]
    assert names(s3, plain) == ["new+key"]
    refused(s3.get_object, 404, "NoSuchKey", Key="dir/ö a", **at)
    s3.rename_object(Key="again", RenameSource=f"/{plain}/new%2Bkey", **at)
    assert (names(s3, plain), body(s3, plain, "again")) == (["again"], b"body")


def test_rename_takes_the_place_of_what_is_there(s3: Any, plain: str) -> None:
    at = {"Bucket": plain}
    for key in "abc":
        s3.put_object(Key=key, Body=key.encode(), **at)
    refused(s3.rename_object, 412, "PreconditionFailed", Key="b", RenameSource="a", DestinationIfNoneMatch="*", **at)
    assert body(s3, plain, "b") == b"b"
    s3.rename_object(Key="b", RenameSource="a", **at)
    assert (names(s3, plain), body(s3, plain, "b")) == (["b", "c"], b"a")
    s3.rename_object(Key="d", RenameSource="c", DestinationIfNoneMatch="*", **at)
    assert names(s3, plain) == ["b", "d"]


def test_conditions_of_rename(s3: Any, plain: str) -> None:
    at = {"Bucket": plain, "Key": "b", "RenameSource": "a"}
    etag = s3.put_object(Bucket=plain, Key="a", Body=b"a")["ETag"]
    other = s3.put_object(Bucket=plain, Key="b", Body=b"b")["ETag"]
    for wanted in (
        {"SourceIfMatch": other},
        {"SourceIfNoneMatch": etag},
        {"SourceIfNoneMatch": "*"},
        {"SourceIfModifiedSince": NEW},
        {"SourceIfUnmodifiedSince": OLD},
        {"DestinationIfMatch": etag},
        {"DestinationIfModifiedSince": NEW},
        {"DestinationIfUnmodifiedSince": OLD},
    ):
        refused(s3.rename_object, 412, "PreconditionFailed", **at, **wanted)
    assert (body(s3, plain, "a"), body(s3, plain, "b")) == (b"a", b"b")
    held = {"SourceIfMatch": etag, "SourceIfUnmodifiedSince": NEW, "DestinationIfMatch": other}
    s3.rename_object(**at, **held, SourceIfModifiedSince=OLD, SourceIfNoneMatch=other)
    assert body(s3, plain, "b") == b"a"


def test_rename_is_refused(s3: Any, plain: str) -> None:
    at = {"Bucket": plain}
    s3.put_object(Key="a", Body=b"a", **at)
    refused(s3.rename_object, 404, "NoSuchKey", Key="b", RenameSource="missing", **at)
    refused(s3.rename_object, 400, "InvalidRequest", Key="a", RenameSource="a", **at)
    refused(s3.rename_object, 400, "InvalidArgument", Key="b", RenameSource="a", ClientToken="t" * 65, **at)
    refused(s3.rename_object, 400, "KeyTooLongError", Key="b", RenameSource="a" * 1025, **at)
    switch(s3, plain, "Enabled")
    refused(s3.rename_object, 501, "NotImplemented", Key="b", RenameSource="a", **at)
    refused(s3.put_object, 501, "NotImplemented", Key="a", Body=b"b", WriteOffsetBytes=1, **at)


def test_a_token_makes_rename_known_again(s3: Any, plain: str) -> None:
    at = {"Bucket": plain, "Key": "b", "RenameSource": "a", "ClientToken": "token-1"}
    s3.put_object(Bucket=plain, Key="a", Body=b"a")
    s3.rename_object(**at)
    s3.put_object(Bucket=plain, Key="a", Body=b"later")
    s3.rename_object(**at)
    assert (names(s3, plain), body(s3, plain, "b")) == (["a", "b"], b"a")
    refused(s3.rename_object, 400, "IdempotencyParameterMismatch", **{**at, "Key": "c"})


def test_rights_of_rename(s3: Any, other: Any, plain: str) -> None:
    """Whoever renames could have copied and deleted."""
    s3.put_object(Bucket=plain, Key="a", Body=b"a")
    rights = {"s3:PutObject": "b", "s3:GetObject": "a", "s3:DeleteObject": "a"}
    who = {"AWS": OTHER}
    at = {"Bucket": plain, "Key": "b", "RenameSource": "a"}
    for missing in rights:
        allowed = [
            statement(plain, action, principal=who, keys=key) for action, key in rights.items() if action != missing
        ]
        put(s3, plain, *allowed)
        refused(other.rename_object, 403, "AccessDenied", **at)
    put(s3, plain, *(statement(plain, action, principal=who, keys=key) for action, key in rights.items()))
    other.rename_object(**at)
    assert names(s3, plain) == ["b"]


# appends


def test_append(s3: Any, plain: str) -> None:
    at = {"Bucket": plain, "Key": "log"}
    s3.put_object(Body=b"one,", WriteOffsetBytes=0, Metadata={"m": "1"}, ContentType="text/x", **at)
    whole = b"one,"
    etags = {s3.head_object(**at)["ETag"]}
    for piece in (b"two,", b"x" * 300_000, b"four"):
        done = s3.put_object(Body=piece, WriteOffsetBytes=len(whole), **at)
        whole += piece
        assert done["Size"] == len(whole)
        found = s3.get_object(ChecksumMode="ENABLED", **at)
        assert found["Body"].read() == whole
        assert (found["ETag"], found["Metadata"], found["ContentType"]) == (done["ETag"], {"m": "1"}, "text/x")
        etags.add(done["ETag"])
    assert len(etags) == 4
    assert body(s3, plain, "log", Range="bytes=3-6") == b",two"
    assert body(s3, plain, "log", PartNumber=2) == b"two,"
    attributes = s3.get_object_attributes(ObjectAttributes=["ObjectParts", "ObjectSize"], **at)
    assert (attributes["ObjectSize"], attributes["ObjectParts"]["TotalPartsCount"]) == (len(whole), 4)
    assert [entry["Size"] for entry in s3.list_objects_v2(Bucket=plain)["Contents"]] == [len(whole)]


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA256"])
def test_checksums_of_what_was_appended_to(s3: Any, plain: str, algorithm: str) -> None:
    at = {"Bucket": plain, "Key": "k"}
    s3.put_object(Body=b"first", ChecksumAlgorithm=algorithm, **at)
    for offset in (5, 10):
        s3.put_object(Body=b"later", WriteOffsetBytes=offset, **at)
    head = s3.head_object(ChecksumMode="ENABLED", **at)
    if algorithm == "SHA256":  # it cannot be told without all bytes
        assert not [name for name in head if name.startswith("Checksum")]
        return
    hasher = checksums.ALGORITHMS[algorithm].new()
    hasher.update(b"firstlaterlater")
    assert (head["Checksum" + algorithm], head["ChecksumType"]) == (hasher.digest_base64(), "FULL_OBJECT")
    wrong = base64.b64encode(b"\0" * (8 if algorithm == "CRC64NVME" else 4)).decode()
    refused(s3.put_object, 400, "BadDigest", Body=b"x", WriteOffsetBytes=15, **{"Checksum" + algorithm: wrong}, **at)
    assert body(s3, plain, "k") == b"firstlaterlater"


def test_append_is_refused(s3: Any, plain: str) -> None:
    at = {"Bucket": plain, "Key": "k"}
    refused(s3.put_object, 400, "InvalidWriteOffset", Body=b"x", WriteOffsetBytes=1, **at)
    etag = s3.put_object(Body=b"body", **at)["ETag"]
    for offset in (0, 3, 5):
        refused(s3.put_object, 400, "InvalidWriteOffset", Body=b"x", WriteOffsetBytes=offset, **at)
    refused(s3.put_object, 400, "InvalidRequest", Body=b"", WriteOffsetBytes=4, **at)
    refused(s3.put_object, 400, "InvalidRequest", Body=b"x", WriteOffsetBytes=4, Metadata={"a": "b"}, **at)
    refused(s3.put_object, 412, "PreconditionFailed", Body=b"x", WriteOffsetBytes=4, IfMatch='"other"', **at)
    refused(s3.put_object, 412, "PreconditionFailed", Body=b"x", WriteOffsetBytes=4, IfNoneMatch="*", **at)
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    refused(s3.put_object, 400, "BadDigest", Body=b"x", WriteOffsetBytes=4, ContentMD5=md5, **at)
    assert body(s3, plain, "k") == b"body"
    s3.put_object(Body=b"!", WriteOffsetBytes=4, IfMatch=etag, **at)
    assert body(s3, plain, "k") == b"body!"


def test_appends_to_parts_copies_and_nothing(s3: Any, plain: str) -> None:
    at = {"Bucket": plain, "Key": "m"}
    upload = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    part = s3.upload_part(PartNumber=1, Body=b"part", **upload)
    s3.complete_multipart_upload(MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}, **upload)
    s3.copy_object(Bucket=plain, Key="copy", CopySource=at)
    s3.put_object(Body=b" more", WriteOffsetBytes=4, **at)
    s3.put_object(Bucket=plain, Key="copy", Body=b" else", WriteOffsetBytes=4)
    s3.copy_object(Bucket=plain, Key="third", CopySource=at)
    s3.rename_object(Bucket=plain, Key="fourth", RenameSource="m")
    s3.put_object(Bucket=plain, Key="fourth", Body=b".", WriteOffsetBytes=9)
    found = {key: body(s3, plain, key) for key in names(s3, plain)}
    assert found == {"copy": b"part else", "third": b"part more", "fourth": b"part more."}
    s3.put_object(Bucket=plain, Key="empty", Body=b"")
    s3.put_object(Bucket=plain, Key="empty", Body=b"x", WriteOffsetBytes=0)
    assert body(s3, plain, "empty") == b"x"


def test_an_append_needs_the_rights_to_put_and_to_read(s3: Any, other: Any, plain: str) -> None:
    s3.put_object(Bucket=plain, Key="k", Body=b"a")
    at = {"Bucket": plain, "Key": "k", "Body": b"b", "WriteOffsetBytes": 1}
    for given in ([], ["s3:PutObject"], ["s3:GetObject"]):
        if given:
            put(s3, plain, statement(plain, *given, principal={"AWS": OTHER}, keys="k"))
        refused(other.put_object, 403, "AccessDenied", **at)
    put(s3, plain, statement(plain, "s3:PutObject", "s3:GetObject", principal={"AWS": OTHER}, keys="k"))
    other.put_object(**at)
    assert body(s3, plain, "k") == b"ab"


def test_appends_that_race(s3: Any, plain: str) -> None:
    """Of those with one offset one wins, and nothing of the others is seen."""

    def try_one(number: int) -> str:
        try:
            s3.put_object(Bucket=plain, Key="k", Body=b"%d" % number, WriteOffsetBytes=1)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return str(number)

    s3.put_object(Bucket=plain, Key="k", Body=b"-")
    with ThreadPoolExecutor(8) as pool:
        (winner,) = set(pool.map(try_one, range(8))) - {"InvalidWriteOffset"}
    assert body(s3, plain, "k") == b"-" + winner.encode()


def test_lifecycle_tells_of_both(s3: Any, plain: str) -> None:
    rule = {"ID": "r", "Status": "Enabled", "Filter": {}, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(Bucket=plain, LifecycleConfiguration={"Rules": [rule]})
    s3.put_object(Bucket=plain, Key="k", Body=b"a")
    assert 'rule-id="r"' in s3.put_object(Bucket=plain, Key="k", Body=b"b", WriteOffsetBytes=1)["Expiration"]
    modified = s3.head_object(Bucket=plain, Key="k")["LastModified"]
    assert abs(modified - datetime.now(UTC)) < timedelta(hours=1)


def test_quotas_hold_for_appends(s3: Any, gateway: Gateway, plain: str) -> None:
    """Its bytes count, and it is no other object."""
    if gateway.place.store.get("driver") == "fsspec" and not gateway.place.in_postgres:
        pytest.skip("a store of one process has no commands")
    at = {"Bucket": plain, "Key": "k"}
    s3.put_object(Body=b"x" * 60, **at)
    gateway.run("bucket", "quota", plain, "--bytes", "100", "--objects", "1")
    s3.put_object(Body=b"y" * 30, WriteOffsetBytes=60, **at)
    refused(s3.put_object, 403, "QuotaExceeded", Body=b"z" * 60, WriteOffsetBytes=90, **at)
    s3.rename_object(Bucket=plain, Key="n", RenameSource="k")
    assert body(s3, plain, "n") == b"x" * 60 + b"y" * 30


def test_an_object_has_so_many_parts() -> None:
    made = Version(1, "k", "null", 9, "e", 0, "{}", "STANDARD", "", "", "", "pieces:1", 9999, "o")
    assert append._parts(made) == 10_000
    with pytest.raises(TooManyParts):
        append._parts(made._replace(parts=10_000))
