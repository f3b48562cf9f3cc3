"""rclone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import Run, digest, digests, stored

pytestmark = pytest.mark.clients


def test_sync_and_check(rclone: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    place = f"s:{bucket}/a place"
    rclone("sync", tree, place)
    rclone("check", tree, place)
    rclone("check", "--download", tree, place)
    assert stored(s3, bucket, "a place/") == digests(tree)
    rclone("sync", place, tmp_path / "back")
    assert digests(tmp_path / "back") == digests(tree)


def test_sync_follows_changes_and_keeps_times(rclone: Run, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    local = tmp_path / "local"
    shutil.copytree(tree / "names", local)
    os.utime(local / "plain.txt", (1_000_000_000, 1_000_000_000))
    rclone("sync", local, f"s:{bucket}")
    assert rclone("lsf", "--format", "t", f"s:{bucket}/plain.txt").startswith("2001-09-09")
    (local / "plain.txt").unlink()
    (local / "with space.txt").write_text("changed")
    os.utime(local / "plus+sign+.txt", (1_100_000_000, 1_100_000_000))
    rclone("sync", local, f"s:{bucket}")
    rclone("check", "--download", local, f"s:{bucket}")
    assert stored(s3, bucket) == digests(local)


def test_server_side_copy_and_move(rclone: Run, s3: Any, bucket: str, tree: Path) -> None:
    source = tree / "sizes" / "largest"
    rclone("copyto", "--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M", source, f"s:{bucket}/large")
    rclone("copyto", "--s3-copy-cutoff", "6M", "--s3-chunk-size", "5M", f"s:{bucket}/large", f"s:{bucket}/by parts")
    rclone("moveto", f"s:{bucket}/large", f"s:{bucket}/moved+%")
    assert stored(s3, bucket) == {"by parts": digest(source), "moved+%": digest(source)}


def test_stream_of_unknown_length(rclone: Run, s3: Any, bucket: str, tree: Path) -> None:
    source = tree / "sizes" / "threshold"
    rclone("rcat", f"s:{bucket}/stream", stdin=source)
    assert stored(s3, bucket) == {"stream": digest(source)}


def test_lists_and_purge(rclone: Run, s3: Any, bucket: str, tree: Path) -> None:
    rclone("copy", tree / "names", f"s:{bucket}")
    listed = rclone("lsf", "--recursive", "--files-only", f"s:{bucket}").splitlines()
    assert sorted(listed) == sorted(digests(tree / "names"))
    assert "日本語/" in rclone("lsf", "--dirs-only", f"s:{bucket}").splitlines()
    rclone("mkdir", f"s:{bucket}-made")
    assert f"{bucket}-made/" in rclone("lsf", "s:").splitlines()
    rclone("rmdir", f"s:{bucket}-made")
    rclone("purge", f"s:{bucket}")
    assert bucket not in [entry["Name"] for entry in s3.list_buckets()["Buckets"]]
