"""Storage classes that are stores: what is put or moved into one lies there, and is what it was."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.functional.classed import classed
from tests.integration.functional.test_lifecycle import LONG_AGO, configure
from tests.integration.functional.test_stores import files
from tests.integration.functional.test_versioning import refused, switch
from tests.support.gateway import Gateway, client
from tests.support.hook import Hook
from tests.support.places import USUAL, kinds_for
from tests.support.waiting import eventually

BODY = b"large " * 30_000
SMALL = b"small"
PART = b"p" * (5 << 20)
KINDS = tuple(kind for kind in USUAL if kind != "tree")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture(scope="module", params=kinds_for(pytest.mark.place("postgres", "zdbfs").mark, KINDS))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[Gateway]:
    """Days last a second."""
    with classed(
        tmp_path_factory.mktemp("classes"), request.param, hook, "STANDARD_IA=cold, GLACIER_IR=cold", 1
    ) as made:
        yield made


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


@pytest.fixture
def cold(gateway: Gateway) -> Path:
    return gateway.data.parent / "cold"


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"classes-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


def rule(**more: Any) -> dict[str, Any]:
    return {"ID": "move", "Status": "Enabled", "Filter": {}, **more}


def class_of(s3: Any, bucket: str, key: str) -> str:
    return str(s3.head_object(Bucket=bucket, Key=key).get("StorageClass", "STANDARD"))


def test_what_is_written_in_a_class_lies_on_its_store(s3: Any, bucket: str, cold: Path) -> None:
    at = {"Bucket": bucket, "Key": "put"}
    before = len(files(cold))
    done = s3.put_object(Body=BODY, StorageClass="STANDARD_IA", **at)
    assert done["ResponseMetadata"]["HTTPHeaders"]["x-amz-storage-class"] == "STANDARD_IA"
    assert len(files(cold)) == before + 1
    upload = {**at, "Key": "parts", "UploadId": ""}
    upload["UploadId"] = s3.create_multipart_upload(Bucket=bucket, Key="parts", StorageClass="GLACIER_IR")["UploadId"]
    parts = [
        {"PartNumber": 1, "ETag": s3.upload_part(PartNumber=1, Body=PART, **upload)["ETag"]},
        {
            "PartNumber": 2,
            "ETag": s3.upload_part_copy(PartNumber=2, CopySource=at, **upload)["CopyPartResult"]["ETag"],
        },
    ]
    s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **upload)
    assert len(files(cold)) == before + 2  # of one store, the copied part is shared
    s3.copy_object(Bucket=bucket, Key="back", CopySource=at)
    s3.copy_object(Bucket=bucket, Key="again", CopySource={"Bucket": bucket, "Key": "back"}, StorageClass="STANDARD_IA")
    s3.copy_object(Bucket=bucket, Key="third", CopySource=at, StorageClass="GLACIER_IR")
    assert len(files(cold)) == before + 3
    for key in ("put", "back", "again", "third"):
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == BODY
    assert s3.get_object(Bucket=bucket, Key="parts")["Body"].read() == PART + BODY
    listed = {entry["Key"]: entry["StorageClass"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    assert listed["put"] == listed["again"] == "STANDARD_IA"
    assert listed["parts"] == listed["third"] == "GLACIER_IR"
    assert listed["back"] == "STANDARD"
    told = s3.get_object_attributes(Bucket=bucket, Key="put", ObjectAttributes=["StorageClass"])
    assert told["StorageClass"] == "STANDARD_IA"


def test_a_class_changes_onto_itself(s3: Any, bucket: str, cold: Path) -> None:
    at = {"Bucket": bucket, "Key": "k"}
    etag = s3.put_object(Body=BODY, **at)["ETag"]
    before = len(files(cold))
    assert s3.copy_object(CopySource=at, StorageClass="STANDARD_IA", **at)["CopyObjectResult"]["ETag"] == etag
    assert len(files(cold)) == before + 1
    assert s3.get_object(**at)["Body"].read() == BODY


def test_rules_move_what_is_due(s3: Any, bucket: str, gateway: Gateway, hook: Hook) -> None:
    """What a client knows of an object stays, but for its class."""
    at = {"Bucket": bucket, "Key": "old/k"}
    queue = {"QueueArn": "arn:aws:sqs:us-east-1:000000000000:hook", "Events": ["s3:LifecycleTransition"], "Id": "r"}
    told = {"QueueConfigurations": [queue]}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=told)
    s3.put_object(Body=BODY, Metadata={"a": "b"}, Tagging="t=1", ChecksumAlgorithm="SHA256", **at)
    s3.put_object(Bucket=bucket, Key="old/small", Body=SMALL)
    s3.put_object(Bucket=bucket, Key="new/k", Body=BODY)
    before = s3.head_object(ChecksumMode="ENABLED", **at)
    configure(s3, bucket, rule(Filter={"Prefix": "old/"}, Transitions=[{"Days": 1, "StorageClass": "GLACIER_IR"}]))
    shown = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"][0]
    assert shown["Transitions"] == [{"Days": 1, "StorageClass": "GLACIER_IR"}]
    eventually(lambda: class_of(s3, bucket, "old/k") == "GLACIER_IR")
    after = s3.head_object(ChecksumMode="ENABLED", **at)
    assert after.pop("StorageClass") == "GLACIER_IR"
    for answer in (before, after):
        del answer["ResponseMetadata"]
    assert after == before
    assert s3.get_object(**at)["Body"].read() == BODY
    assert [class_of(s3, bucket, key) for key in ("old/small", "new/k")] == ["STANDARD", "STANDARD"]
    (record,) = hook.wait(bucket, 1)
    assert record["eventName"] == "LifecycleTransition"
    assert record["s3"]["object"]["eTag"] == before["ETag"].strip('"')
    assert record["lifecycleEventData"]["transitionEventData"]["destinationStorageClass"] == "GLACIER_IR"
    metrics = httpx.get(f"{gateway.admin}/metrics").text
    (line,) = [one for one in metrics.splitlines() if one.startswith('sluice_lifecycle_total{kind="transition"}')]
    assert int(line.split()[-1]) > 0


def test_older_versions_and_parts(s3: Any, bucket: str) -> None:
    switch(s3, bucket, "Enabled")
    at = {"Bucket": bucket, "Key": "k"}
    upload = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(PartNumber=number, Body=body, **upload)["ETag"]}
        for number, body in ((1, PART), (2, SMALL))
    ]
    first = s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **upload)["VersionId"]
    second = s3.put_object(Body=BODY, **at)["VersionId"]
    moves = [{"NoncurrentDays": 0, "StorageClass": "GLACIER_IR"}]
    configure(s3, bucket, rule(NoncurrentVersionTransitions=moves))

    def classes() -> dict[str, str]:
        return {one["VersionId"]: one["StorageClass"] for one in s3.list_object_versions(Bucket=bucket)["Versions"]}

    eventually(lambda: classes() == {first: "GLACIER_IR", second: "STANDARD"})
    assert s3.get_object(VersionId=first, **at)["Body"].read() == PART + SMALL
    assert s3.get_object(VersionId=first, PartNumber=2, **at)["Body"].read() == SMALL


def test_what_cannot_be_done_is_refused(s3: Any, bucket: str) -> None:
    for storage_class in ("ONEZONE_IA", "DEEP_ARCHIVE"):
        move = rule(Transitions=[{"Date": LONG_AGO, "StorageClass": storage_class}])
        refused(lambda move=move: configure(s3, bucket, move), 501, "NotImplemented")
    early = rule(Transitions=[{"Days": 5, "StorageClass": "STANDARD_IA"}])
    refused(lambda: configure(s3, bucket, early), 400, "InvalidArgument")
    s3.put_object(Bucket=bucket, Key="k", Body=SMALL, StorageClass="ONEZONE_IA")  # a name, as ever
    assert class_of(s3, bucket, "k") == "ONEZONE_IA"


def test_plain_files_stay_where_they_are(s3: Any, gateway: Gateway, cold: Path) -> None:
    name = f"plain-{next(_numbers)}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-east-1:plain"})
    before = len(files(cold))
    s3.put_object(Bucket=name, Key="k", Body=BODY, StorageClass="STANDARD_IA")
    assert len(files(cold)) == before
    assert (gateway.data.parent / "plain" / name / "k").read_bytes() == BODY
    move = rule(Transitions=[{"Date": LONG_AGO, "StorageClass": "STANDARD_IA"}])
    refused(lambda: configure(s3, name, move), 501, "NotImplemented")
