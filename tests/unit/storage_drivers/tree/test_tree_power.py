"""A power cut under a tree: what was published and removed stays so, with every directory on the way."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from sluice_s3.loadtests.mounts import mounted
from sluice_s3.storage_drivers.tree import TreeFiles
from tests.reliability.crash.power import Disk
from tests.support.environment import need, need_fuse, need_root
from tests.unit.storage_drivers.tools import Pieces
from tests.unit.storage_drivers.tree.conftest import MakeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET, get, put, scanned

pytestmark = [pytest.mark.power, pytest.mark.slow]

DISKS = ("ext4", "xfs")
PERSONALITIES = ("plain", "nfs")
"""FUSE mounts that take back what was not synced, as strictly as POSIX lets them; on `nfs` a close syncs the file."""


class Powered(NamedTuple):
    """Somewhere to put a tree, and how the power under it is cut and comes back."""

    mount: Path
    cut: Callable[[], object]
    restore: Callable[[], None]


@pytest.fixture(params=[*DISKS, *PERSONALITIES])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Powered]:
    with ExitStack() as running:
        if request.param in DISKS:
            need_root()
            need(f"mkfs.{request.param}", "mount", "umount")
            disk = running.enter_context(Disk(tmp_path, request.param))
            yield Powered(disk.mount, disk.cut, disk.restore)
            return
        need_fuse()
        backing, where = tmp_path / "backing", tmp_path / "mount"
        backing.mkdir()
        where.mkdir()
        mount = running.enter_context(mounted(backing, where, personality=request.param, tracked=True))
        yield Powered(where, mount.cut, mount.restart)


def sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


async def started(make: MakeFiles, disk: Powered) -> TreeFiles:
    """As the store makes it: its directories are there for good."""
    inner = disk.mount / "tree" / ".sluice"
    inner.mkdir(parents=True, exist_ok=True)
    for directory in (inner, inner.parent, disk.mount):
        sync(directory)
    return await make(inner.parent)


@pytest.mark.parametrize("key", ["a", "x/a", "x/y/z/a", "x/../a"])
async def test_published_stays(make_files: MakeFiles, disk: Powered, key: str) -> None:
    files = await started(make_files, disk)
    locator = await put(files, key, b"whole" * 1000)
    disk.cut()
    disk.restore()
    files = await started(make_files, disk)
    path, stamp = files.parse(locator)
    assert await get(files, locator) == b"whole" * 1000
    assert await files.is_published(0, path, stamp)


async def test_published_in_directories_of_others_stays(make_files: MakeFiles, disk: Powered) -> None:
    """They were not synced by whoever made them."""
    files = await started(make_files, disk)
    (files.root / BUCKET / "x/y").mkdir(parents=True)
    locator = await put(files, "x/y/a")
    disk.cut()
    disk.restore()
    assert await get(await started(make_files, disk), locator) == b"body"


async def test_replaced_and_removed(make_files: MakeFiles, disk: Powered) -> None:
    files = await started(make_files, disk)
    keys = [f"d{number % 3}/{number}" for number in range(12)]
    locators = {key: await put(files, key, b"old") for key in keys}
    for key in keys[:4]:
        locators[key] = await put(files, key, b"newer")
    for key in keys[4:8]:
        assert await files.remove(files.parse(locators.pop(key))[0])
    disk.cut()
    disk.restore()
    files = await started(make_files, disk)
    assert {one.key: files.locator(one.path, one.stamp) for one in await scanned(files)} == locators
    assert [await get(files, locators[key]) for key in keys[:4]] == [b"newer"] * 4


async def test_what_was_on_its_way_is_old_or_new(make_files: MakeFiles, disk: Powered) -> None:
    class Cut(Exception):
        pass

    def cut(step: str) -> None:
        if step == at:
            disk.cut()
            raise Cut(step)

    for number, at in enumerate(("put.written", "put.synced", "put.closed", "publish.made", "publish.renamed")):
        key = f"{number}/x/a"
        files = await started(make_files, disk)
        old = None if at == "publish.made" else await put(files, key, b"old")
        files = await make_files(files.root, crash_hook=cut)
        stamp = None
        if at.startswith("publish"):
            stamp = await files.stage(900 + number, Pieces(b"newer"))
            act: Awaitable[object] = files.publish(900 + number, f"{BUCKET}/{key}")
        else:
            act = files.stage(900 + number, Pieces(b"newer"))
        with pytest.raises(Cut):
            await act
        disk.restore()
        files = await started(make_files, disk)
        path = f"{BUCKET}/{key}"
        if stamp is not None and await files.is_published(900 + number, path, stamp):
            assert at == "publish.renamed"
            assert await get(files, files.locator(path, stamp)) == b"newer"
        elif old is not None:
            assert await get(files, old) == b"old"
        else:
            assert await files.find(path) is None
        await files.unstage(900 + number)
