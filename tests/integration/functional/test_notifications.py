"""Notifications of changes, told to a webhook, on every place."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import Gateway, client
from tests.support.hook import Hook
from tests.support.places import USUAL, kinds_for, placed
from tests.support.waiting import eventually

ARN = "arn:aws:sqs:us-east-1:000000000000:hook"
EVERYTHING = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*", "s3:ObjectAcl:Put"]
TOKEN = "token-of-the-admin-api"
KINDS = tuple(kind for kind in USUAL if kind != "tree")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture(scope="module", params=kinds_for(pytest.mark.place("postgres").mark, KINDS))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("notifications")
    target = {"url": hook.url, "token": "secret-token"}
    env = {"SLUICE_NOTIFY_TARGETS": json.dumps({"hook": target, "away": {"url": "http://127.0.0.1:1/"}})}
    env |= {"SLUICE_LIFECYCLE_DAY_SECONDS": "1", "SLUICE_ADMIN_TOKEN": TOKEN}
    how: dict[str, Any] = {"env": env, "options": ("--admin-port", "0")}
    with placed(directory, request.param) as place, Gateway(directory / "data", place=place, **how) as running:
        yield running


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"told-{next(_numbers)}"
    s3.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter")
    return name


def tell(s3: Any, bucket: str, *events: str, arn: str = ARN, **filters: str) -> None:
    rule: dict[str, Any] = {"QueueArn": arn, "Events": list(events or EVERYTHING), "Id": "rule"}
    if filters:
        rules = [{"Name": name, "Value": value} for name, value in filters.items()]
        rule["Filter"] = {"Key": {"FilterRules": rules}}
    configuration = {"QueueConfigurations": [rule]}
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)


def names(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(record["eventName"], record["s3"]["object"]["key"]) for record in records]


def test_every_change_is_told(gateway: Gateway, s3: Any, bucket: str, hook: Hook) -> None:
    at = {"Bucket": bucket}
    tell(s3, bucket)
    etag = s3.put_object(Key="a b/ü", Body=b"12345", **at)["ETag"].strip('"')
    s3.copy_object(Key="a b/ü", CopySource=f"{bucket}/a b/ü", MetadataDirective="REPLACE", **at)
    s3.put_object_tagging(Key="a b/ü", Tagging={"TagSet": [{"Key": "k", "Value": "v"}]}, **at)
    s3.delete_object_tagging(Key="a b/ü", **at)
    s3.delete_object(Key="a b/ü", **at)
    s3.delete_object(Key="a b/ü", **at)  # there is nothing to tell
    found = hook.wait(bucket, 5)
    key = "a+b/%C3%BC"
    assert names(found) == [
        ("ObjectCreated:Put", key),
        ("ObjectCreated:Copy", key),
        ("ObjectTagging:Put", key),
        ("ObjectTagging:Delete", key),
        ("ObjectRemoved:Delete", key),
    ]
    # "Event message structure", Amazon S3 User Guide, says which version is whose
    assert [record["eventVersion"] for record in found] == ["2.1", "2.1", "2.3", "2.3", "2.1"]
    first = found[0]
    assert first["s3"]["object"] | {"size": 5, "eTag": etag} == first["s3"]["object"]
    assert "versionId" not in first["s3"]["object"]
    assert (first["s3"]["configurationId"], first["awsRegion"]) == ("rule", "us-east-1")
    assert first["requestParameters"]["sourceIPAddress"] == "127.0.0.1"
    assert first["userIdentity"]["principalId"] == s3.list_buckets()["Owner"]["ID"]
    assert found[2]["s3"]["object"]["size"] == 5
    order = [record["s3"]["object"]["sequencer"] for record in found]
    assert order == sorted(set(order))
    assert hook.headers[-1]["authorization"] == "Bearer secret-token"
    upload = s3.create_multipart_upload(Key="m", **at)["UploadId"]
    part = s3.upload_part(Key="m", UploadId=upload, PartNumber=1, Body=b"p", **at)["ETag"]
    parts = {"Parts": [{"ETag": part, "PartNumber": 1}]}
    s3.complete_multipart_upload(Key="m", UploadId=upload, MultipartUpload=parts, **at)
    post = s3.generate_presigned_post(bucket, "f")
    assert httpx.post(post["url"], data=post["fields"], files={"file": b"x"}).status_code == 204
    s3.delete_objects(Delete={"Objects": [{"Key": "m"}, {"Key": "f"}, {"Key": "nothing"}]}, **at)
    rest = names(hook.wait(bucket, 9)[5:])
    told = {key: [name for name, of in rest if of == key] for key in ("m", "f")}  # between keys there is no order
    assert told["m"] == ["ObjectCreated:CompleteMultipartUpload", "ObjectRemoved:Delete"]
    assert told["f"] == ["ObjectCreated:Post", "ObjectRemoved:Delete"]


def test_renamed_and_appended(s3: Any, bucket: str, hook: Hook) -> None:
    tell(s3, bucket)
    s3.put_object(Bucket=bucket, Key="a", Body=b"123")
    s3.put_object(Bucket=bucket, Key="a", Body=b"45", WriteOffsetBytes=3)
    s3.rename_object(Bucket=bucket, Key="b", RenameSource="a")
    found = hook.wait(bucket, 4)
    told = [(record["eventName"], record["s3"]["object"].get("size")) for record in found]
    put = [("ObjectCreated:Put", 3), ("ObjectCreated:Put", 5)]
    assert sorted(told, key=str) == [("ObjectCreated:Copy", 5), *put, ("ObjectRemoved:Delete", None)]


def test_versions(s3: Any, bucket: str, hook: Hook) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    tell(s3, bucket)
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
    marker = s3.delete_object(Bucket=bucket, Key="k")["VersionId"]
    s3.delete_object(Bucket=bucket, Key="k", VersionId=version)
    found = hook.wait(bucket, 3)
    assert [(record["eventName"], record["s3"]["object"]["versionId"]) for record in found] == [
        ("ObjectCreated:Put", version),
        ("ObjectRemoved:DeleteMarkerCreated", marker),
        ("ObjectRemoved:Delete", version),
    ]


def test_filters_and_what_failed(s3: Any, bucket: str, hook: Hook) -> None:
    tell(s3, bucket, "s3:ObjectCreated:Put", prefix="in/", suffix=".jpg")
    for key in ("in/a.jpg", "in/a.png", "out/a.jpg", "in/b.jpg"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    with pytest.raises(ClientError):
        s3.put_object(Bucket=bucket, Key="in/a.jpg", Body=b"y", IfNoneMatch="*")
    s3.copy_object(Bucket=bucket, Key="in/c.jpg", CopySource=f"{bucket}/in/a.jpg")
    s3.delete_object(Bucket=bucket, Key="in/a.jpg")
    s3.put_object(Bucket=bucket, Key="in/last.jpg", Body=b"x")
    found = hook.wait(bucket, 3)
    assert sorted(key for _, key in names(found)) == ["in/a.jpg", "in/b.jpg", "in/last.jpg"]
    configuration = s3.get_bucket_notification_configuration(Bucket=bucket)["QueueConfigurations"]
    assert configuration[0]["Filter"]["Key"]["FilterRules"] == [
        {"Name": "Prefix", "Value": "in/"},
        {"Name": "Suffix", "Value": ".jpg"},
    ]
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket=bucket)


def test_a_target_is_greeted(s3: Any, bucket: str, hook: Hook) -> None:
    tell(s3, bucket)
    eventually(lambda: any(one.get("Event") == "s3:TestEvent" and one["Bucket"] == bucket for one in hook.told))


def test_order_of_a_key_while_the_target_fails(gateway: Gateway, s3: Any, bucket: str, hook: Hook) -> None:
    tell(s3, bucket)
    hook.status = 500
    sizes = list(range(1, 21))
    try:
        for size in sizes:
            s3.put_object(Bucket=bucket, Key="k", Body=b"x" * size)
            s3.put_object(Bucket=bucket, Key=f"other-{size}", Body=b"")
        eventually(lambda: admin(gateway)["hook"]["error"] is not None)
        shown = admin(gateway)["hook"]
        assert shown["error"] == "TargetError: it answered 500"
        assert shown["backlog"] >= 40
        text = httpx.get(f"{gateway.admin}/metrics").text
        assert 'sluice_notification_failing{target="hook"} 1' in text
        assert 'sluice_notification_backlog{target="away"} 0' in text
    finally:
        hook.status = 200
    found = [record["s3"]["object"] for record in hook.wait(bucket, 40)]
    told = [one["size"] for one in found if one["key"] == "k"]
    assert told == sizes
    shown = eventually(lambda: recovered(admin(gateway)["hook"]))
    assert shown["kind"] == "webhook"


def recovered(target: dict[str, Any]) -> dict[str, Any]:
    """The target, if nothing waits for it and nothing failed."""
    return {} if target["error"] is not None or target["backlog"] else target


def admin(gateway: Gateway) -> dict[str, Any]:
    url = f"{gateway.admin}/api/v1/notifications"
    return {one["name"]: one for one in httpx.get(url, headers={"authorization": f"Bearer {TOKEN}"}).json()}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"QueueArn": "nonsense"}, "InvalidArgument"),
        ({"QueueArn": "arn:aws:sqs:us-east-1:0:nobody"}, "InvalidArgument"),
        ({"QueueArn": "arn:aws:sqs:eu-west-1:0:hook"}, "InvalidArgument"),
        ({"QueueArn": "arn:aws:sns:us-east-1:0:hook"}, "InvalidArgument"),
        ({"Events": ["s3:ObjectInvented:*"]}, "InvalidArgument"),
        ({"Events": ["s3:Replication:*"]}, "NotImplemented"),
        ({"Events": ["s3:ObjectRetention:Put"]}, "NotImplemented"),
        ({"Events": ["s3:ObjectAnnotation:*"]}, "NotImplemented"),
        ({"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "ü" * 513}]}}}, "InvalidArgument"),
        ({"Filter": {"Key": {"FilterRules": [{"Name": "middle", "Value": "x"}]}}}, "InvalidArgument"),
        ({"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "x"}] * 2}}}, "InvalidArgument"),
    ],
)
def test_what_is_refused(s3: Any, bucket: str, changed: dict[str, Any], code: str) -> None:
    rule = {"QueueArn": ARN, "Events": ["s3:ObjectCreated:*"]} | changed
    with pytest.raises(ClientError) as error:
        s3.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [rule]}
        )
    assert error.value.response["Error"]["Code"] == code


def test_rules_that_overlap_are_refused(s3: Any, bucket: str) -> None:
    one = {"TopicArn": ARN.replace("sqs", "sns"), "Events": ["s3:ObjectCreated:Put"]}
    other = {"QueueArn": ARN, "Events": ["s3:ObjectCreated:*"]}

    def put(**filters: str) -> None:
        rules = [{"Name": name, "Value": value} for name, value in filters.items()]
        both = {
            "TopicConfigurations": [one | {"Filter": {"Key": {"FilterRules": rules}}}],
            "QueueConfigurations": [other | {"Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "a/"}]}}}],
        }
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=both)

    with pytest.raises(ClientError, match="overlap"):
        put(suffix=".x")
    with pytest.raises(ClientError, match="overlap"):
        put(prefix="a/b")
    put(prefix="b/")


def test_who_may_configure(gateway: Gateway, s3: Any, bucket: str) -> None:
    gateway.run("user", "add", "--access-key", "STRANGER", "--secret-key", "stranger-01234", "--id", "st", check=False)
    stranger = client(gateway.endpoint, "STRANGER", "stranger-01234")
    for call in (lambda: tell(stranger, bucket), lambda: stranger.get_bucket_notification_configuration(Bucket=bucket)):
        with pytest.raises(ClientError, match="AccessDenied"):
            call()


@pytest.mark.parametrize("versioned", [False, True])
def test_what_expires_is_told(s3: Any, bucket: str, hook: Hook, versioned: bool) -> None:
    if versioned:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    tell(s3, bucket, "s3:LifecycleExpiration:*")
    s3.put_object(Bucket=bucket, Key="old/k", Body=b"x")
    s3.put_object(Bucket=bucket, Key="young", Body=b"x")
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    expected = "LifecycleExpiration:DeleteMarkerCreated" if versioned else "LifecycleExpiration:Delete"
    (told,) = hook.wait(bucket, 1)
    assert names([told]) == [(expected, "old/k")]
    who, where = told["userIdentity"]["principalId"], told["requestParameters"]["sourceIPAddress"]
    assert (told["eventVersion"], who, where) == ("2.3", "s3.amazonaws.com", "s3.amazonaws.com")
