"""A smoke test of POSIX calls through an s3fs mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import MIB, NAMES, digest, digests, stored
from tests.support.environment import need
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.waiting import eventually

pytestmark = pytest.mark.clients
MOUNT_SECONDS = 30.0


@pytest.fixture
def mounted(gateway: Gateway, bucket: str, tmp_path: Path) -> Iterator[Path]:
    """The bucket as a directory."""
    need("s3fs", "umount")
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("mounting needs root and /dev/fuse")
    place = tmp_path / "mounted"
    place.mkdir()
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(f"{ACCESS_KEY}:{SECRET_KEY}")
    options = [f"url={gateway.endpoint}", "use_path_request_style", f"passwd_file={password}", "endpoint=us-east-1"]
    options += ["sigv4", "retries=1", f"tmpdir={tmp_path}", "umask=0022"]
    with (tmp_path / "s3fs.log").open("w") as log:
        process = subprocess.Popen(
            ["s3fs", bucket, place, "-f", "-o", ",".join(options)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        eventually(lambda: os.path.ismount(place) or process.poll() is not None, "s3fs mounts", MOUNT_SECONDS)
        assert os.path.ismount(place), (tmp_path / "s3fs.log").read_text()
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        process.wait(30)


def test_a_tree_copied_in_and_out(mounted: Path, s3: Any, bucket: str, tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, mounted / "in")
    files = {key: value for key, value in stored(s3, bucket, "in/").items() if key and not key.endswith("/")}
    assert files == digests(tree)
    shutil.copytree(mounted / "in", tmp_path / "out")
    assert digests(tmp_path / "out") == digests(tree)


def test_what_others_wrote_is_there(mounted: Path, s3: Any, bucket: str) -> None:
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    for name in NAMES:
        assert (mounted / name).read_bytes() == name.encode()


def test_files(mounted: Path) -> None:
    path = mounted / "file"
    path.write_bytes(b"0123456789")
    with path.open("ab") as file:
        file.write(b"abc")
    with path.open("r+b") as file:
        file.seek(3)
        file.write(b"XY")
    assert path.read_bytes() == b"012XY56789abc"
    # not os.truncate: s3fs 1.90 then uploads zeros without having asked for the object
    with path.open("r+b") as file:
        assert file.read(1) == b"0"
        file.truncate(5)
    assert path.read_bytes() == b"012XY"
    with path.open("r+b") as file:
        file.seek(6 * MIB)
        file.write(b"end")
        file.flush()
        os.fsync(file.fileno())
    assert path.stat().st_size == 6 * MIB + 3
    assert path.read_bytes()[:8] == b"012XY\0\0\0"
    path.write_bytes(b"")
    assert path.stat().st_size == 0
    path.unlink()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        path.open("rb")


def test_directories(mounted: Path) -> None:
    (mounted / "one" / "two").mkdir(parents=True)
    (mounted / "one" / "file").write_text("x")
    with pytest.raises(OSError, match="not empty"):
        (mounted / "one").rmdir()
    assert sorted(os.listdir(mounted / "one")) == ["file", "two"]
    (mounted / "one").rename(mounted / "renamed")
    assert (mounted / "renamed" / "file").read_text() == "x"
    assert os.listdir(mounted) == ["renamed"]
    shutil.rmtree(mounted / "renamed")
    assert os.listdir(mounted) == []


def test_renames_modes_times_and_links(mounted: Path) -> None:
    first, second = mounted / "first", mounted / "second name+%"
    first.write_text("first")
    second.write_text("second")
    first.replace(second)
    assert second.read_text() == "first"
    assert os.listdir(mounted) == [second.name]
    second.chmod(0o640)
    os.utime(second, (1_000_000_000, 1_000_000_000))
    assert int(second.stat().st_mtime) == 1_000_000_000
    (mounted / "link").symlink_to(second.name)
    assert (mounted / "link").read_text() == "first"
    assert os.readlink(mounted / "link") == second.name


def test_large_file_changed_in_the_middle(mounted: Path, tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(tree / "sizes" / "largest", copy)
    shutil.copy(copy, mounted / "large")
    for path in (copy, mounted / "large"):
        with path.open("r+b") as file:
            file.seek(11 * MIB + 5)
            file.write(b"changed")
    assert digest(mounted / "large") == digest(copy)
