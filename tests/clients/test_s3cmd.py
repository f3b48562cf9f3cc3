"""s3cmd."""

from __future__ import annotations

import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import DOUBLE_SLASH, SIZES, Run, digest, digests, stored

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("name", SIZES)
def test_put_and_get(s3cmd: Run, bucket: str, tree: Path, tmp_path: Path, name: str) -> None:
    s3cmd("put", tree / "sizes" / name, f"s3://{bucket}/{name}")
    s3cmd("get", f"s3://{bucket}/{name}", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(tree / "sizes" / name)


def test_sync_both_ways(s3cmd: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    s3cmd("sync", f"{tree}/", f"s3://{bucket}/place/")
    assert stored(s3, bucket, "place/") == digests(tree)
    back = tmp_path / "back"
    back.mkdir()
    s3cmd("sync", f"s3://{bucket}/place/", f"{back}/")
    assert digests(back) == digests(tree)


def test_sync_deletes(s3cmd: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"
    shutil.copytree(tree / "names", local)
    s3cmd("sync", f"{local}/", f"s3://{bucket}")
    (local / "plain.txt").unlink()
    s3cmd("sync", "--delete-removed", f"{local}/", f"s3://{bucket}")
    assert stored(s3, bucket) == digests(local)


@pytest.mark.parametrize("key", ["with space+plus%20.txt", "日本語/ümlaut e\u0301", "quote'\"<&>#~", *DOUBLE_SLASH[:2]])
def test_one_object(s3cmd: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path, key: str) -> None:
    s3cmd("put", tree / "sizes" / "block", f"s3://{bucket}/{key}")
    assert list(stored(s3, bucket)) == [key]
    assert str(SIZES["block"]) in s3cmd("info", f"s3://{bucket}/{key}")
    s3cmd("cp", f"s3://{bucket}/{key}", f"s3://{bucket}/copy of {key}")
    s3cmd("mv", f"s3://{bucket}/{key}", f"s3://{bucket}/moved {key}")
    assert set(stored(s3, bucket)) == {f"copy of {key}", f"moved {key}"}
    s3cmd("get", f"s3://{bucket}/moved {key}", tmp_path / "back")
    assert digest(tmp_path / "back") == digest(tree / "sizes" / "block")
    s3cmd("del", f"s3://{bucket}/moved {key}")
    assert set(stored(s3, bucket)) == {f"copy of {key}"}


def test_buckets_lists_and_deletes(s3cmd: Run, s3: Any, bucket: str, tree: Path) -> None:
    s3cmd("mb", f"s3://{bucket}-made")
    assert f"s3://{bucket}-made" in s3cmd("ls")
    s3cmd("rb", f"s3://{bucket}-made")
    s3cmd("put", "--recursive", f"{tree / 'names'}/", f"s3://{bucket}/")
    listed = s3cmd("ls", "--recursive", f"s3://{bucket}").splitlines()
    assert sorted(line.partition(f"s3://{bucket}/")[2] for line in listed) == sorted(digests(tree / "names"))
    assert s3cmd("info", f"s3://{bucket}").startswith(f"s3://{bucket}/ (bucket)")
    s3cmd("del", "--recursive", "--force", f"s3://{bucket}")
    assert stored(s3, bucket) == {}


def test_signed_url(s3cmd: Run, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="with space+plus", Body=b"signed")
    url = s3cmd("signurl", f"s3://{bucket}/with space+plus", "+60").strip()
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.read() == b"signed"
