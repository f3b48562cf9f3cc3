"""Archived objects: they are read when they were restored, for as long as was asked."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.classed import classed
from tests.integration.functional.test_lifecycle import LONG_AGO, configure
from tests.integration.functional.test_stores import files
from tests.integration.functional.test_versioning import refused, switch
from tests.support.gateway import Gateway, client
from tests.support.hook import Hook
from tests.support.places import USUAL, kinds_for
from tests.support.waiting import eventually

BODY = b"large " * 30_000
PART = b"p" * (5 << 20)
CLASSES = "STANDARD_IA=cold,GLACIER=cold,DEEP_ARCHIVE=cold"
EVENTS = ["s3:ObjectRestore:*", "s3:LifecycleTransition"]
KINDS = tuple(kind for kind in USUAL if kind != "tree")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture(scope="module", params=kinds_for(pytest.mark.place("postgres").mark, KINDS))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[Gateway]:
    with classed(tmp_path_factory.mktemp("archives"), request.param, hook, CLASSES, 3) as running:
        yield running


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[Gateway]:
    """With days of the usual length."""
    with classed(tmp_path_factory.mktemp("days"), "here", hook, CLASSES, 86_400) as running:
        yield running


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


@pytest.fixture
def cold(gateway: Gateway) -> Path:
    return gateway.data.parent / "cold"


@pytest.fixture
def bucket(s3: Any) -> str:
    return new_bucket(s3)


def new_bucket(s3: Any) -> str:
    name = f"archives-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


def ask(s3: Any, days: Any = 1, tier: str | None = None, **at: Any) -> int:
    """RestoreObject; the status."""
    wanted: dict[str, Any] = {"Days": days}
    if tier is not None:
        wanted["GlacierJobParameters"] = {"Tier": tier}
    return int(s3.restore_object(RestoreRequest=wanted, **at)["ResponseMetadata"]["HTTPStatusCode"])


def is_back(s3: Any, **at: Any) -> Callable[[], bool]:
    return lambda: 'ongoing-request="false"' in s3.head_object(**at).get("Restore", "")


def test_archived_objects_are_not_read(s3: Any, bucket: str) -> None:
    at = {"Bucket": bucket, "Key": "k"}
    s3.put_object(Body=BODY, StorageClass="GLACIER", **at)
    head = s3.head_object(**at)
    assert (head["StorageClass"], head["ContentLength"]) == ("GLACIER", len(BODY))
    assert "Restore" not in head
    with pytest.raises(ClientError) as error:
        s3.get_object(**at)
    told = error.value.response["Error"]
    assert (told["Code"], told["StorageClass"]) == ("InvalidObjectState", "GLACIER")
    refused(s3.get_object, 403, "InvalidObjectState", Range="bytes=0-1", **at)
    other = {"Bucket": bucket, "Key": "other"}
    refused(s3.copy_object, 403, "InvalidObjectState", CopySource=at, **other)
    refused(s3.copy_object, 403, "InvalidObjectState", CopySource=at, StorageClass="STANDARD", **at)
    upload = {**other, "UploadId": s3.create_multipart_upload(**other)["UploadId"]}
    refused(s3.upload_part_copy, 403, "InvalidObjectState", CopySource=at, PartNumber=1, **upload)
    refused(s3.put_object, 403, "InvalidObjectState", Body=b"x", WriteOffsetBytes=len(BODY), **at)
    assert s3.get_object_attributes(ObjectAttributes=["StorageClass"], **at)["StorageClass"] == "GLACIER"
    s3.put_object_tagging(Tagging={"TagSet": [{"Key": "restore", "Value": "x"}]}, **at)
    refused(s3.get_object, 403, "InvalidObjectState", **at)
    s3.put_object(Body=b"again", **at)
    assert s3.get_object(**at)["Body"].read() == b"again"


def test_restored_for_a_while(s3: Any, bucket: str, cold: Path, hook: Hook) -> None:
    """Back, for longer, and away again; what else is known of it stays."""
    at = {"Bucket": bucket, "Key": "k"}
    queue = {"QueueArn": "arn:aws:sqs:us-east-1:000000000000:hook", "Events": EVENTS, "Id": "r"}
    told = {"QueueConfigurations": [queue]}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=told)
    others = {*files(cold)}
    s3.put_object(Body=BODY, StorageClass="GLACIER", Metadata={"a": "b"}, **at)
    before = s3.head_object(**at)
    archived = {*files(cold)} - others
    assert archived
    assert ask(s3, days=2, tier="Expedited", **at) == 202
    eventually(is_back(s3, **at))
    assert s3.get_object(**at)["Body"].read() == BODY
    s3.put_object_tagging(Tagging={"TagSet": [{"Key": "a", "Value": "x"}]}, **at)
    assert ask(s3, days=3, **at) == 200
    copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource=at)
    assert copied["CopyObjectResult"]["ETag"] == before["ETag"]
    copy = s3.head_object(Bucket=bucket, Key="copy")
    assert "Restore" not in copy
    assert "StorageClass" not in copy
    refused(s3.put_object, 403, "InvalidObjectState", Body=b"x", WriteOffsetBytes=len(BODY), **at)
    eventually(lambda: "Restore" not in s3.head_object(**at))
    refused(s3.get_object, 403, "InvalidObjectState", **at)
    after = s3.head_object(**at)
    for answer in (before, after):
        del answer["ResponseMetadata"]
    assert (after.pop("TagCount"), after) == (1, before)
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == BODY
    found = hook.wait(bucket, 3)
    names = ["ObjectRestore:Post", "ObjectRestore:Completed", "ObjectRestore:Delete"]
    assert [record["eventName"] for record in found] == names
    assert found[1]["glacierEventData"]["restoreEventData"]["lifecycleRestoreStorageClass"] == "GLACIER"
    assert archived <= {*files(cold)}
    assert ask(s3, **at) == 202
    eventually(is_back(s3, **at))
    assert s3.get_object(**at)["Body"].read() == BODY
    s3.delete_object(**at)
    eventually(lambda: not archived & {*files(cold)})


def test_of_parts_by_rules_and_versions(s3: Any, bucket: str) -> None:
    switch(s3, bucket, "Enabled")
    at = {"Bucket": bucket, "Key": "k"}
    upload = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(PartNumber=number, Body=body, **upload)["ETag"]}
        for number, body in ((1, PART), (2, b"end"))
    ]
    first = s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **upload)["VersionId"]
    s3.put_object(Body=b"newer", **at)
    move = {"NoncurrentVersionTransitions": [{"NoncurrentDays": 0, "StorageClass": "DEEP_ARCHIVE"}]}
    configure(s3, bucket, {"ID": "r", "Status": "Enabled", "Filter": {}, **move})
    old = {**at, "VersionId": first}
    eventually(lambda: s3.head_object(**old).get("StorageClass") == "DEEP_ARCHIVE")
    refused(s3.get_object, 403, "InvalidObjectState", **old)
    refused(lambda: ask(s3, tier="Expedited", **old), 400, "InvalidArgument")
    refused(lambda: ask(s3, **at), 403, "InvalidObjectState")
    assert ask(s3, days=9, **old) == 202
    eventually(is_back(s3, **old))
    assert s3.get_object(**old)["Body"].read() == PART + b"end"
    assert s3.get_object(PartNumber=2, **old)["Body"].read() == b"end"
    marker = s3.delete_object(**at)["VersionId"]
    refused(lambda: ask(s3, **at), 405, "MethodNotAllowed")
    refused(lambda: ask(s3, VersionId=marker, **at), 405, "MethodNotAllowed")
    assert s3.get_object(**old)["Body"].read() == PART + b"end"


def test_what_is_wrong_is_refused(s3: Any, bucket: str, gateway: Gateway) -> None:
    at = {"Bucket": bucket, "Key": "k"}
    refused(lambda: ask(s3, **at), 404, "NoSuchKey")
    s3.put_object(Body=BODY, **at)
    refused(lambda: ask(s3, **at), 403, "InvalidObjectState")
    s3.put_object(Body=BODY, StorageClass="STANDARD_IA", **at)
    refused(lambda: ask(s3, **at), 403, "InvalidObjectState")
    s3.put_object(Body=BODY, StorageClass="GLACIER", **at)
    for days in (0, -1):
        refused(lambda days=days: ask(s3, days=days, **at), 400, "InvalidArgument")
    refused(lambda: ask(s3, tier="Fast", **at), 400, "MalformedXML")
    refused(lambda: s3.restore_object(RestoreRequest={}, **at), 400, "MalformedXML")
    output = {"S3": {"BucketName": bucket, "Prefix": "x"}}
    refused(lambda: s3.restore_object(RestoreRequest={"OutputLocation": output}, **at), 501, "NotImplemented")
    refused(lambda: s3.restore_object(RestoreRequest={"Type": "SELECT", "Days": 1}, **at), 501, "NotImplemented")
    for list_them in (s3.list_objects, s3.list_objects_v2, s3.list_object_versions):
        wrong = {"OptionalObjectAttributes": ["RestoreStatus", "Size"]}
        refused(lambda ask=list_them, wrong=wrong: ask(Bucket=bucket, **wrong), 400, "InvalidArgument")
    name = f"plain-{next(_numbers)}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-east-1:plain"})
    s3.put_object(Bucket=name, Key="k", Body=BODY, StorageClass="GLACIER")
    refused(lambda: ask(s3, Bucket=name, Key="k"), 501, "NotImplemented")
    assert s3.get_object(Bucket=name, Key="k")["Body"].read() == BODY


def test_only_who_may_restores(gateway: Gateway, s3: Any, bucket: str) -> None:
    at = {"Bucket": bucket, "Key": "k"}
    s3.put_object(Body=BODY, StorageClass="GLACIER", **at)
    number = next(_numbers)
    name, account = f"other-{number}", f"{number:012}"
    command = ("user", "add", "--access-key", name.upper(), "--secret-key", "other-secret-0123", "--id", account)
    gateway.run(*command)
    other = client(gateway.endpoint, name.upper(), "other-secret-0123")
    refused(lambda: ask(other, **at), 403, "AccessDenied")
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": account},
                "Action": "s3:RestoreObject",
                "Resource": f"arn:aws:s3:::{bucket}/*",
            }
        ],
    }
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    assert ask(other, **at) == 202


def test_days_end_at_midnight(usual: Gateway) -> None:
    s3 = client(usual.endpoint)
    at = {"Bucket": new_bucket(s3), "Key": "old/k"}
    s3.put_object(Body=b"small", **at)
    move = {"Filter": {"Prefix": "old/"}, "Transitions": [{"Date": LONG_AGO, "StorageClass": "GLACIER"}]}
    rule = {"ID": "r", "Status": "Enabled", **move}
    configure(s3, at["Bucket"], rule, TransitionDefaultMinimumObjectSize="varies_by_storage_class")
    eventually(lambda: s3.head_object(**at).get("StorageClass") == "GLACIER")
    for days, status in ((3, 202), (9, 200), (1, 200)):
        assert ask(s3, days=days, **at) == status
        eventually(is_back(s3, **at))
        told = s3.head_object(**at)["Restore"]
        when = parsedate_to_datetime(told.split('expiry-date="')[1].rstrip('"'))
        assert (when.hour, when.minute, when.second) == (0, 0, 0)
        assert (
            timedelta(days=days)
            <= when - datetime.now(UTC) + timedelta(minutes=5)
            <= timedelta(days=days + 1, minutes=5)
        )
    assert s3.get_object(**at)["Body"].read() == b"small"


def test_it_is_asked_once(usual: Gateway, cold_is_down: Callable[[], None]) -> None:
    s3 = client(usual.endpoint)
    at = {"Bucket": new_bucket(s3), "Key": "k"}
    s3.put_object(Body=BODY * 50, StorageClass="GLACIER", **at)
    cold_is_down()
    assert ask(s3, **at) == 202
    assert s3.head_object(**at)["Restore"] == 'ongoing-request="true"'
    refused(lambda: ask(s3, **at), 409, "RestoreAlreadyInProgress")
    refused(s3.get_object, 403, "InvalidObjectState", **at)


def test_encrypted_ones_come_back(s3: Any, bucket: str) -> None:
    """Twice, one of them from a pack."""
    secret = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}
    bodies = {"small": bytes(range(100)), "large": bytes(range(100)) * 3000}
    every = {key: {"Bucket": bucket, "Key": key} for key in bodies}

    def told(key: str) -> str:
        return str(s3.head_object(**secret, **every[key]).get("Restore", ""))

    for key, body in bodies.items():
        s3.put_object(Body=body, StorageClass="GLACIER", **secret, **every[key])
        assert ask(s3, **every[key]) == 202
    for key in bodies:
        eventually(lambda key=key: 'ongoing-request="false"' in told(key))
    for key in bodies:
        eventually(lambda key=key: not told(key))
        assert ask(s3, days=9, **every[key]) == 202
    for key, body in bodies.items():
        eventually(lambda key=key: 'ongoing-request="false"' in told(key))
        assert s3.get_object(**secret, **every[key])["Body"].read() == body
        assert s3.get_object(Range="bytes=50-79", **secret, **every[key])["Body"].read() == body[50:80]


def listed_status(s3: Any, bucket: str) -> dict[str, Any]:
    """What the three listings tell of restores, by key."""
    asked: dict[str, Any] = {"Bucket": bucket, "OptionalObjectAttributes": ["RestoreStatus"]}
    entries = s3.list_objects_v2(**asked)["Contents"]
    told = {entry["Key"]: entry.get("RestoreStatus") for entry in entries}
    for others in (s3.list_objects(**asked)["Contents"], s3.list_object_versions(**asked)["Versions"]):
        assert {entry["Key"]: entry.get("RestoreStatus") for entry in others} == told
        assert [entry["StorageClass"] for entry in others] == [entry["StorageClass"] for entry in entries]
    for page in (s3.list_objects_v2(Bucket=bucket)["Contents"], s3.list_object_versions(Bucket=bucket)["Versions"]):
        assert not any("RestoreStatus" in entry for entry in page)
    return told


def test_listings_tell_what_is_back(usual: Gateway, cold_is_down: Callable[[], None]) -> None:
    """Of what was asked for nothing but that; of what is back also until when, as HEAD does."""
    s3 = client(usual.endpoint)
    bucket = new_bucket(s3)
    for key in ("archived", "asked", "back"):
        s3.put_object(Bucket=bucket, Key=key, Body=BODY, StorageClass="GLACIER")
    s3.put_object(Bucket=bucket, Key="plain", Body=b"x", Tagging="restore=x")
    assert ask(s3, Bucket=bucket, Key="back") == 202
    eventually(is_back(s3, Bucket=bucket, Key="back"))
    cold_is_down()
    assert ask(s3, Bucket=bucket, Key="asked") == 202
    told = listed_status(s3, bucket)
    ends = told["back"].pop("RestoreExpiryDate")
    asked, back = {"IsRestoreInProgress": True}, {"IsRestoreInProgress": False}
    assert told == {"archived": None, "asked": asked, "back": back, "plain": None}
    head = s3.head_object(Bucket=bucket, Key="back")["Restore"]
    assert ends == parsedate_to_datetime(head.split('expiry-date="')[1].rstrip('"'))


@pytest.fixture
def cold_is_down(usual: Gateway) -> Iterator[Callable[[], None]]:
    """Takes the blobs of the archive away, so that nothing can be read there."""
    data = usual.data.parent / "cold" / "data"
    aside = data.with_name("aside")
    yield lambda: data.rename(aside) and None
    if aside.exists():
        aside.rename(data)
