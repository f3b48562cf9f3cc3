"""`sluice backup` beside a gateway under load: nothing acknowledged before it began is missing after a restore."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from sluice_s3.app.cli.main import cli
from sluice_s3.app.settings import Settings
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually
from tests.unit.cli.test_cli_rebuild import BUCKET, Writer, contents, possible
from tests.unit.store import site

pytestmark = pytest.mark.slow

VERSIONED = "versioned"
PART = b"p" * (5 << 20)
SMALL_PACKS = {"SLUICE_PACK_SIZE": "1048576", "SLUICE_DISCARD_GRACE": "0", "SLUICE_DURABILITY": "relaxed"}
"""What is replaced or deleted goes at once, and packs are compacted all the time."""


def prepare(s3: Any) -> None:
    """Buckets with everything that no writer of this test makes."""
    s3.create_bucket(Bucket=BUCKET)
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [rule]})
    s3.create_bucket(Bucket=VERSIONED)
    s3.put_bucket_versioning(Bucket=VERSIONED, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"first", b"second"):
        s3.put_object(Bucket=VERSIONED, Key="k", Body=body, Metadata={"of": body.decode()}, Tagging="a=b")
    s3.delete_object(Bucket=VERSIONED, Key="k")
    for key in ("whole", "open"):
        upload = s3.create_multipart_upload(Bucket=VERSIONED, Key=key)["UploadId"]
        part = {"Bucket": VERSIONED, "Key": key, "UploadId": upload}
        etags = [s3.upload_part(**part, PartNumber=number, Body=PART)["ETag"] for number in (1, 2)]
        if key == "whole":
            parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
            s3.complete_multipart_upload(**part, MultipartUpload={"Parts": parts})


def describe(s3: Any) -> list[Any]:
    """What a client sees of the bucket with versions."""
    listed = s3.list_object_versions(Bucket=VERSIONED)
    found: list[Any] = [
        [(one["Key"], one["VersionId"], one["LastModified"], one.get("ETag")) for one in listed.get(kind, [])]
        for kind in ("Versions", "DeleteMarkers")
    ]
    for one in listed["Versions"]:
        answer = s3.get_object(Bucket=VERSIONED, Key=one["Key"], VersionId=one["VersionId"])
        found.append((answer["Body"].read(), answer["Metadata"], answer.get("TagCount")))
    for upload in s3.list_multipart_uploads(Bucket=VERSIONED)["Uploads"]:
        parts = s3.list_parts(Bucket=VERSIONED, Key=upload["Key"], UploadId=upload["UploadId"])["Parts"]
        found.append((upload["Key"], upload["UploadId"], [(part["ETag"], part["Size"]) for part in parts]))
    return found


def test_what_was_acknowledged_before_a_backup_is_restored(tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    with Gateway(tmp_path / "data", env=SMALL_PACKS) as gateway:
        prepare(client(gateway.endpoint))
        before = describe(client(gateway.endpoint))
        writers = [Writer(gateway.endpoint, number) for number in range(3)]
        for writer in writers:
            writer.start()

        def busy(changes: int) -> bool:
            return all(sum(map(len, writer.history.values())) >= changes for writer in writers)

        eventually(lambda: busy(sized(60, 1000)))
        first = json.loads(gateway.run("backup", backups, "--json").stdout)
        eventually(lambda: busy(2 * sized(60, 1000)))
        began = time.monotonic()
        made = gateway.run("backup", backups, "--json", "--keep", "1")
        second = json.loads(made.stdout)
        for writer in writers:
            writer.stop()
        gateway.kill()
    assert (first["faults"], second["faults"]) == ([], [])
    assert second["copied_bytes"] < second["bytes"]
    assert second["pruned"][0] == 1
    assert "SECRET" not in made.stdout
    restored = Gateway(tmp_path / "restored", env=SMALL_PACKS)
    assert json.loads(restored.run("restore", backups, "--check", "--json").stdout)["whole"]
    report = json.loads(restored.run("restore", backups, "--json").stdout)
    assert (report["whole"], report["backup"], report["fsck"]["missing"]) == (True, second["name"], [])
    with restored:
        s3 = client(restored.endpoint)
        assert describe(s3) == before
        objects = contents(s3)
        for writer in writers:
            for key, history in writer.history.items():
                allowed = possible(history, began) | {writer.unknown.get(key, history[-1][1])}
                assert objects.pop(key, None) in allowed, (key, history, began)
            for key, state in writer.unknown.items():
                assert objects.pop(key, state) == state
        assert objects == {}
        s3.put_object(Bucket=BUCKET, Key="later", Body=b"it goes on")
        restored.stop()
    assert restored.run("scrub").stdout.endswith("clean\n")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one object in a file of its own, without a server."""
    monkeypatch.setenv("SLUICE_DURABILITY", "relaxed")
    settings = Settings(data=tmp_path / "data")
    site.prepare(settings)

    async def fill() -> None:
        async with site.opened(settings) as store:
            bucket = await store.index.create_bucket(BUCKET, "owner", "us-east-1", 10)
            await site.put(store, bucket, "k", bytes(200_000))

    asyncio.run(fill())
    return settings.data


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


def test_what_the_operator_reads(data: Path, tmp_path: Path) -> None:
    backups, new = tmp_path / "backups", tmp_path / "restored"
    made = run("backup", backups, "--data", data)
    assert made.exit_code == 0
    assert "SECRET: it holds the secret keys" in made.stderr
    assert "keys: credentials, master-key" in made.stderr
    assert "1 buckets, 1 versions, 1 files" in made.stdout
    without = run("backup", backups, "--data", data, "--without-keys")
    assert "NO MASTER KEY" in without.stderr
    names = run("restore", backups, "--list").stdout.split()
    assert [name in text.stdout for name, text in zip(names, (made, without), strict=True)] == [True, True]
    refused = run("restore", backups, "--data", data)
    assert (refused.exit_code, "not empty" in refused.stderr) == (1, True)
    restored = run("restore", backups, "--data", tmp_path / "other")
    assert (restored.exit_code, "put it into" in restored.stdout) == (0, True)
    (shared,) = (backups / "data").glob("*/*/*")
    shared.write_bytes(bytes(200_000))
    checked = run("restore", backups, "--check")
    assert checked.exit_code == 8
    assert checked.stdout.startswith(f"DAMAGED  {shared.relative_to(backups)} (of default: data/")
    assert checked.stdout.endswith("NOT WHOLE\n")
    damaged = run("restore", backups, "--data", new, "--backup", names[0])
    assert (damaged.exit_code, f"LOST     {BUCKET}/k" in damaged.stdout) == (8, True)
    assert (new / "master-key").read_text() == (data / "master-key").read_text()


def test_what_is_refused_in_one_line(data: Path, tmp_path: Path) -> None:
    wrong = run("restore", tmp_path / "elsewhere", "--data", tmp_path / "new")
    reason = f"there is no backup in {tmp_path / 'elsewhere'}"
    assert (wrong.exit_code, wrong.stderr) == (1, f"sluice: the restore failed: {reason}\n")
    listed = run("restore", tmp_path / "elsewhere", "--list")
    assert (listed.exit_code, listed.stdout, listed.stderr) == (1, "", f"sluice: {reason}\n")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    refused = run("backup", full, "--data", data)
    assert (refused.exit_code, "no directory of backups" in refused.stderr) == (1, True)
    assert [path.name for path in full.iterdir()] == ["mine"]
    inside = run("backup", data / "backups", "--data", data)
    assert (inside.exit_code, "choose another disk" in inside.stderr) == (1, True)
    nothing = run("backup", tmp_path / "backups", "--data", tmp_path / "nothing")
    assert (nothing.exit_code, nothing.stderr.count("\n")) == (1, 1)
