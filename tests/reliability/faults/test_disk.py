"""A real, tiny ext4 under a store: full, out of inodes, turned read-only by an error, taken away and given back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.storage_drivers.mountinfo import mount_table_generation
from tests.reliability.faults.two import BODIES, LARGE, SMALL, filled, get, outcome, two
from tests.support.environment import need, need_root
from tests.support.gateway import Gateway
from tests.support.waiting import eventually

pytestmark = pytest.mark.power
FULL, DOWN = (507, "InsufficientStorage"), (503, "ServiceUnavailable")
IMAGE_BYTES = 48 << 20
INODES = 1024


class Disk:
    """An ext4 in a file, mounted at `path`."""

    def __init__(self, directory: Path, size: int = IMAGE_BYTES, block: int = 1024) -> None:
        self.path = directory / "odd"
        self.path.mkdir()
        self.ballast = self.path / "ballast"
        self._image = directory / "image"
        with self._image.open("wb") as image:
            image.truncate(size)
        self._run("mkfs.ext4", "-q", "-F", "-b", str(block), "-m", "0", "-N", str(INODES), str(self._image))

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)

    def mount(self) -> None:
        """Mount it, or mount it again."""
        self._run("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.path))

    def unmount(self) -> None:
        """Take it away from under those who use it."""
        self._run("umount", "-l", str(self.path))

    def break_down(self) -> None:
        """What an error of the filesystem does: the kernel makes it read-only (ext4(5), `abort`)."""
        self._run("mount", "-o", "remount,abort", str(self.path))

    def fill(self) -> None:
        """Take the last free block for the file `ballast`."""
        ballast = os.open(self.ballast, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for size in (1 << 20, 4096, 512):
            while True:
                try:
                    os.write(ballast, b"b" * size)
                except OSError:
                    break
        os.close(ballast)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    need_root()
    need("mkfs.ext4", "mount", "umount")
    made = Disk(tmp_path)
    made.mount()
    yield made
    subprocess.run(["umount", "-l", str(made.path)], capture_output=True, check=False)


@pytest.fixture
def gateway(tmp_path: Path, disk: Disk) -> Iterator[Gateway]:
    with ExitStack() as stack:
        yield stack.enter_context(two(tmp_path, disk.path, driver="local"))


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return filled(gateway)


def others_go_on(s3: Any) -> None:
    """What was there is there, what needs no space works, and so does the other store."""
    for size, body in BODIES.items():
        assert get(s3, f"old-{size}") == body
        s3.put_object(Bucket="good", Key="k", Body=body)
        assert get(s3, "k", "good") == body


def fill(s3: Any, disk: Disk, body: bytes) -> list[str]:
    """Objects until there is no space for more; returns their keys."""
    keys: list[str] = []
    while (answer := outcome(s3.put_object, Bucket="odd", Key=f"fill-{len(keys):05}", Body=body)) == (200, ""):
        keys.append(f"fill-{len(keys):05}")
    assert answer == FULL
    return keys


def takes(s3: Any, body: bytes) -> Callable[[], bool]:
    """Whether it can be put again."""
    return lambda: outcome(s3.put_object, Bucket="odd", Key="again", Body=body) == (200, "")


def emptied(s3: Any, keys: list[str]) -> None:
    """All deleted, in both ways."""
    for key in keys[:2]:
        assert outcome(s3.delete_object, Bucket="odd", Key=key)[0] == 204
    for first in range(2, len(keys), 1000):
        some = [{"Key": key} for key in keys[first : first + 1000]]
        assert "Errors" not in s3.delete_objects(Bucket="odd", Delete={"Objects": some})


def test_the_kernel_tells_of_mounts(disk: Disk) -> None:
    before = mount_table_generation()
    disk.unmount()
    assert mount_table_generation() != before


def test_full(s3: Any, disk: Disk) -> None:
    keys = fill(s3, disk, LARGE)
    disk.fill()  # the rest, so that not even a journal can grow
    for body in BODIES.values():
        assert outcome(s3.put_object, Bucket="odd", Key="refused", Body=body) == FULL
        assert outcome(s3.head_object, Bucket="odd", Key="refused")[0] == 404
    others_go_on(s3)
    assert get(s3, keys[-1]) == LARGE
    emptied(s3, keys)
    for body in BODIES.values():
        eventually(takes(s3, body), "space came back")
        assert get(s3, "again") == body
    others_go_on(s3)


def test_no_inodes(s3: Any, disk: Disk) -> None:
    body = b"x" * 5000
    keys = fill(s3, disk, body)
    assert os.statvfs(disk.path).f_favail == 0
    others_go_on(s3)
    assert outcome(s3.put_object, Bucket="odd", Key="small", Body=SMALL) in ((200, ""), FULL)  # the pack is open
    emptied(s3, keys)
    eventually(takes(s3, body), "inodes came back")
    others_go_on(s3)


def test_read_only_after_an_error(s3: Any, disk: Disk) -> None:
    disk.break_down()
    for body in BODIES.values():
        assert outcome(s3.put_object, Bucket="odd", Key="refused", Body=body) == DOWN
        assert outcome(s3.head_object, Bucket="odd", Key="refused")[0] == 404
    others_go_on(s3)
    assert outcome(s3.delete_object, Bucket="odd", Key="old-small")[0] == 204
    assert outcome(s3.get_object, Bucket="odd", Key="old-small")[0] == 404


def test_taken_away_and_given_back(s3: Any, disk: Disk, gateway: Gateway) -> None:
    """Nothing is ever written to the directory below the mount point, and an empty one is not an empty store."""
    disk.unmount()
    assert list(disk.path.iterdir()) == []
    for size, body in BODIES.items():
        eventually(lambda body=body: outcome(s3.put_object, Bucket="odd", Key="k", Body=body) == DOWN, "503")
        eventually(lambda size=size: outcome(s3.get_object, Bucket="odd", Key=f"old-{size}") == DOWN, "503")
        s3.put_object(Bucket="good", Key="k", Body=body)
        assert outcome(s3.head_object, Bucket="odd", Key=f"old-{size}")[0] == 200
    gateway.hup()  # processes that start now find it gone as well
    eventually(lambda: "restart done" in (disk.path.parent / "gateway.log").read_text(), "the restart")
    assert outcome(s3.put_object, Bucket="odd", Key="k", Body=LARGE) == DOWN
    assert list(disk.path.iterdir()) == []
    disk.mount()
    for body in BODIES.values():
        eventually(takes(s3, body), "the store came back")
    others_go_on(s3)
