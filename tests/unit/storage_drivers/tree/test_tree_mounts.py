"""Trees on FUSE mounts: personalities, faults at every call, un-synced data lost."""

from __future__ import annotations

import itertools
import os

import pytest

from sluice_s3.loadtests.mounts import Mount
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import ReadOnlyStore, StoreFailed, StoreFull, StoreUnfit
from sluice_s3.storage_drivers.tree import FileChanged, TreeFiles
from tests.unit.storage_drivers.conftest import MakeMount
from tests.unit.storage_drivers.tools import Pieces
from tests.unit.storage_drivers.tree.conftest import MakeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET, KEYS, fits, get, put, scanned

pytestmark = pytest.mark.slow

OLD, NEW = b"old", b"new"
BLOB = 700


async def started(make_files: MakeFiles, mount: Mount, **settings: object) -> TreeFiles:
    root = mount.path / "tree"
    root.mkdir(exist_ok=True)
    return await make_files(root, **settings)


@pytest.mark.parametrize("personality", ["plain", "nfs"])
async def test_every_key_has_its_file(make_files: MakeFiles, make_mount: MakeMount, personality: str) -> None:
    mount = make_mount(personality=personality)
    files = await started(make_files, mount, durability=Durability.RELAXED)
    assert files.traits.rmdir
    assert not files.traits.careful
    locators = {key: await put(files, key, key.encode()) for key in KEYS if fits(key)}
    for key in ("a", "a/b", "x" * 255 + "/y"):
        locators[key] = await put(files, key, b"again")
        assert await get(files, locators[key]) == b"again"
    assert {one.key: files.locator(one.path, one.stamp) for one in await scanned(files)} == locators
    assert not await files.remove_bucket(BUCKET)
    for locator in locators.values():
        assert await files.remove(files.parse(locator)[0])
    assert await files.remove_bucket(BUCKET)
    assert os.listdir(mount.backing / "tree") == [".sluice"]


@pytest.mark.parametrize(("personality", "reason"), [("no-rename", "rename over"), ("zdbfs", "stamps")])
async def test_mounts_that_are_no_place_for_a_tree(
    make_files: MakeFiles, make_mount: MakeMount, personality: str, reason: str
) -> None:
    """zdbfs: times in seconds, and inode numbers of FUSE: two versions of one size could not be told apart."""
    with pytest.raises(StoreUnfit, match=reason):
        await started(make_files, make_mount(personality=personality))


async def test_files_of_one_size_written_at_once_are_told_apart(make_files: MakeFiles, make_mount: MakeMount) -> None:
    files = await started(make_files, make_mount(personality="plain"), durability=Durability.RELAXED)
    assert not files.traits.inodes
    locators = [await put(files, "a", f"{number:03}".encode()) for number in range(50)]
    for number, locator in enumerate(locators[:-1]):
        with pytest.raises(FileChanged):
            await files.open(locator, 0, number)
    assert await get(files, locators[-1]) == b"049"


FAULTS: tuple[tuple[str, str, type[Exception]], ...] = (
    *(("create", "ENOSPC", StoreFull), ("write", "EDQUOT", StoreFull), ("create", "EROFS", ReadOnlyStore)),
    *(("fsync", "EIO", StoreFailed), ("close", "EIO", StoreFailed), ("close", "EDQUOT", StoreFull)),
)


async def test_faults_of_staging_leave_nothing(make_files: MakeFiles, make_mount: MakeMount) -> None:
    mount = make_mount(personality="plain")
    files = await started(make_files, mount)
    locator = await put(files, "a", OLD)
    for number, (call, act, error) in enumerate(FAULTS):
        mount.fault(call, act, "*/staged/*")
        with pytest.raises(error):
            await files.stage(BLOB + number, Pieces(NEW))
        assert os.listdir(mount.backing / "tree/.sluice/staged") == []
        assert await get(files, locator) == OLD


@pytest.mark.parametrize("after", [False, True])
async def test_faults_of_publishing_leave_the_old_or_the_new(
    make_files: MakeFiles, make_mount: MakeMount, after: bool
) -> None:
    """With `after` the mount did it and then says that it failed."""
    mount = make_mount(personality="plain")
    files = await started(make_files, mount)
    (files.root / BUCKET).chmod(0o755)
    calls = ("mkdir", "rename", "fsyncdir", "getattr", "chmod")
    published = set()
    for number, (call, nth, replaces) in enumerate(itertools.product(calls, (1, 2), (True, False))):
        key = f"{call}-{nth}" if replaces else f"{call}-{nth}-in/x/a"
        old = await put(files, key, OLD) if replaces else ""
        path = f"{BUCKET}/{key}"
        stamp = await files.stage(BLOB + number, Pieces(NEW))
        fault = mount.fault(call, "EIO", "/tree/*", nth=nth, after=after)
        try:
            await files.publish(BLOB + number, path)
        except StoreFailed:
            pass
        mount.clear(fault)
        if await files.is_published(BLOB + number, path, stamp):
            published.add(call)
            assert await get(files, files.locator(path, stamp)) == NEW
        else:
            assert await files.unstage(BLOB + number)
            assert await get(files, old) == OLD if replaces else await files.find(path) is None
    assert "fsyncdir" in published
    assert (mount.backing / f"tree/{BUCKET}/rename-1").read_bytes() == (NEW if after else OLD)


async def test_what_was_published_outlives_a_crash_of_the_mount(make_files: MakeFiles, make_mount: MakeMount) -> None:
    """The mount forgets all that was not synced, files and directory entries alike."""
    mount = make_mount(personality="plain", tracked=True)
    files = await started(make_files, mount)
    for directory in (mount.path, mount.path / "tree", mount.path / "tree/.sluice"):
        fd = os.open(directory, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    await files.make_bucket(BUCKET)
    locators = {key: await put(files, key, OLD) for key in ("a", "x/y/a", "x/y/b", "c//d", "gone")}
    locators["x/y/a"] = await put(files, "x/y/a", NEW)
    assert await files.remove(files.parse(locators.pop("gone"))[0])
    loose = await files.stage(BLOB, Pieces(NEW))
    mount.crash()
    files = await started(make_files, mount)
    assert {one.key: files.locator(one.path, one.stamp) for one in await scanned(files)} == locators
    assert [await get(files, locators[key]) for key in ("a", "x/y/a")] == [OLD, NEW]
    assert not await files.is_published(BLOB, f"{BUCKET}/a", loose)
