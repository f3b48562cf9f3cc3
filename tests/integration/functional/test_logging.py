"""Server access logs of buckets, on every place."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import boto3
import httpx
import pytest
from botocore import UNSIGNED
from botocore.client import Config
from botocore.exceptions import ClientError

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client
from tests.support.places import kinds_for, placed
from tests.support.waiting import eventually

SERVICE = "logging.s3.amazonaws.com"
FIELDS = (  # noqa: SIM905 - as the documentation lists them
    "owner bucket time client requester id operation key uri status error sent size total turned referer agent version "
    "host signature cipher auth header tls point acl"
).split()
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=kinds_for(pytest.mark.place("postgres", "tree", "memory").mark))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("logging")
    env = {"SLUICE_LOG_INTERVAL": "1", "SLUICE_DOMAIN": "s3.test", "SLUICE_SIGV2": "on"}
    with placed(directory, request.param) as place, Gateway(directory / "data", place=place, env=env) as running:
        yield running


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


def make(s3: Any, **options: Any) -> str:
    name = f"log-{next(_numbers)}"
    s3.create_bucket(Bucket=name, **options)
    return name


def let(s3: Any, source: str, target: str, resource: str = "*", **changed: Any) -> None:
    """Let the log of a bucket be written into another one, as AWS's documentation has it."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{target}/{resource}",
        "Condition": {"ArnLike": {"aws:SourceArn": f"arn:aws:s3:::{source}"}},
    }
    policy = {"Version": "2012-10-17", "Statement": [statement | changed]}
    s3.put_bucket_policy(Bucket=target, Policy=json.dumps(policy))


def enable(s3: Any, source: str, target: str, prefix: str = "", **options: Any) -> None:
    enabled = {"TargetBucket": target, "TargetPrefix": prefix, **options}
    s3.put_bucket_logging(Bucket=source, BucketLoggingStatus={"LoggingEnabled": enabled})


def logged(
    s3: Any, target: str, found: Callable[[list[dict[str, str]]], bool]
) -> tuple[list[str], list[dict[str, str]]]:
    """The keys of the log and its lines, once `found` holds for these."""

    def whole_log() -> tuple[list[str], list[dict[str, str]]] | None:
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=target).get("Contents", ())]
        lines = [line for key in keys for line in read(s3, target, key)]
        return (keys, lines) if found(lines) else None

    return eventually(whole_log, f"the log in {target}")


def read(s3: Any, target: str, key: str) -> list[dict[str, str]]:
    text = s3.get_object(Bucket=target, Key=key)["Body"].read().decode()
    assert text.endswith("\n")
    return [fields(line) for line in text.splitlines()]


def fields(line: str) -> dict[str, str]:
    found = re.findall(r'\[[^]]*\]|"[^"]*"|\S+', line)
    assert len(found) == len(FIELDS), line
    return dict(zip(FIELDS, found, strict=True))


def have(*operations: str) -> Callable[[list[dict[str, str]]], bool]:
    return lambda lines: set(operations) <= {line["operation"] for line in lines}


def code(call: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(**options)
    found: str = error.value.response["Error"]["Code"]
    return found


def test_lines(gateway: Gateway, s3: Any) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target, "logs/*")
    enable(s3, source, target, "logs/")
    s3.put_object(Bucket=source, Key="a key/ü", Body=b"12345")
    answer = s3.get_object(Bucket=source, Key="a key/ü", Range="bytes=1-3")
    s3.head_object(Bucket=source, Key="a key/ü")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": source, "Key": "a key/ü"})
    httpx.get(url, headers={"user-agent": 'it says "x"', "referer": "https://from.example/"})
    assert httpx.get(f"{gateway.endpoint}/{source}/secret").status_code == 403
    s3.list_objects_v2(Bucket=source)
    s3.copy_object(Bucket=source, Key="copy", CopySource=f"{source}/a key/ü")
    s3.delete_objects(Bucket=source, Delete={"Objects": [{"Key": "copy"}]})
    s3.delete_object(Bucket=source, Key="a key/ü")
    keys, lines = logged(s3, target, lambda lines: len(lines) >= 11)  # more than one worker writes them
    assert all(re.fullmatch(r"logs/\d{4}(-\d\d){5}-[0-9A-F]{16}", key) for key in keys)
    owner = s3.list_buckets()["Owner"]["ID"]
    assert {line["owner"] for line in lines} == {owner}
    assert {line["bucket"] for line in lines} == {source}
    by = {line["operation"]: line for line in lines if line["auth"] == "AuthHeader"}
    put = by["REST.PUT.OBJECT"]
    expected = {"key": "a%20key/%C3%BC", "status": "200", "error": "-", "sent": "-", "size": "5", "requester": owner}
    expected |= {"signature": "SigV4", "acl": "-", "client": "127.0.0.1", "tls": "-"}
    assert put | expected == put
    assert re.fullmatch(r"\[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\]", put["time"])
    get = by["REST.GET.OBJECT"]
    assert (get["sent"], get["size"], get["status"]) == ("3", "5", "206")
    assert get["id"] == answer["ResponseMetadata"]["RequestId"]
    assert by["REST.HEAD.OBJECT"]["size"] == "5"
    assert by["REST.GET.BUCKET"]["uri"].startswith(f'"GET /{source}?list-type=2')
    assert (by["REST.COPY.OBJECT"]["key"], by["REST.COPY.OBJECT_GET"]["key"]) == ("copy", "a%20key/%C3%BC")
    assert (by["BATCH.DELETE.OBJECT"]["key"], by["BATCH.DELETE.OBJECT"]["uri"]) == ("copy", "-")
    assert by["REST.POST.MULTI_OBJECT_DELETE"]["key"] == "-"
    (presigned,) = [line for line in lines if line["auth"] == "QueryString"]
    assert (presigned["agent"], presigned["referer"]) == ('"it says %22x%22"', '"https://from.example/"')
    (refused,) = [line for line in lines if line["status"] == "403"]
    assert (refused["requester"], refused["error"], refused["signature"]) == ("-", "AccessDenied", "-")
    before = len(lines)
    s3.put_bucket_logging(Bucket=source, BucketLoggingStatus={})
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=source)
    s3.put_object(Bucket=source, Key="k", Body=b"")
    time.sleep(2.5)
    assert "k" not in {line["key"] for line in logged(s3, target, lambda lines: len(lines) >= before)[1]}


@pytest.mark.parametrize("source_of_date", ["EventTime", "DeliveryTime"])
def test_partitioned_keys(s3: Any, source_of_date: str) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target)
    form = {"PartitionedPrefix": {"PartitionDateSource": source_of_date}}
    enable(s3, source, target, "p", TargetObjectKeyFormat=form)
    assert s3.get_bucket_logging(Bucket=source)["LoggingEnabled"]["TargetObjectKeyFormat"] == form
    s3.put_object(Bucket=source, Key="k", Body=b"x")
    (key, *_), _ = logged(s3, target, have("REST.PUT.OBJECT"))
    when = r"\1-\2-\3-00-00-00" if source_of_date == "EventTime" else r"\1-\2-\3(-\d\d){3}"
    assert re.fullmatch(rf"p(?:\d{{12}})/us-east-1/{source}/(\d{{4}})/(\d\d)/(\d\d)/{when}-[0-9A-F]{{16}}", key)
    simple = {"SimplePrefix": {}}
    enable(s3, source, target, "p", TargetObjectKeyFormat=simple)
    assert s3.get_bucket_logging(Bucket=source)["LoggingEnabled"]["TargetObjectKeyFormat"] == simple


def test_nobody_writes_lines_of_his_own(gateway: Gateway, s3: Any) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target)
    enable(s3, source, target, TargetObjectKeyFormat={"PartitionedPrefix": {"PartitionDateSource": "EventTime"}})
    forged = f"x\nforged {source} [21/Nov/2026:00:00:00 +0000] - - - REST.GET.OBJECT secret"
    evil = {"user-agent": b"a\x85b", "referer": b"c\x85 d"}
    answer = httpx.get(f"{gateway.endpoint}/{source}/first", params={"versionId": forged}, headers=evil)
    assert answer.status_code in (400, 403)
    s3.delete_objects(Bucket=source, Delete={"Objects": [{"Key": "second", "VersionId": forged}]})
    code(s3.copy_object, Bucket=source, Key="k", CopySource=f"{source}/third?versionId={quote(forged)}")
    expected = {"first", "second", "third"}
    _, lines = logged(s3, target, lambda lines: expected <= {line["key"] for line in lines})
    assert "forged" not in {line["owner"] for line in lines}
    by = {line["key"]: line for line in lines}
    assert all(by[key]["version"].startswith("x%0Aforged%20") for key in expected)
    assert (by["first"]["agent"], by["first"]["referer"]) == ('"a%85b"', '"c%85 d"')


def test_acls_let_logs_in_and_grants_let_them_be_read(gateway: Gateway, s3: Any) -> None:
    if gateway.place.store.get("layout") == "tree":
        pytest.skip("no ACLs on plain files")
    source = make(s3, ObjectOwnership="ObjectWriter")
    target = make(s3, ObjectOwnership="ObjectWriter")
    options = {
        "Bucket": source,
        "BucketLoggingStatus": {"LoggingEnabled": {"TargetBucket": target, "TargetPrefix": ""}},
    }
    assert code(s3.put_bucket_logging, **options) == "InvalidTargetBucketForLogging"
    s3.put_bucket_acl(Bucket=target, ACL="log-delivery-write")
    gateway.run(
        "user", "add", "--access-key", "READER", "--secret-key", "reader-0123456", "--id", "reader", check=False
    )
    grants = [{"Grantee": {"Type": "CanonicalUser", "ID": "reader"}, "Permission": "READ"}]
    enable(s3, source, target, TargetGrants=grants)
    assert s3.get_bucket_logging(Bucket=source)["LoggingEnabled"]["TargetGrants"] == grants
    s3.put_object(Bucket=source, Key="public", Body=b"x")
    s3.delete_public_access_block(Bucket=source)
    s3.put_object_acl(Bucket=source, Key="public", ACL="public-read")
    anonymous = boto3.client(
        "s3", endpoint_url=gateway.endpoint, region_name="us-east-1", config=Config(signature_version=UNSIGNED)
    )
    anonymous.get_object(Bucket=source, Key="public")
    keys, lines = logged(s3, target, have("REST.GET.OBJECT"))
    assert {(line["operation"], line["acl"]) for line in lines} >= {
        ("REST.GET.OBJECT", "Yes"),
        ("REST.PUT.OBJECT", "-"),
    }
    reader = client(gateway.endpoint, "READER", "reader-0123456")
    assert reader.get_object(Bucket=target, Key=keys[0])["Body"].read()


def test_what_is_refused(gateway: Gateway, s3: Any) -> None:
    source, target = make(s3), make(s3)

    def put(s3: Any = s3, target: str = target, **more: Any) -> str:
        enabled = {"TargetBucket": target, "TargetPrefix": "p/", **more}
        return code(s3.put_bucket_logging, Bucket=source, BucketLoggingStatus={"LoggingEnabled": enabled})

    assert put() == "InvalidTargetBucketForLogging"
    assert put(target="there-is-none") == "InvalidTargetBucketForLogging"
    for changed in (
        {"Principal": "*"},
        {"Principal": {"Service": "other.amazonaws.com"}},
        {"Action": "s3:GetObject"},
        {"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::another"}}},
        {"Condition": {"StringEquals": {"aws:SourceAccount": "000000000001"}}},
    ):
        if changed.get("Principal") == "*":
            s3.delete_public_access_block(Bucket=target)
        let(s3, source, target, **changed)
        assert put() == "InvalidTargetBucketForLogging"
    let(s3, source, target, "q/*")
    assert put() == "InvalidTargetBucketForLogging"
    let(s3, source, target)
    bad = {"PartitionedPrefix": {"PartitionDateSource": "Never"}}
    assert put(TargetObjectKeyFormat=bad) == "MalformedXML"
    grants = [{"Grantee": {"Type": "CanonicalUser", "ID": "x"}, "Permission": "READ"}]
    assert put(TargetGrants=grants) == "AccessControlListNotSupported"
    s3.put_bucket_request_payment(Bucket=target, RequestPaymentConfiguration={"Payer": "Requester"})
    assert put() == "InvalidTargetBucketForLogging"
    s3.put_bucket_request_payment(Bucket=target, RequestPaymentConfiguration={"Payer": "BucketOwner"})
    if gateway.place.store.get("layout") != "tree":
        locked = make(s3, ObjectLockEnabledForBucket=True)
        let(s3, source, locked)
        rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
        configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        s3.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=configuration)
        assert put(target=locked) == "InvalidTargetBucketForLogging"
    gateway.run("user", "add", "--access-key", "STRANGER", "--secret-key", "stranger-01234", "--id", "st", check=False)
    assert put(client(gateway.endpoint, "STRANGER", "stranger-01234")) == "AccessDenied"
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=source)


def test_lines_wait_while_they_cannot_be_delivered(gateway: Gateway, s3: Any) -> None:
    if gateway.place.workers:
        pytest.skip("what is in memory ends with its process")
    source, target = make(s3), make(s3)
    let(s3, source, target)
    enable(s3, source, target)
    s3.delete_bucket_policy(Bucket=target)
    s3.put_object(Bucket=source, Key="early", Body=b"")
    time.sleep(2.5)
    assert "Contents" not in s3.list_objects_v2(Bucket=target)
    gateway.stop()
    gateway.start()
    s3 = client(gateway.endpoint)
    let(s3, source, target)
    logged(s3, target, lambda lines: "early" in {line["key"] for line in lines})


def test_a_user_is_named(gateway: Gateway, s3: Any) -> None:
    source, target = make(s3), make(s3)
    let(s3, source, target)
    enable(s3, source, target)
    iam = boto3.client(
        "iam",
        endpoint_url=gateway.endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    name = f"logged-{next(_numbers)}"
    arn = iam.create_user(UserName=name)["User"]["Arn"]
    allow = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}
    iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=json.dumps(allow))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    client(gateway.endpoint, key["AccessKeyId"], key["SecretAccessKey"]).put_object(Bucket=source, Key="k", Body=b"")
    _, lines = logged(s3, target, have("REST.PUT.OBJECT"))
    assert {line["requester"] for line in lines if line["operation"] == "REST.PUT.OBJECT"} == {arn}
