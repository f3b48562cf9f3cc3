"""What others do to a bucket, as it happens."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.mountinfo import UNKNOWN
from sluice_s3.storage_drivers.tree import Changes, TreeFiles, inotify, openat2
from tests.support.waiting import eventually_async
from tests.unit.storage_drivers.tree.tools import BUCKET, put


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "PAUSE_SECONDS", 0.01)


@pytest.fixture
async def told(files: TreeFiles) -> AsyncIterator[AsyncIterator[Changes]]:
    await put(files, "x/y/old")
    changes = files.watch(BUCKET)
    assert not await anext(changes)
    yield changes
    await changes.aclose()  # type: ignore[attr-defined]


async def until(told: AsyncIterator[Changes], *keys: str) -> Changes:
    """All that is told until these were."""
    whole = Changes()
    wanted = {f"{BUCKET}/{key}" for key in keys}
    while not wanted <= whole.paths:
        changes = await anext(told)
        whole.paths |= changes.paths
        whole.missed = whole.missed or changes.missed
    return whole


def write(bucket: Path) -> None:
    (bucket / "x/new").write_bytes(b"new")


def rewrite(bucket: Path) -> None:
    (bucket / "x/y/old").write_bytes(b"changed")


def touch(bucket: Path) -> None:
    os.utime(bucket / "x/y/old", (1, 1))


def unlink(bucket: Path) -> None:
    os.unlink(bucket / "x/y/old")


def move_in(bucket: Path) -> None:
    (bucket.parent / "outside").write_bytes(b"x")
    (bucket.parent / "outside").rename(bucket / "in")


def move(bucket: Path) -> None:
    (bucket / "x/y/old").rename(bucket / "x/moved")


def link(bucket: Path) -> None:
    os.link(bucket / "x/y/old", bucket / "linked")


def deep(bucket: Path) -> None:
    (bucket / "n/e/w").mkdir(parents=True)
    (bucket / "n/e/w/file").write_bytes(b"x")


def move_tree_in(bucket: Path) -> None:
    (bucket.parent / "outside/z").mkdir(parents=True)
    (bucket.parent / "outside/z/file").write_bytes(b"x")
    (bucket.parent / "outside").rename(bucket / "x/y/tree")


def remove_tree(bucket: Path) -> None:
    shutil.rmtree(bucket / "x")


@pytest.mark.parametrize(
    ("act", "keys"),
    [
        *((write, ["x/new"]), (rewrite, ["x/y/old"]), (touch, ["x/y/old"]), (unlink, ["x/y/old"]), (move_in, ["in"])),
        *((move, ["x/y/old", "x/moved"]), (link, ["linked"]), (deep, ["n/e/w/file"])),
        *((move_tree_in, ["x/y/tree/z/file"]), (remove_tree, ["x/y/old"])),
    ],
)
async def test_what_others_do(
    files: TreeFiles, told: AsyncIterator[Changes], act: Callable[[Path], None], keys: list[str]
) -> None:
    act(files.root / BUCKET)
    changes = await until(told, *keys)
    assert not changes.missed
    # and it goes on
    (files.root / BUCKET / "last").write_bytes(b"x")
    await until(told, "last")


async def test_our_own_writes_are_told_under_their_names_only(files: TreeFiles, told: AsyncIterator[Changes]) -> None:
    await put(files, "x/y/a")
    await put(files, "x//y")
    await put(files, "last")
    changes = await until(told, "x/y/a", "last", ".sluice-keys/x%2f%2fy")
    assert len(changes.paths) == 3


async def test_directories_that_move_away_call_for_a_scan(files: TreeFiles, told: AsyncIterator[Changes]) -> None:
    (files.root / BUCKET / "x").rename(files.root / "elsewhere")
    assert (await anext(told)).missed
    (files.root / "elsewhere/y/unseen").write_bytes(b"x")
    (files.root / BUCKET / "last").write_bytes(b"x")
    changes = await until(told, "last")
    assert changes.paths == {f"{BUCKET}/last"}


async def test_directories_that_move_within(files: TreeFiles, told: AsyncIterator[Changes]) -> None:
    (files.root / BUCKET / "x").rename(files.root / BUCKET / "z")
    assert (await until(told, "z/y/old")).missed
    (files.root / BUCKET / "z/y/last").write_bytes(b"x")
    await until(told, "z/y/last")


async def test_links_are_not_followed(files: TreeFiles, told: AsyncIterator[Changes], tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (files.root / BUCKET / "link").symlink_to(tmp_path / "outside")
    await until(told, "link")
    (tmp_path / "outside/file").write_bytes(b"x")
    (files.root / BUCKET / "last").write_bytes(b"x")
    assert (await until(told, "last")).paths == {f"{BUCKET}/last"}


@pytest.mark.parametrize("lack", ["watches", "many"])
async def test_what_is_missed_is_said(
    files: TreeFiles, told: AsyncIterator[Changes], monkeypatch: pytest.MonkeyPatch, lack: str
) -> None:
    bucket = files.root / BUCKET
    if lack == "many":
        monkeypatch.setattr(inotify, "MAX_PENDING", 10)
        for number in range(20):
            (bucket / f"{number}").write_bytes(b"x")
    else:

        def full(*_: object) -> int:
            raise OSError(28, "no watch left")

        monkeypatch.setattr(inotify, "_check_result", full)
        (bucket / "new").mkdir()
    assert (await anext(told)).missed


async def test_what_cannot_be_read_hides_no_other(files: TreeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = openat2.open_beneath

    def refusing(root: int, path: bytes, flags: int) -> int:
        if path.endswith(b"/closed"):
            raise PermissionError(errno.EACCES, "closed")
        return whole(root, path, flags)

    monkeypatch.setattr(openat2, "open_beneath", refusing)
    (files.root / BUCKET / "closed").mkdir()
    (files.root / BUCKET / "x").mkdir()
    changes = files.watch(BUCKET)
    assert (await anext(changes)).missed
    (files.root / BUCKET / "x/new").write_bytes(b"x")
    await until(changes, "x/new")
    await changes.aclose()  # type: ignore[attr-defined]


async def test_an_overflow_is_said(files: TreeFiles) -> None:
    watcher = inotify.Watcher(files._directories, BUCKET)
    assert not watcher.start()
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    names = [files.root / BUCKET / name for name in "ab"]
    for name in names:
        name.write_bytes(b"")
    for number in range(queue + 10):
        os.utime(names[number % 2], (number, number))
    changes = watcher.read()
    watcher.close()
    assert changes.missed
    assert changes.paths == {f"{BUCKET}/a", f"{BUCKET}/b"}


async def test_mounts_that_do_not_tell(files: TreeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.directories.mount_of", lambda _: UNKNOWN)
    with pytest.raises(StoreFailed, match="local"):
        await anext(files.watch(BUCKET))


async def test_a_bucket_that_is_not_there(files: TreeFiles) -> None:
    with pytest.raises(StoreFailed, match="watched"):
        await anext(files.watch("nowhere"))


async def test_watching_can_end_at_any_time(files: TreeFiles) -> None:
    before = len(os.listdir("/proc/self/fd"))
    changes = files.watch(BUCKET)
    await anext(changes)
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await files._run_in_thread(lambda: None)
    await eventually_async(lambda: len(os.listdir("/proc/self/fd")) == before)
