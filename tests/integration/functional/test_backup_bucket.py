"""`sluice backup s3://…` and its restore: a gateway of its own backs up into a bucket of the shared one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.jobs.backup import bucket as backup_bucket
from sluice_s3.app.jobs.backup import remote_files
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

MIB = 1 << 20
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
KILLED = """
import os, signal, sys
from sluice_s3.app.cli.main import main
from sluice_s3.app.jobs.backup.remote_files import RemoteFiles
left = int(sys.argv.pop(1))
for name in ("put_bytes", "_put_parts"):
    def counted(*arguments, method=getattr(RemoteFiles, name), **named):
        global left
        done = method(*arguments, **named)
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    setattr(RemoteFiles, name, counted)
main()
"""
"""`sluice` that is killed when it has written so many files, before it can note anything."""


@pytest.fixture
def source(tmp_path: Path) -> Any:
    env = {**KEYS, "SLUICE_DURABILITY": "relaxed", "SLUICE_PACK_THRESHOLD": "4096"}
    with Gateway(tmp_path / "data", workers=1, env=env) as running:
        yield running


@pytest.fixture
def place(gateway: Gateway, s3: Any, bucket: str) -> tuple[str, ...]:
    """Where the backups go: a prefix of a bucket of the shared gateway."""
    return f"s3://{bucket}/of/one", "--endpoint", gateway.endpoint


def fill(s3: Any) -> None:
    """Versions, a delete marker, tags, and bodies in packs, in files, and in files that go in parts."""
    s3.create_bucket(Bucket="kept")
    s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
    for number in range(12):
        s3.put_object(Bucket="kept", Key=f"k{number % 5}", Body=os.urandom(3000 * number), Tagging=f"n={number}")
    s3.delete_object(Bucket="kept", Key="k1")
    s3.put_object(Bucket="kept", Key="large", Body=os.urandom(2 * remote_files.PART_BYTES + 5))


def contents(s3: Any) -> list[Any]:
    found = s3.list_object_versions(Bucket="kept")
    rows: list[Any] = [(one["Key"], one["VersionId"], one["LastModified"]) for one in found["DeleteMarkers"]]
    for one in found["Versions"]:
        version = {"Bucket": "kept", "Key": one["Key"], "VersionId": one["VersionId"]}
        body = s3.get_object(**version)["Body"].read()
        rows.append((*version.values(), one["LastModified"], body, s3.get_object_tagging(**version)["TagSet"]))
    return rows


def names(s3: Any, bucket: str, below: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=f"of/one/{below}").get("Contents", [])]


def killed(source: Gateway, left: int, *arguments: str) -> tuple[int, str]:
    """Run the command in a process that dies after so many files; return its exit code and errors."""
    command = [sys.executable, "-c", KILLED, str(left), *arguments, *source.where()]
    ended = subprocess.run(command, env=source.environment(), capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stderr


def test_a_backup_that_is_killed_goes_on_and_is_restored_elsewhere(
    source: Gateway, place: tuple[str, ...], s3: Any, bucket: str, tmp_path: Path
) -> None:
    fill(client(source.endpoint))
    before = contents(client(source.endpoint))
    for left in (4, 3):
        assert killed(source, left, "backup", *place) == (-signal.SIGKILL, "")
        assert source.run("restore", *place, "--list", check=False).returncode == 1, "it is no backup yet"
    sent = set(names(s3, bucket, "data/"))
    assert len(sent) >= 4
    first = json.loads(source.run("backup", *place, "--json").stdout)
    assert (first["faults"], first["copied_files"]) == ([], first["files"] - len(sent))
    client(source.endpoint).put_object(Bucket="kept", Key="later", Body=os.urandom(50_000))
    second = json.loads(source.run("backup", *place, "--json").stdout)
    assert second["copied_files"] == 1
    assert second["copied_bytes"] == second["bytes"] - first["bytes"]
    assert json.loads(source.run("restore", *place, "--list", "--json").stdout) == [first["name"], second["name"]]
    checked = json.loads(source.run("restore", *place, "--check", "--json").stdout)
    assert (checked["whole"], checked["files"], checked["bytes"]) == (True, second["files"], second["bytes"])
    restored = Gateway(tmp_path / "restored", workers=1, env=source.env)
    report = json.loads(restored.run("restore", *place, "--backup", first["name"], "--json").stdout)
    assert (report["whole"], report["fsck"]["missing"]) == (True, [])
    assert (tmp_path / "restored/master-key").read_text() == (source.data / "master-key").read_text()
    with restored:
        assert contents(client(restored.endpoint)) == before


def test_what_is_damaged_or_gone_is_named_and_sent_again(
    source: Gateway, place: tuple[str, ...], s3: Any, bucket: str
) -> None:
    fill(client(source.endpoint))
    source.run("backup", *place)
    harmed, gone, *_ = names(s3, bucket, "data/")
    size = s3.head_object(Bucket=bucket, Key=harmed)["ContentLength"]
    s3.put_object(Bucket=bucket, Key=harmed, Body=bytes(size))
    s3.delete_object(Bucket=bucket, Key=gone)
    report = source.run("restore", *place, "--check", check=False)
    assert report.returncode == 8
    for name, fault in ((harmed, "it is not what was written"), (gone, "it is missing")):
        (line,) = (line for line in report.stdout.splitlines() if name.removeprefix("of/one/") in line)
        assert (line.split()[0], line.endswith(fault)) == ("DAMAGED", True), line
    s3.delete_object(Bucket=bucket, Key=harmed)
    again = json.loads(source.run("backup", *place, "--json").stdout)
    assert again["copied_files"] == 2
    assert source.run("restore", *place, "--check").stdout.endswith(": whole\n")


def test_only_the_newest_are_kept_and_what_is_young_stays(
    source: Gateway, place: tuple[str, ...], gateway: Gateway, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = client(source.endpoint)
    fill(owner)
    for version in owner.list_object_versions(Bucket="kept", Prefix="large")["Versions"]:
        source.run("backup", *place)
        owner.delete_object(Bucket="kept", Key="large", VersionId=version["VersionId"])
    upload = s3.create_multipart_upload(Bucket=bucket, Key="of/one/data/left")
    made = json.loads(source.run("backup", *place, "--keep", "1", "--json").stdout)
    assert made["pruned"] == [1, 0, 0], "another backup may have written what is in none yet"
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(backup_bucket, "GRACE_SECONDS", 0)
    endpoint = backup_bucket.Endpoint(gateway.endpoint)
    there = backup_bucket.BackupBucket(endpoint, *backup_bucket.parse_url(place[0]))
    try:
        removed, files, size = there.prune(1)
        assert (removed, files) == (0, 1)
        assert size >= 2 * remote_files.PART_BYTES + 5
    finally:
        there.close()
    assert upload["UploadId"] not in str(s3.list_multipart_uploads(Bucket=bucket).get("Uploads"))
    assert source.run("restore", *place, "--check").stdout.endswith(": whole\n")


def test_what_is_refused_in_one_line(source: Gateway, gateway: Gateway, s3: Any, bucket: str) -> None:
    def refused(*arguments: str) -> tuple[int, str]:
        done = source.run(*arguments, check=False)
        assert done.stderr.count("\n") == 1, done.stderr
        return done.returncode, done.stderr

    there = ("--endpoint", gateway.endpoint)
    code, text = refused("backup", f"s3://{bucket}-none/", *there)
    assert (code, "NoSuchBucket" in text) == (1, True)
    s3.put_object(Bucket=bucket, Key="mine/photo", Body=b"1")
    code, text = refused("backup", f"s3://{bucket}/mine", *there)
    assert (code, "is no place of backups: there is 'photo'" in text) == (1, True)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["mine/photo"]
    client(source.endpoint).create_bucket(Bucket="own")
    code, text = refused("backup", "s3://own/backups", "--endpoint", source.endpoint)
    assert (code, "lies in this gateway itself" in text) == (1, True)
    assert refused("restore", f"s3://{bucket}/none", "--list", *there)[0] == 1
    assert refused("backup", f"s3://{bucket}/x")[0] == 2
    assert refused("backup", "s3:///x", *there)[0] == 2
    assert refused("backup", "here", *there)[0] == 2
    code, text = refused("backup", f"s3://{bucket}/x", "--endpoint", "http://127.0.0.1:1")
    assert (code, "127.0.0.1:1" in text) == (1, True)


class Broken:
    """A body that breaks off after so many bytes, as the one of a server that dies."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self, _: int) -> bytes:
        if not self._body:
            raise remote_files.HTTPClientError(error="broken")
        piece, self._body = self._body, b""
        return piece

    def close(self) -> None:
        """Nothing is open."""


class Server:
    """S3 of one object, whose answers break off after 1000 bytes."""

    body = os.urandom(3500)

    def get_object(self, Range: str = "bytes=0-", **_: str) -> dict[str, Any]:
        start, _, end = Range.removeprefix("bytes=").partition("-")
        wanted = self.body[int(start) : int(end) + 1 if end else None]
        if not wanted:
            raise remote_files.ClientError({"Error": {"Code": "InvalidRange"}}, "GetObject")
        return {"Body": Broken(wanted[:1000]), "LastModified": datetime.now(UTC)}


@pytest.mark.parametrize(("size", "length"), [(None, 3500), (3500, 3500), (2500, 2500)])
def test_an_answer_that_breaks_off_is_asked_for_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None, length: int
) -> None:
    monkeypatch.setattr(remote_files, "PAUSE_SECONDS", 0)
    with (tmp_path / "file").open("wb") as target:
        copied = remote_files.RemoteFiles(Server(), "b", "").read("k", size, target.fileno())
    assert copied.size == length
    assert (tmp_path / "file").read_bytes() == Server.body[:length]
