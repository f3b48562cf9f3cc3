"""Links, pipes and devices that somebody planted: never followed, never opened, never written through."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.tree import FileGone, SkippedCounts, TreeFiles, openat2
from tests.unit.storage_drivers.tools import Pieces
from tests.unit.storage_drivers.tree.tools import BUCKET, get, put, scanned

SECRET = b"secret"


@pytest.fixture(autouse=True, params=["openat2", "components"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With openat2(2), and as where there is none."""
    if request.param == "components":
        monkeypatch.setattr(openat2, "has_openat2", lambda: False)
    elif not openat2.has_openat2():
        pytest.skip("no openat2(2) here")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a").write_bytes(SECRET)
    return tmp_path / "outside"


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path.parent, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def absolute_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "a")


def relative_link(path: Path, outside: Path) -> None:
    path.symlink_to(os.path.relpath(outside / "a", path.parent))


def link_inside(path: Path, _: Path) -> None:
    (path.parent / "target").write_bytes(SECRET)
    path.symlink_to("target")


def dangling_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "nothing")


def link_to_itself(path: Path, _: Path) -> None:
    path.symlink_to(path.name)


def magic_link(path: Path, _: Path) -> None:
    path.symlink_to("/proc/self/exe")


def directory(path: Path, _: Path) -> None:
    path.mkdir()


Plant = Callable[[Path, Path], None]
PLANTS = (
    *(fifo, unix_socket, device, absolute_link, relative_link, link_inside, dangling_link, link_to_itself, magic_link),
    directory,
)


@pytest.mark.parametrize("plant", PLANTS)
async def test_instead_of_a_file(files: TreeFiles, outside: Path, plant: Plant) -> None:
    locator = await put(files, "x/a")
    path, stamp = files.parse(locator)
    os.unlink(files.root / path)
    plant(files.root / path, outside)
    with pytest.raises(FileGone):
        await files.open(locator, 0, 10)
    assert await files.find(path) is None
    assert not await files.is_published(1, path, stamp)
    # a new key goes round it, and it stays
    before = os.lstat(files.root / path)
    other = await put(files, "x/a", b"mine")
    assert files.parse(other)[0] == files.escaped_path(BUCKET, "x/a")
    assert await get(files, other) == b"mine"
    assert os.lstat(files.root / path) == before
    assert (outside / "a").read_bytes() == SECRET
    # and what has a row there takes its place, or is told of a directory
    stamp = await files.stage(77, Pieces(b"again"))
    if plant is not directory:
        await files.publish(77, path)
        assert await files.find(path) == stamp
        assert (files.root / path).read_bytes() == b"again"
        assert not (files.root / path).is_symlink()
    assert (outside / "a").read_bytes() == SECRET


@pytest.mark.parametrize("plant", [absolute_link, fifo, device])
async def test_removing_takes_the_link_only(files: TreeFiles, outside: Path, plant: Plant) -> None:
    plant(files.root / BUCKET / "a", outside)
    assert await files.remove(f"{BUCKET}/a")
    assert not os.path.lexists(files.root / BUCKET / "a")
    assert (outside / "a").read_bytes() == SECRET


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("depth", ["x", "x/y"])
async def test_in_the_middle(files: TreeFiles, outside: Path, depth: str, inside: bool) -> None:
    """A link in place of a directory, also one that stays in the bucket."""
    locator = await put(files, "x/y/a")
    planted = files.root / BUCKET / depth
    target = planted.with_name("moved")
    planted.rename(target)
    planted.symlink_to("moved" if inside else outside)
    (outside / "y").mkdir()
    path = files.parse(locator)[0]
    with pytest.raises(FileGone):
        await files.open(locator, 0, 10)
    assert await files.find(path) is None
    assert not await files.remove(path)
    assert not await files.remove(f"{BUCKET}/x/a")
    other = await put(files, "x/y/a", b"mine")
    assert files.parse(other)[0] == files.escaped_path(BUCKET, "x/y/a")
    assert await get(files, other) == b"mine"
    assert sorted(os.listdir(outside)) == ["a", "y"]
    assert os.listdir(outside / "y") == []
    assert (outside / "a").read_bytes() == SECRET
    assert {found.path for found in await scanned(files)} == {
        files.escaped_path(BUCKET, "x/y/a"),
        f"{BUCKET}/moved/y/a" if depth == "x" else f"{BUCKET}/x/moved/a",
    }


@pytest.mark.parametrize("name", [BUCKET, ".sluice-keys"])
async def test_instead_of_our_own_directories(files: TreeFiles, outside: Path, name: str) -> None:
    planted = files.root / BUCKET
    if name == BUCKET:
        planted.rmdir()
    else:
        planted /= name
    planted.symlink_to(outside)
    with pytest.raises(StoreFailed):
        await put(files, "a/../b")
    if name == BUCKET:
        with pytest.raises(StoreFailed):
            await scanned(files)
        with pytest.raises(StoreFailed):
            await files.find(f"{BUCKET}/a")
        assert not await files.remove_bucket(BUCKET)
    assert os.listdir(outside) == ["a"]


async def test_a_hard_link_is_never_written_through(files: TreeFiles, outside: Path) -> None:
    os.link(outside / "a", files.root / BUCKET / "a")
    assert await files.find(f"{BUCKET}/a") is not None
    locator = await put(files, "a", b"mine")
    assert await get(files, locator) == b"mine"
    assert (outside / "a").read_bytes() == SECRET
    os.unlink(files.root / BUCKET / "a")
    os.link(outside / "a", files.root / BUCKET / "a")
    assert await files.remove(f"{BUCKET}/a")
    assert (outside / "a").read_bytes() == SECRET


@pytest.mark.parametrize("plant", PLANTS)
async def test_a_scan_passes_them_by(files: TreeFiles, outside: Path, plant: Plant) -> None:
    await put(files, "x/a")
    plant(files.root / BUCKET / "x/planted", outside)
    seen = SkippedCounts()
    found = [one async for batch in files.scan(BUCKET, seen) for one in batch]
    assert {one.key for one in found} - {"x/target"} == {"x/a"}
    assert seen.not_files == (0 if plant is directory else 1)


async def test_the_walk_of_a_scan_swapped_for_a_link(files: TreeFiles, outside: Path) -> None:
    """The directory was one when it was listed."""
    for name in ("x", "y"):
        await put(files, f"{name}/a")
    scan = files.scan(BUCKET, width=1)
    # the bucket's directory is read with the first batch, so swap before it and after the listing
    pending = scan.ag_frame.f_locals["pending"]  # type: ignore[attr-defined]
    pending.paths[:] = [f"{BUCKET}/x".encode(), f"{BUCKET}/y".encode()]
    (files.root / BUCKET / "x").rename(files.root / BUCKET / "z")
    (files.root / BUCKET / "x").symlink_to(outside)
    found = [one.key async for batch in scan for one in batch]
    assert found == ["y/a"]
