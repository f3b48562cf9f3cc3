"""Mounts and directories that take `Name` and `name` for one file, or change the form of names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from array import array
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.tree import TreeFiles, publish
from tests.support.environment import ROOT, need, need_fuse, need_root
from tests.support.waiting import eventually
from tests.unit.storage_drivers.tools import Pieces
from tests.unit.storage_drivers.tree.conftest import MakeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET, KEYS, fits, get, put, scanned

pytestmark = pytest.mark.slow

TWINS = (
    ("Name", "name"),
    ("name", "Name", "NAME"),
    ("dir/a", "DIR/a", "Dir/b"),
    ("dir/a", "DIR"),
    ("DIR", "dir/a"),
    ("\u00e9", "e\u0301", "\u00c9"),
    ("x/\u212b/y", "x/\u00e5/y", "X/a\u030a/y"),
)


def mounted(path: Path) -> bool:
    return any(line.split(" ")[1] == str(path) for line in Path("/proc/self/mounts").read_text().splitlines())


def fuse(tmp_path: Path, *options: str) -> Iterator[Path]:
    need_fuse()
    backing, mount = tmp_path / "backing", tmp_path / "mount"
    backing.mkdir()
    mount.mkdir()
    module = "tests.unit.storage_drivers.tree.folding_mount"
    env = dict(os.environ)
    if "claims" in options:
        library = find_library("fuse3")
        if library is None:
            pytest.skip("only libfuse 3 knows a rename that replaces nothing")
        env["FUSE_LIBRARY_PATH"] = library
    process = subprocess.Popen([sys.executable, "-m", module, str(backing), str(mount), *options], cwd=ROOT, env=env)
    try:
        eventually(lambda: mounted(mount) or process.poll() is not None)
        if not mounted(mount):
            pytest.skip("FUSE cannot mount here")
        (mount / "tree").mkdir()
        yield mount / "tree"
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=False, capture_output=True)
        if mounted(mount):
            subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=False, capture_output=True)
        process.wait(20)


def ext4(tmp_path: Path) -> Iterator[Path]:
    need_root()
    need("mkfs.ext4", "chattr", "mount", "umount")
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    done = subprocess.run(["mkfs.ext4", "-q", "-O", "casefold", str(image)], check=False, capture_output=True)
    if done.returncode == 0:
        done = subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("this kernel (CONFIG_UNICODE) or mkfs.ext4 knows no casefold")
    try:
        (mount / "tree").mkdir()
        yield mount / "tree"
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


@pytest.fixture(params=["fuse-claims", "fuse-no-claims", "fuse-normalises", "ext4-all", "ext4-bucket"])
def folding(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The root for a store; with `ext4-bucket` only the directory of the bucket folds."""
    match request.param:
        case "fuse-claims":
            yield from fuse(tmp_path, "claims")
        case "fuse-no-claims":
            yield from fuse(tmp_path, "no-claims")
        case "fuse-normalises":
            yield from fuse(tmp_path, "no-claims", "normalises")
        case _:
            for root in ext4(tmp_path):
                folds = root if request.param == "ext4-all" else root / BUCKET
                folds.mkdir(exist_ok=True)
                subprocess.run(["chattr", "+F", str(folds)], check=True)
                yield root


@pytest.fixture
async def files(make_files: MakeFiles, folding: Path) -> TreeFiles:
    return await make_files(folding, durability=Durability.RELAXED)


async def test_the_mount_is_known_for_what_it_is(files: TreeFiles, request: pytest.FixtureRequest) -> None:
    mount = request.node.callspec.params["folding"]
    traits = files.traits
    assert traits.folds == (mount != "ext4-bucket")
    assert traits.careful == (mount in ("fuse-no-claims", "fuse-normalises"))
    assert traits.has_flags == mount.startswith("ext4")
    assert traits.inodes == mount.startswith("ext4")


@pytest.mark.parametrize("twins", TWINS)
async def test_twins_live_together(files: TreeFiles, twins: tuple[str, ...]) -> None:
    locators = {key: await put(files, key, key.encode()) for key in twins}
    for _ in range(2):  # and again, over what is there
        for key, locator in locators.items():
            assert await get(files, locator) == key.encode()
            path, stamp = files.parse(locator)
            assert await files.find(path) == stamp
        assert {found.key: found.path for found in await scanned(files)} == {
            key: files.parse(locator)[0] for key, locator in locators.items()
        }
        for number, (key, locator) in enumerate(locators.items()):
            path, _ = files.parse(locator)
            stamp = await files.stage(1000 + number, Pieces(key.encode()))
            await files.publish(1000 + number, path)
            locators[key] = files.locator(path, stamp)
    for key, locator in locators.items():
        assert await files.remove(files.parse(locator)[0])
        assert await files.find_key(BUCKET, key) is None


@pytest.mark.parametrize("twins", [("Name", "name"), ("Dir/a", "dir/a"), ("Dir/a", "dir"), ("\u00e9", "e\u0301")])
async def test_twins_that_come_at_the_same_time(files: TreeFiles, twins: tuple[str, str]) -> None:
    for number in range(10):
        keys = [f"{number}/{key}" for key in twins]
        locators = await asyncio.gather(*(put(files, key, key.encode()) for key in keys))
        assert [await get(files, locator) for locator in locators] == [key.encode() for key in keys]


async def test_the_name_of_a_twin_is_not_ones_own(files: TreeFiles) -> None:
    """A file that somebody made is the key it is called, and no other."""
    bucket = files.root / BUCKET
    (bucket / "Photos").mkdir()
    (bucket / "Photos/One.jpg").write_bytes(b"theirs")
    assert (bucket / "photos/one.JPG").exists()
    found = await files.find_key(BUCKET, "Photos/One.jpg")
    assert found is not None
    for key in ("photos/One.jpg", "Photos/one.jpg"):
        assert await files.find_key(BUCKET, key) is None
        assert await files.find(f"{BUCKET}/{key}") is None
        assert await get(files, await put(files, key, b"ours")) == b"ours"
    assert await get(files, files.locator(found.path, found.stamp)) == b"theirs"


async def test_every_key_has_its_file(files: TreeFiles) -> None:
    keys = [key for key in KEYS if fits(key)]
    locators = {key: await put(files, key, key.encode()) for key in keys}
    for key, locator in locators.items():
        assert await get(files, locator) == key.encode()
    assert {found.key for found in await scanned(files)} == set(keys)


async def test_our_own_directory_has_no_twins(files: TreeFiles) -> None:
    keys = [".SLUICE-KEYS/%2e", ".sluice-Keys/a", ".\u017fluice-keys/a", "."]
    locators = {key: await put(files, key, key.encode()) for key in keys}
    assert all([await get(files, locator) == key.encode() for key, locator in locators.items()])


async def test_one_directory_may_fold(make_files: MakeFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ext4, f2fs and tmpfs say it by a flag. This mount folds nothing: what is asked for is seen."""
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials.WITH_FLAGS", {mount_of(tmp_path).kind})
    (tmp_path / "root").mkdir()
    asked, folds = [], []

    def ioctl(fd: int, request: int, flags: array, mutate: bool) -> int:
        asked.append(request)
        if request == 0x80086601:
            flags[0] = 0x40080000 if os.fstat(fd).st_ino in folds else 0x80000
        else:
            folds.append(os.fstat(fd).st_ino)
        return 0

    monkeypatch.setattr("fcntl.ioctl", ioctl)
    files = await make_files(tmp_path / "root")
    assert files.traits.has_flags
    folds[:] = [(files.root / BUCKET).stat().st_ino]
    claimed = []
    original = publish.rename_new

    def rename_new(source_fd: int, source: bytes, target_fd: int, target: bytes) -> None:
        claimed.append(target)
        original(source_fd, source, target_fd, target)

    monkeypatch.setattr(publish, "rename_new", rename_new)
    for key in ("a", "x/b", "a"):
        assert await get(files, await put(files, key)) == b"body"
    assert claimed == [b"a"]
    assert set(asked) == {0x80086601, 0x40086602}
