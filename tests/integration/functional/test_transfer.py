"""`sluice pull` and `sluice push`, from the shared gateway to itself under another name."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from typer.testing import CliRunner, Result

from sluice_s3.app.cli.main import cli
from sluice_s3.app.transfer import endpoints
from tests.integration.functional.test_dated import sent_at
from tests.integration.functional.test_policy import statement
from tests.integration.functional.test_versioning import switch
from tests.support.environment import ROOT
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

MIB = 1 << 20
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
KEYS |= {"SLUICE_ROOT_ACCESS_KEY": ACCESS_KEY, "SLUICE_ROOT_SECRET_KEY": SECRET_KEY}
KILLED = """
import os, signal, sys
from sluice_s3.app.cli.main import main
from sluice_s3.app.transfer import copying, open_uploads
left = int(sys.argv.pop(1))
def counted(method):
    def call(*arguments, **named):
        global left
        done = method(*arguments, **named)
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    return call
for name in ("_copy_whole", "_mark", "_copy_part"):
    setattr(copying.Copier, name, counted(getattr(copying.Copier, name)))
main()
"""
"""`sluice` that is killed when it has written so many versions and parts, before it can note anything."""

Transfer = Callable[..., Result]


@pytest.fixture
def arguments(gateway: Gateway, tmp_path: Path) -> list[str]:
    """Options of both ends, which are the same gateway."""
    return ["--endpoint", gateway.endpoint, "--gateway", gateway.endpoint, "--state", str(tmp_path), "--json"]


@pytest.fixture
def transfer(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Transfer:
    """`transfer("pull", "s3://…", …)` runs the command in this process."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    def run(*command: str, code: int = 0) -> Any:
        done = CliRunner().invoke(cli, [command[0], *arguments, *command[1:]])
        assert done.exit_code == code, (done.output, done.exception)
        return done

    return run


def counts(done: Result) -> dict[str, int]:
    found = json.loads(done.stdout)
    return {name: found[name] for name in ("objects", "markers", "present", "not_taken")}


def read(s3: Any, bucket: str) -> list[tuple[Any, ...]]:
    """All that a copy must have: of each version its place, time, bytes, headers, metadata, tags, and lock."""
    found = s3.list_object_versions(Bucket=bucket)
    entries = []
    for one in found.get("DeleteMarkers", []):
        entries.append((one["Key"], one["LastModified"], one["IsLatest"], "marker"))
    for one in found.get("Versions", []):
        version = {"Bucket": bucket, "Key": one["Key"], "VersionId": one["VersionId"]}
        got = s3.get_object(**version)
        tags = s3.get_object_tagging(**version)["TagSet"]
        names = ("ContentType", "CacheControl", "ContentDisposition", "ExpiresString", "StorageClass", "ChecksumSHA256",
                 "ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")  # fmt: skip
        more = [got.get(name) for name in names]
        parts = (one["Key"], one["LastModified"], one["IsLatest"], one["ETag"], got["Body"].read(), got["Metadata"])
        entries.append((*parts, tags, more))
    return sorted(entries, key=lambda entry: entry[:2])


def fill(s3: Any, bucket: str) -> None:
    """Versions, delete markers, tags, metadata, a lock, and an object of two parts."""
    for number in range(3):
        s3.put_object(Bucket=bucket, Key="plain", Body=b"v%d" % number, ContentType="a/b", CacheControl="no-store",
                      Metadata={"n": f"{number}"}, Tagging="n=1&a%20b=c", StorageClass="ONEZONE_IA")  # fmt: skip
    for _ in range(2):
        s3.delete_object(Bucket=bucket, Key="gone/ä +&")
        s3.put_object(Bucket=bucket, Key="gone/ä +&", Body=b"same", ChecksumAlgorithm="SHA256")
    s3.delete_object(Bucket=bucket, Key="gone/ä +&")
    s3.put_object(Bucket=bucket, Key="held", Body=b"held", ObjectLockLegalHoldStatus="ON")
    until = datetime(2099, 1, 1, tzinfo=UTC)
    s3.put_object(Bucket=bucket, Key="kept", Body=b"", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts", Metadata={"m": "1"}, Tagging="t=1")["UploadId"]
    bodies = (b"1" * 5 * MIB, b"22")
    address = {"Bucket": bucket, "Key": "parts", "UploadId": upload}
    etags = [s3.upload_part(**address, PartNumber=at, Body=body)["ETag"] for at, body in enumerate(bodies, 1)]
    parts = [{"PartNumber": at, "ETag": etag} for at, etag in enumerate(etags, 1)]
    s3.complete_multipart_upload(**address, MultipartUpload={"Parts": parts})


@pytest.fixture
def filled(s3: Any, bucket: str) -> str:
    """The name of a bucket with all of that; its copies have names that begin with it."""
    name = f"{bucket}-filled"
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    fill(s3, name)
    return name


def test_everything_comes_over_and_then_only_what_is_new(s3: Any, filled: str, transfer: Transfer) -> None:
    copy = f"{filled}-copy"
    done = transfer("pull", f"s3://{filled}", "--to", copy)
    assert counts(done) == {"objects": 8, "markers": 3, "present": 0, "not_taken": 0}
    assert read(s3, copy) == read(s3, filled)
    s3.delete_object(Bucket=filled, Key="plain")
    s3.put_object(Bucket=filled, Key="new", Body=b"new")
    done = transfer("pull", f"s3://{filled}", "--to", copy)
    assert counts(done) == {"objects": 1, "markers": 1, "present": 11, "not_taken": 0}
    assert read(s3, copy) == read(s3, filled)


def test_a_killed_run_is_gone_on_with(
    s3: Any, filled: str, transfer: Transfer, arguments: list[str], gateway: Gateway
) -> None:
    """Killed after each write: no version is there twice, and no upload stays open."""
    copy = f"{filled}-copy"
    for writes in (3, 5):  # in the middle of a key, and after the first of two parts
        command = [sys.executable, "-c", KILLED, str(writes), "pull", f"s3://{filled}", "--to", copy, "--parallel", "1"]
        killed = subprocess.run([*command, *arguments], env=gateway.environment() | KEYS, cwd=ROOT, timeout=120)
        assert killed.returncode == -signal.SIGKILL
    assert len(s3.list_multipart_uploads(Bucket=copy)["Uploads"]) == 1
    transfer("pull", f"s3://{filled}", "--to", copy)
    assert read(s3, copy) == read(s3, filled)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=copy)


def test_settings_come_over(s3: Any, filled: str, transfer: Transfer) -> None:
    copy = f"{filled}-copy"
    s3.put_bucket_tagging(Bucket=filled, Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}
    s3.put_bucket_lifecycle_configuration(Bucket=filled, LifecycleConfiguration={"Rules": [rule]})
    rule = {"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}
    s3.put_bucket_cors(Bucket=filled, CORSConfiguration={"CORSRules": [rule]})
    s3.delete_public_access_block(Bucket=filled)
    policy = {"Version": "2012-10-17", "Statement": [statement(filled, "s3:GetObject")]}
    s3.put_bucket_policy(Bucket=filled, Policy=json.dumps(policy))
    done = json.loads(transfer("pull", f"s3://{filled}", "--to", copy, code=3).stdout)
    assert done["settings"] == 3
    # a bucket without a public access block says nothing of it, so the new one keeps its own, which forbids the policy
    assert [(one["what"], one["count"]) for one in done["reasons"]] == [("policy", 1)]
    s3.delete_public_access_block(Bucket=copy)
    assert json.loads(transfer("pull", f"s3://{filled}", "--to", copy).stdout)["settings"] == 1
    assert s3.get_bucket_policy(Bucket=copy)["Policy"].count(f"arn:aws:s3:::{copy}") == 2
    for operation, field in (("get_bucket_tagging", "TagSet"), ("get_bucket_lifecycle_configuration", "Rules"),
                             ("get_bucket_cors", "CORSRules")):  # fmt: skip
        assert getattr(s3, operation)(Bucket=copy)[field] == getattr(s3, operation)(Bucket=filled)[field]


def test_push_adds_what_is_missing_where_versions_get_no_times(
    s3: Any, filled: str, transfer: Transfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints.Connection, "takes_times", lambda *_: False)
    copy = f"{filled}-copy"

    def without_times(bucket: str) -> list[tuple[Any, ...]]:
        return [(entry[0], *entry[2:]) for entry in read(s3, bucket)]

    assert counts(transfer("push", f"s3://{filled}", "--to", copy))["objects"] == 8
    assert without_times(copy) == without_times(filled)
    s3.put_object(Bucket=filled, Key="plain", Body=b"again")
    assert counts(transfer("push", f"s3://{filled}", "--to", copy)) == {
        "objects": 1, "markers": 0, "present": 11, "not_taken": 0}  # fmt: skip
    assert without_times(copy) == without_times(filled)


def test_objects_alone_where_the_source_lists_no_versions(
    s3: Any, filled: str, transfer: Transfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that answers 501, as Garage does."""
    original = BaseClient._make_api_call

    def refuse(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation in ("GetBucketVersioning", "ListObjectVersions", "GetObjectTagging"):
            answer: Any = {"Error": {"Code": "NotImplemented"}, "ResponseMetadata": {"HTTPStatusCode": 501}}
            raise ClientError(answer, operation)
        return original(client, operation, parameters)

    copy = f"{filled}-copy"
    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", refuse)
        for present in (0, 4):
            assert counts(transfer("pull", f"s3://{filled}", "--to", copy)) == {
                "objects": 4 - present, "markers": 0, "present": present, "not_taken": 0}  # fmt: skip
    there, here = (s3.list_objects_v2(Bucket=name)["Contents"] for name in (filled, copy))
    assert [(one["Key"], one["ETag"], one["LastModified"]) for one in here] == [
        (one["Key"], one["ETag"], one["LastModified"]) for one in there
    ]


def test_what_cannot_be_stored_is_reported_and_the_rest_is_taken(
    s3: Any, bucket: str, transfer: Transfer, tmp_path: Path
) -> None:
    copy = f"{bucket}-copy"
    s3.create_bucket(Bucket=copy)
    switch(s3, copy, "Enabled")
    switch(s3, bucket, "Enabled")
    for key in ("a/forbidden", "a/taken", "late"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    refused = statement(copy, "s3:PutObject", keys="*/forbidden") | {"Effect": "Deny"}
    s3.put_bucket_policy(Bucket=copy, Policy=json.dumps({"Version": "2012-10-17", "Statement": [refused]}))
    s3.put_object(Bucket=copy, Key="late", Body=b"newer here")
    report = tmp_path / "report.jsonl"
    done = transfer("pull", f"s3://{bucket}", "--to", copy, "--report", str(report), code=3)
    assert counts(done) == {"objects": 1, "markers": 0, "present": 0, "not_taken": 2}
    lines = {line["key"]: line["reason"] for line in map(json.loads, report.read_text().splitlines())}
    assert lines.keys() == {"a/forbidden", "late"}
    assert lines["a/forbidden"].startswith("AccessDenied")
    assert "newer" in lines["late"]


def test_acls_come_over_on_request(s3: Any, bucket: str, transfer: Transfer) -> None:
    """An ACL that the destination forbids does not keep the object away."""
    s3.put_bucket_ownership_controls(
        Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]}
    )
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="public", Body=b"x", ACL="public-read")
    s3.put_object(Bucket=bucket, Key="private", Body=b"x")
    blocked, opened = f"{bucket}-blocked", f"{bucket}-opened"
    done = json.loads(transfer("pull", f"s3://{bucket}", "--to", blocked, "--acl", code=3).stdout)
    assert (done["objects"], [one["what"] for one in done["reasons"]]) == (2, ["ACL"])
    s3.create_bucket(Bucket=opened)
    s3.delete_public_access_block(Bucket=opened)
    transfer("pull", f"s3://{bucket}", "--to", opened, "--acl")
    for key, grants in (("public", 2), ("private", 1)):
        assert len(s3.get_object_acl(Bucket=opened, Key=key)["Grants"]) == grants


@pytest.mark.place("tree")
def test_plain_files_take_objects_without_their_times(s3: Any, bucket: str, transfer: Transfer) -> None:
    """And no probe leaves anything."""
    s3.put_object(Bucket=bucket, Key="a/b", Body=b"x", Metadata={"m": "1"})
    for present in (0, 1):
        assert counts(transfer("pull", f"s3://{bucket}", "--to", f"{bucket}-copy")) == {
            "objects": 1 - present, "markers": 0, "present": present, "not_taken": 0}  # fmt: skip
    (found,) = s3.list_objects_v2(Bucket=f"{bucket}-copy")["Contents"]
    assert s3.head_object(Bucket=f"{bucket}-copy", Key=found["Key"])["Metadata"] == {"m": "1"}


def test_a_prefix_leaves_the_rest_and_the_settings(s3: Any, bucket: str, transfer: Transfer) -> None:
    for key in ("a/1", "a/2", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    sent_at(s3, "2020-01-01T00:00:00.123Z", "put_object", Bucket=bucket, Key="a/3", Body=b"old")
    done = json.loads(transfer("pull", f"s3://{bucket}/a/", "--to", f"{bucket}-copy").stdout)
    assert (done["objects"], done["settings"]) == (3, 0)
    found = s3.list_objects_v2(Bucket=f"{bucket}-copy")["Contents"]
    assert [one["Key"] for one in found] == ["a/1", "a/2", "a/3"]
    assert found[2]["LastModified"] == datetime(2020, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("env", "bucket_name", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "exists", "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "NOBODY"}, "exists", "InvalidAccessKeyId"),
        ({}, "missing-bucket", "there is no such bucket"),
    ],
)
def test_what_cannot_begin_says_so_in_one_line(
    bucket: str, transfer: Transfer, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], bucket_name: str, says: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    done = transfer("pull", f"s3://{bucket if bucket_name == 'exists' else bucket_name}", "--to", "never-made", code=1)
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("sluice:")]
    assert says in line
    assert not re.search("Traceback|wrong-secret", done.output)


def test_an_endpoint_that_does_not_answer(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "ATTEMPTS", 1)
    done = transfer("pull", "s3://anything", "--endpoint", "http://127.0.0.1:1", code=1)
    assert "EndpointConnectionError: 127.0.0.1:1" in done.stderr
    for wrong in ("s3://user:pass@host", "nonsense", "http://user:hidden@127.0.0.1"):
        done = transfer("pull", "s3://anything", "--endpoint", wrong, code=1)
        assert "an endpoint is http://HOST" in done.stderr
        assert "hidden" not in done.output
    transfer("pull", "anything", code=2)
    transfer("pull", "s3://anything", "--class", "A", code=2)
    transfer("push", "s3://one", "s3://two", "--to", "three", code=2)


def test_without_boto3_the_command_names_the_extra(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.cli.transfer.find_spec", lambda _: None)
    assert "pip install 'sluice-s3[transfer]'" in transfer("pull", "s3://anything", code=1).stderr
