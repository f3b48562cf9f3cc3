"""The command line of AWS: `aws s3` and `aws s3api`."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import DOUBLE_SLASH, NAMES, SIZES, Run, digest, digests, stored
from tests.support.environment import lack, sized

pytestmark = pytest.mark.clients
HARD = ["with space+plus%20?x=y&z.txt", "日本語/ümlaut e\u0301 '\"<>", *DOUBLE_SLASH[: sized(1, 3)]]
"""A start of `aws` takes a second, so keys one by one are few; all names go through cp, sync and rm together."""


@pytest.fixture
def aws(run: Run) -> Run:
    """`aws` of the environment that runs the tests."""
    program = Path(sys.executable).with_name("aws")
    if not program.exists():
        lack("not installed: awscli")
    return partial(run, program)


@pytest.mark.parametrize("name", SIZES)
def test_cp_both_ways(aws: Run, bucket: str, tree: Path, tmp_path: Path, name: str) -> None:
    aws("s3", "cp", tree / "sizes" / name, f"s3://{bucket}/{name}")
    aws("s3", "cp", f"s3://{bucket}/{name}", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(tree / "sizes" / name)


def test_sync_both_ways_and_again(aws: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    place = f"s3://{bucket}/a place/"
    aws("s3", "sync", tree, place, "--no-progress")
    assert stored(s3, bucket, "a place/") == digests(tree)
    assert aws("s3", "sync", tree, place, "--no-progress") == ""
    back = tmp_path / "back"
    aws("s3", "sync", place, back, "--no-progress")
    assert digests(back) == digests(tree)
    assert aws("s3", "sync", place, back, "--no-progress") == ""


def test_sync_deletes_and_updates(aws: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"
    shutil.copytree(tree / "names", local)
    aws("s3", "sync", local, f"s3://{bucket}")
    (local / "plain.txt").unlink()
    (local / "with space.txt").write_text("another size than before")
    out = aws("s3", "sync", "--delete", local, f"s3://{bucket}", "--no-progress")
    assert len(out.splitlines()) == 2, out
    assert stored(s3, bucket) == digests(local)


def test_mv_and_rm(aws: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    shutil.copy(tree / "sizes" / "largest", tmp_path / "moved")
    aws("s3", "mv", tmp_path / "moved", f"s3://{bucket}/one+%")
    assert not (tmp_path / "moved").exists()
    aws("s3", "mv", f"s3://{bucket}/one+%", f"s3://{bucket}/two 日本")
    assert list(stored(s3, bucket)) == ["two 日本"]
    aws("s3", "mv", f"s3://{bucket}/two 日本", tmp_path / "moved")
    assert digest(tmp_path / "moved") == digest(tree / "sizes" / "largest")
    assert stored(s3, bucket) == {}
    aws("s3", "cp", "--recursive", tree / "names", f"s3://{bucket}/names/")
    aws("s3", "rm", f"s3://{bucket}/names/plain.txt")
    assert len(stored(s3, bucket)) == len(NAMES) - 1
    aws("s3", "rm", "--recursive", f"s3://{bucket}")
    assert stored(s3, bucket) == {}
    aws("s3", "rb", f"s3://{bucket}")


def test_ls_and_mb(aws: Run, s3: Any, bucket: str) -> None:
    aws("s3", "mb", f"s3://{bucket}-made")
    assert f"{bucket}-made" in aws("s3", "ls")
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=b"12345")
    listed = aws("s3", "ls", "--recursive", f"s3://{bucket}").splitlines()
    # date, time, size, one space, key
    assert [line[31:] for line in listed] == sorted(NAMES, key=str.encode)
    aws("s3", "rb", f"s3://{bucket}-made")


def test_presign(aws: Run, s3: Any, bucket: str) -> None:
    for name in HARD:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
        url = aws("s3", "presign", f"s3://{bucket}/{name}", "--expires-in", "60").strip()
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.read() == name.encode()


def test_streams(aws: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    source = tree / "sizes" / "largest"
    aws("s3", "cp", "-", f"s3://{bucket}/stream", stdin=source)
    assert stored(s3, bucket) == {"stream": digest(source)}
    aws("s3", "cp", f"s3://{bucket}/stream", "-", stdout=tmp_path / "back")
    assert digest(tmp_path / "back") == digest(source)


@pytest.mark.parametrize("key", HARD)
def test_s3api_of_one_object(aws: Run, bucket: str, tree: Path, tmp_path: Path, key: str) -> None:
    body = tree / "sizes" / "block"
    target = ("--bucket", bucket, "--key", key)
    made = json.loads(aws("s3api", "put-object", *target, "--body", body, "--metadata", "colour=blue"))
    assert made["ETag"] == f'"{hashlib.md5(body.read_bytes()).hexdigest()}"'
    listed = json.loads(aws("s3api", "list-objects-v2", "--bucket", bucket, "--prefix", key))
    assert [entry["Key"] for entry in listed["Contents"]] == [key]
    read = json.loads(aws("s3api", "get-object", *target, tmp_path / "back"))
    assert read["Metadata"] == {"colour": "blue"}
    assert digest(tmp_path / "back") == digest(body)
    aws("s3api", "delete-object", *target)
    assert "Contents" not in json.loads(aws("s3api", "list-objects-v2", "--bucket", bucket) or "{}")


def test_s3api_multipart_by_hand(aws: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    target = ("--bucket", bucket, "--key", "by hand")
    upload = json.loads(aws("s3api", "create-multipart-upload", *target, "--checksum-algorithm", "SHA256"))
    identity = (*target, "--upload-id", upload["UploadId"])
    parts = []
    for number, name in enumerate(["part", "one"], start=1):
        options = ("--part-number", str(number), "--body", tree / "sizes" / name, "--checksum-algorithm", "SHA256")
        part = json.loads(aws("s3api", "upload-part", *identity, *options))
        parts.append({"PartNumber": number, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]})
    listed = json.loads(aws("s3api", "list-parts", *identity))["Parts"]
    assert [entry["Size"] for entry in listed] == [SIZES["part"], 1]
    (tmp_path / "parts.json").write_text(json.dumps({"Parts": parts}))
    manifest = f"file://{tmp_path / 'parts.json'}"
    done = json.loads(aws("s3api", "complete-multipart-upload", *identity, "--multipart-upload", manifest))
    assert done["ETag"].endswith('-2"')
    assert done["ChecksumSHA256"].endswith("-2")
    wanted = ("ETag", "Checksum", "ObjectParts", "ObjectSize")
    about = json.loads(aws("s3api", "get-object-attributes", *target, "--object-attributes", *wanted))
    assert about["ObjectSize"] == SIZES["part"] + 1
    assert about["ObjectParts"]["TotalPartsCount"] == 2
    assert "Uploads" not in json.loads(aws("s3api", "list-multipart-uploads", "--bucket", bucket) or "{}")
