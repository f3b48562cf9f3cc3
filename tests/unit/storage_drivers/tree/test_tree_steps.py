"""What is left when a process ends, or the mount fails, after any step: the old file or the new one."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.tree import Collision, Stamp, TreeFiles
from tests.unit.storage_drivers.tools import Pieces, fail_nth
from tests.unit.storage_drivers.tree.conftest import MakeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET, get, put

OLD, NEW = b"old", b"newer"
BLOB = 500


class Ended(BaseException):
    """Stands for the end of the process."""


class End:
    """Ends the process at the nth step, and tells all those before."""

    def __init__(self) -> None:
        self.nth = 0
        self.steps: list[str] = []

    def __call__(self, step: str) -> None:
        self.steps.append(step)
        if len(self.steps) == self.nth:
            raise Ended(step)


async def replaced(files: TreeFiles, path: str) -> Stamp:
    stamp = await files.stage(BLOB, Pieces(NEW))
    await files.publish(BLOB, path)
    return stamp


async def removed(files: TreeFiles, path: str) -> None:
    await files.remove(path)


async def steps_of(make: MakeFiles, key: str, act: Callable[[TreeFiles, str], Awaitable[object]]) -> list[str]:
    end = End()
    files = await make(crash_hook=end)
    path = await files.path_for(BUCKET, key)
    end.steps.clear()
    await act(files, path)
    return end.steps


@pytest.mark.parametrize("nth", range(1, 10))
@pytest.mark.parametrize("there", [True, False])
async def test_publishing_ends_with_the_old_or_the_new(make_files: MakeFiles, there: bool, nth: int) -> None:
    key = "x/y/a"
    end = End()
    files = await make_files(crash_hook=end)
    path = await files.path_for(BUCKET, key)
    old = await put(files, key, OLD) if there else None
    end.steps.clear()
    end.nth = nth
    try:
        await replaced(files, path)
    except Ended as ended:
        last = str(ended)
    else:
        assert nth > len(end.steps)
        last = "publish.synced"
    # what the intent of the index knows after a crash
    again = await make_files()
    staged = again.root / f".sluice/staged/{BLOB:016x}"
    now = await again.find(path)
    if last in ("publish.renamed", "publish.synced"):
        assert now is not None
        assert await again.is_published(BLOB, path, now)
        assert await get(again, again.locator(path, now)) == NEW
    else:
        if staged.exists() and staged.stat().st_size == len(NEW):
            found = staged.stat()
            assert not await again.is_published(BLOB, path, Stamp(found.st_size, found.st_mtime_ns, found.st_ino))
        if old is None:
            assert now is None
        else:
            assert await get(again, old) == OLD
    await again.unstage(BLOB)
    assert os.listdir(again.root / ".sluice/staged") == []


async def test_the_steps(make_files: MakeFiles) -> None:
    staging = ["put.created", "put.written", "put.synced", "put.closed"]
    placing = ["publish.renamed", "publish.synced"]
    assert await steps_of(make_files, "x/y/a", replaced) == [*staging, "publish.made", "publish.made", *placing]
    assert await steps_of(make_files, "x/y/a", replaced) == [*staging, *placing]
    assert await steps_of(make_files, "x/y/a", removed) == ["remove.unlinked", "remove.synced"]
    assert await steps_of(make_files, "x/y/a", removed) == ["remove.synced"]


@pytest.mark.parametrize("nth", [1, 2])
async def test_removing_again_makes_it_durable(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    end = End()
    files = await make_files(crash_hook=end)
    path, _ = files.parse(await put(files, "a"))
    end.steps.clear()
    end.nth = nth
    with pytest.raises(Ended):
        await files.remove(path)
    again = await make_files()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    assert not await again.remove(path)
    assert (again.root / BUCKET).stat().st_ino in synced


async def test_directories_are_durable_before_what_is_in_them(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that another process made and may not have synced yet; once a process, not at every write."""
    files = await make_files()
    (files.root / BUCKET / "x/y").mkdir(parents=True)
    inodes = [os.stat(files.root / BUCKET / way).st_ino for way in (".", "x", "x/y")]
    for name, expected in (("a", inodes), ("b", inodes[-1:])):
        await files.stage(BLOB, Pieces(NEW))
        synced: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda fd, synced=synced: synced.append(os.fstat(fd).st_ino))
            await files.publish(BLOB, f"{BUCKET}/x/y/{name}")
        assert synced == expected


@pytest.mark.parametrize("call", ["mkdir", "fsync", "rename", "open"])
async def test_a_mount_that_fails_keeps_the_old(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whatever fails, either is whole; and what is not known is found out."""
    for nth in range(1, 6):
        files = await make_files()
        path = f"{BUCKET}/x{nth}/a"
        stamp = await files.stage(BLOB, Pieces(NEW))
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail_nth(getattr(os, call), OSError(5, "I/O"), nth))
            try:
                await files.publish(BLOB, path)
            except StoreFailed:
                pass
        if await files.is_published(BLOB, path, stamp):
            assert await get(files, files.locator(path, stamp)) == NEW
        else:
            assert await files.find(path) is None
            assert await files.unstage(BLOB)


@pytest.mark.parametrize("code", [36, 22, 84, 31])
async def test_names_that_a_mount_refuses_are_escaped(
    files: TreeFiles, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    await files.stage(BLOB, Pieces(NEW))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail_nth(os.rename, OSError(code, "name")))
        with pytest.raises(Collision):
            await files.publish(BLOB, f"{BUCKET}/a:b")
    await files.publish(BLOB, files.escaped_path(BUCKET, "a:b"))


async def test_an_escaped_path_is_the_last_way_out(files: TreeFiles) -> None:
    path = files.escaped_path(BUCKET, "a//b")
    (files.root / path).mkdir(parents=True)
    await files.stage(BLOB, Pieces(NEW))
    with pytest.raises(StoreFailed, match="escaped"):
        await files.publish(BLOB, path)
    assert await files.unstage(BLOB)


async def test_a_mount_that_syncs_no_directories(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.fsync

    def fsync(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(22, "invalid")
        original(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    files = await make_files()
    assert await get(files, await put(files, "x/a")) == b"body"
