"""`sluice backup` beside a gateway under load: nothing acknowledged before it began is missing after a restore."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually
from tests.unit.cli.test_cli_rebuild import BUCKET, Writer, contents, possible

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


def test_what_the_operator_reads(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    with Gateway(tmp_path / "data", workers=1) as gateway:
        client(gateway.endpoint).create_bucket(Bucket=BUCKET)
        client(gateway.endpoint).put_object(Bucket=BUCKET, Key="k", Body=bytes(200_000))
        made = gateway.run("backup", str(backups))
        refused = gateway.run("restore", str(backups), check=False)
        assert (refused.returncode, "not empty" in refused.stderr) == (1, True)
    assert "SECRET: it holds the secret keys" in made.stderr
    assert "1 buckets, 1 versions, 1 files" in made.stdout
    (name,) = gateway.run("restore", str(backups), "--list").stdout.split()
    assert name in made.stdout
    (shared,) = (backups / "data").glob("*/*/*")
    shared.write_bytes(bytes(200_000))
    checked = gateway.run("restore", str(backups), "--check", check=False)
    assert checked.returncode == 8
    assert checked.stdout.startswith(f"DAMAGED  {shared.relative_to(backups)} (of default: data/")
    assert checked.stdout.endswith("NOT WHOLE\n")
    new = Gateway(tmp_path / "restored")
    restored = new.run("restore", str(backups), check=False)
    assert (restored.returncode, "LOST     rebuilt/k" in restored.stdout) == (8, True)
    wrong = new.run("restore", str(tmp_path / "elsewhere"), check=False)
    assert (wrong.returncode, wrong.stderr) == (
        1,
        f"sluice: the restore failed: there is no backup in {tmp_path / 'elsewhere'}\n",
    )
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    refused = gateway.run("backup", str(full), check=False)
    assert (refused.returncode, "no directory of backups" in refused.stderr) == (1, True)
    assert [path.name for path in full.iterdir()] == ["mine"]
