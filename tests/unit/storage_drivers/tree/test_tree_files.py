"""Files of a tree on an ordinary file system: written, replaced, read, removed, found."""

from __future__ import annotations

import asyncio
import itertools
import os
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import Durability, FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed, StoreUnfit
from sluice_s3.storage_drivers.tree import Collision, FileChanged, FileGone, Stamp, TreeFiles
from tests.support.environment import sized
from tests.unit.storage_drivers.tools import Pieces, fail_nth, split
from tests.unit.storage_drivers.tree.conftest import MakeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET, get, keys, put, scanned


def staged(root: Path) -> list[str]:
    return os.listdir(root / ".sluice/staged")


# keys
@given(st.lists(keys(), unique=True, min_size=40, max_size=60))
@settings(
    max_examples=sized(20, 250),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example],
)
async def test_keys_live_together(make_files: MakeFiles, drawn: list[str]) -> None:
    """At soak size more than 10,000 keys."""
    files = await make_files(durability=Durability.RELAXED)
    bodies = {key: f"{number} {key}".encode() for number, key in enumerate(drawn)}
    try:
        locators = {key: await put(files, key, body) for key, body in bodies.items()}
        assert {key: await get(files, locator) for key, locator in locators.items()} == bodies
        found = await scanned(files)
        assert {one.key: files.locator(one.path, one.stamp) for one in found} == locators
        assert len(found) == len(bodies)
        for key, locator in locators.items():
            one = await files.find_key(BUCKET, key)
            assert one is not None
            assert files.locator(one.path, one.stamp) == locator
            assert await files.remove(one.path)
            assert await files.find_key(BUCKET, key) is None
    finally:
        assert await files.remove_bucket(BUCKET) == (await scanned_after(files) == [])


async def scanned_after(files: TreeFiles) -> list[object]:
    """What a scan finds, or nothing when there is no bucket."""
    try:
        return list(await scanned(files))
    except StoreFailed:
        return []


@pytest.mark.parametrize("order", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b", "a"), ("a", "a/b", "a/b/c")])
async def test_a_key_may_be_anothers_directory(files: TreeFiles, order: tuple[str, ...]) -> None:
    locators = {key: await put(files, key, key.encode()) for key in order}
    for key, locator in locators.items():
        assert await get(files, locator) == key.encode()
    assert sorted(found.key for found in await scanned(files)) == sorted(order)
    assert files.parse(locators[order[0]])[0] == f"{BUCKET}/{order[0]}"


@pytest.mark.parametrize("first", ["a", "a/b"])
async def test_a_collision_that_comes_after_the_place(files: TreeFiles, first: str) -> None:
    """Both were given their own path while nothing was there yet."""
    second = "a/b" if first == "a" else "a"
    stamps = {key: await files.stage(number, Pieces(key.encode())) for number, key in enumerate((first, second))}
    places = [await files.path_for(BUCKET, key) for key in (first, second)]
    await files.publish(0, places[0])
    with pytest.raises(Collision):
        await files.publish(1, places[1])
    escaped = files.escaped_path(BUCKET, second)
    await files.publish(1, escaped)
    assert await get(files, files.locator(escaped, stamps[second])) == second.encode()
    assert await get(files, files.locator(places[0], stamps[first])) == first.encode()


async def test_what_is_deleted_is_found_at_its_own_path_again(files: TreeFiles) -> None:
    await put(files, "a")
    await put(files, "a/b")
    await files.remove(f"{BUCKET}/a")
    assert await files.path_for(BUCKET, "a/b") == f"{BUCKET}/a/b"


async def test_a_path_longer_than_the_mount_takes(files: TreeFiles) -> None:
    await files.stage(9, Pieces(b"x"))
    with pytest.raises(Collision):
        await files.publish(9, f"{BUCKET}/" + "n" * 256)
    assert await files.find(f"{BUCKET}/" + "n" * 256) is None


# writing
@given(body=st.binary(max_size=3000), cuts=st.lists(st.integers(1, 900), max_size=5), known=st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_file_is_exactly_the_body(files: TreeFiles, body: bytes, cuts: list[int], known: bool) -> None:
    source = Pieces(*split(body, cuts))
    source.size = len(body) if known else None
    timings: dict[str, float] = {}
    stamp = await files.stage(7, source, timings)
    await files.publish(7, f"{BUCKET}/file")
    assert source.verified
    assert source.hash.digest() == Pieces.hash_of(body)
    assert stamp.size == len(body)
    assert (files.root / BUCKET / "file").read_bytes() == body
    assert set(timings) >= {"open", "sync"}
    assert staged(files.root) == []


@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_refused_body_leaves_nothing(files: TreeFiles, pieces: int) -> None:
    with pytest.raises(ValueError, match="no"):
        await files.stage(7, Pieces(*[b"x"] * pieces, refuse=ValueError("no")))
    assert staged(files.root) == []


async def test_a_broken_body_leaves_nothing(files: TreeFiles) -> None:
    with pytest.raises(ValueError, match="off"):
        await files.stage(7, Pieces(b"x", b"y", ValueError("off")))
    assert staged(files.root) == []


@pytest.mark.parametrize("call", ["write", "fsync", "close"])
async def test_a_mount_that_fails_leaves_nothing(files: TreeFiles, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail_nth(getattr(os, call), OSError(5, "I/O")))
        with pytest.raises(StoreFailed):
            await files.stage(7, Pieces(b"x"))
    assert staged(files.root) == []


async def test_bytes_that_a_mount_loses_are_noticed(files: TreeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.tree.staged_file.write_all", lambda fd, piece: os.write(fd, piece[:-1])
    )
    with pytest.raises(StoreFailed, match="3 bytes of 4"):
        await files.stage(7, Pieces(b"body"))


async def test_a_cancelled_body_leaves_nothing(files: TreeFiles) -> None:
    reached = asyncio.Event()

    async def never() -> None:
        reached.set()
        await asyncio.get_running_loop().create_future()

    source = Pieces(b"x", b"y", never())
    source.size = None
    writing = asyncio.create_task(files.stage(7, source))
    await reached.wait()
    assert len(staged(files.root)) == 1
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert staged(files.root) == []


async def test_the_stamp_outlives_the_rename(files: TreeFiles) -> None:
    stamp = await files.stage(7, Pieces(b"body"))
    assert not await files.is_published(7, f"{BUCKET}/x/y", stamp)
    await files.publish(7, f"{BUCKET}/x/y")
    assert await files.find(f"{BUCKET}/x/y") == stamp
    assert await files.is_published(7, f"{BUCKET}/x/y", stamp)
    assert not await files.unstage(7)


async def test_what_was_written_aside_can_be_taken_away(files: TreeFiles) -> None:
    await files.stage(7, Pieces(b"body"))
    assert await files.unstage(7)
    assert staged(files.root) == []


async def test_without_inodes_the_staged_file_tells(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file has the new one's size and time: only what is written aside still says that it is the old one."""
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials._inodes_last", lambda _: False)
    files = await make_files()
    path, _ = files.parse(await put(files, "a", b"old!"))
    stamp = await files.stage(70, Pieces(b"new!"))
    os.utime(files.root / path, ns=(stamp.mtime_ns, stamp.mtime_ns))
    assert await files.find(path) == stamp
    assert not await files.is_published(70, path, stamp)
    await files.publish(70, path)
    assert await files.is_published(70, path, stamp)


@pytest.mark.parametrize("step", [1, 100, 1000, 10**6])
async def test_no_two_files_have_one_stamp(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Of the same size, written within one tick of the clock, and without inode numbers."""
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials._inodes_last", lambda _: False)
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials.time_step", lambda _: step)
    files = await make_files(durability=Durability.RELAXED)
    stamps = [await files.stage(number, Pieces(b"body")) for number in range(900, 1000)]
    assert len(set(stamps)) == len(stamps)
    assert all(stamp.inode == 0 and stamp.mtime_ns % step == 0 for stamp in stamps)
    assert all(abs(stamp.mtime_ns - time.time_ns()) < 60 * 10**9 for stamp in stamps)


async def test_a_mount_without_anything_to_tell_files_by_is_refused(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials._inodes_last", lambda _: False)
    original = os.utime
    monkeypatch.setattr(os, "utime", lambda fd, ns: original(fd, ns=(ns[0], ns[1] - ns[1] % 10**9)))
    with pytest.raises(StoreUnfit, match="stamps"):
        await make_files()


# copies
async def pieces_of(files: TreeFiles, *parts: bytes | str) -> AsyncIterator[FileSlice | bytes]:
    """Bytes, or all of the file at a locator."""
    for part in parts:
        if isinstance(part, bytes):
            yield part
            continue
        opened = await files.open(part, 1, 1 << 40)
        try:
            yield opened
        finally:
            opened.release()


@pytest.mark.parametrize("within", [True, False])
async def test_copies(files: TreeFiles, monkeypatch: pytest.MonkeyPatch, within: bool) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.staged_file.MAX_COPY_BYTES", 1000)
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.staged_file.PIECE_BYTES", 700)
    if not within:
        monkeypatch.setattr(os, "copy_file_range", fail_nth(os.copy_file_range, OSError(18, "cross-device"), 1))
    body = os.urandom(2501)
    source = await put(files, "source", body)
    stamp = await files.stage_pieces(8, pieces_of(files, b"head", source, b"", b"tail", source))
    await files.publish(8, f"{BUCKET}/copy")
    assert await get(files, files.locator(f"{BUCKET}/copy", stamp)) == b"head" + body[1:] + b"tail" + body[1:]


async def test_a_copy_of_a_file_that_became_shorter(files: TreeFiles) -> None:
    source = await put(files, "source", b"0123456789")
    pieces = pieces_of(files, source)
    opened = await anext(pieces)
    assert isinstance(opened, FileSlice)
    os.truncate(files.root / BUCKET / "source", 5)

    async def once() -> AsyncIterator[FileSlice | bytes]:
        yield opened

    with pytest.raises(BlobDamaged, match="ends 5 bytes early"):
        await files.stage_pieces(8, once())
    await pieces.aclose()  # type: ignore[attr-defined]
    assert staged(files.root) == []


# replacing and removing
async def test_an_answer_under_way_is_the_old_file(files: TreeFiles) -> None:
    old = await put(files, "a", b"old")
    opened = await files.open(old, 0, 10)
    new = await put(files, "a", b"newer")
    assert os.pread(opened.fd, 10, 0) == b"old"
    assert files.is_unchanged(opened, old)
    assert not files.is_unchanged(opened, new)
    opened.release()
    assert await get(files, new) == b"newer"
    with pytest.raises(FileChanged) as changed:
        await files.open(old, 0, 10)
    assert changed.value.stamp == files.parse(new)[1]


async def test_removing(files: TreeFiles) -> None:
    path, _ = files.parse(await put(files, "x/a"))
    assert await files.remove(path)
    assert not await files.remove(path)
    assert not await files.remove(f"{BUCKET}/nowhere/a")
    assert not await files.remove(f"{BUCKET}/x")
    assert (files.root / BUCKET / "x").is_dir()


async def test_only_the_file_that_is_meant_is_removed(files: TreeFiles) -> None:
    old = files.parse(await put(files, "a", b"old"))
    new = files.parse(await put(files, "a", b"new"))
    with pytest.raises(FileChanged) as changed:
        await files.remove(*old)
    assert changed.value.stamp == new[1]
    assert await files.find(new[0]) == new[1]
    assert await files.remove(*new)
    assert not await files.remove(*new)


@pytest.mark.parametrize("offset", [0, 3, 4, 9])
async def test_a_range_ends_with_the_file(files: TreeFiles, offset: int) -> None:
    opened = await files.open(await put(files, "a", b"body"), offset, 3)
    assert (opened.offset, opened.count) == (offset, max(0, min(3, 4 - offset)))
    opened.release()


@pytest.mark.parametrize("edit", ["append", "rewrite", "replace", "touch"])
async def test_edits_of_others_are_seen(files: TreeFiles, edit: str) -> None:
    locator = await put(files, "a", b"body")
    file = files.root / BUCKET / "a"
    opened = await files.open(locator, 0, 4)
    assert files.is_unchanged(opened, locator)
    later = file.stat().st_mtime_ns + 1
    if edit == "append":
        with file.open("ab") as handle:
            handle.write(b"!")
    elif edit == "replace":
        (files.root / "new").write_bytes(b"edit")
        os.utime(files.root / "new", ns=(later - 1, later - 1))
        os.replace(files.root / "new", file)
    else:
        file.write_bytes(b"edit" if edit == "rewrite" else b"body")
        os.utime(file, ns=(later, later))
    # what was replaced is whole for those who have it open
    assert files.is_unchanged(opened, locator) == (edit == "replace")
    opened.release()
    with pytest.raises(FileChanged) as changed:
        await files.open(locator, 0, 4)
    assert changed.value.stamp == await files.find(f"{BUCKET}/a")


async def test_young_stamps_are_not_settled(files: TreeFiles) -> None:
    stamp = await files.stage(7, Pieces(b"x"))
    assert files.is_settled(stamp._replace(mtime_ns=stamp.mtime_ns - 10**11))
    assert not files.is_settled(stamp._replace(mtime_ns=stamp.mtime_ns + files.traits.grain_ns // 2))


# permissions
async def test_permissions_come_from_the_directory(files: TreeFiles) -> None:
    (files.root / BUCKET).chmod(0o2755)
    before = os.umask(0o077)
    try:
        await put(files, "x/y/a")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((files.root / BUCKET / name).stat().st_mode) for name in ("x", "x/y", "x/y/a")]
    assert modes == [0o2755, 0o2755, 0o644]


# the store
async def test_a_missing_mount_is_no_missing_file(make_files: MakeFiles, root: Path) -> None:
    files = await make_files()
    (root / ".sluice/store.json").write_text("one")
    await files.start()
    locator = await put(files, "a")
    root.rename(root.with_name("unmounted"))
    for _ in range(2):
        for call in (files.open(locator, 0, 1), files.find(f"{BUCKET}/a"), files.remove(f"{BUCKET}/a")):
            with pytest.raises(StoreFailed):
                await call
        root.mkdir(exist_ok=True)
        (root / BUCKET).mkdir(exist_ok=True)
    with pytest.raises(StoreFailed):
        await files.stage(3, Pieces(b"x"))
    (root / ".sluice").mkdir()
    (root / ".sluice/store.json").write_text("two")
    with pytest.raises(StoreFailed, match="mount missing"):
        await files.find(f"{BUCKET}/a")


async def test_a_missing_bucket_is_no_missing_file(files: TreeFiles) -> None:
    with pytest.raises(StoreFailed, match="bucket other"):
        await files.find("other/a")
    (files.root / "file").write_bytes(b"")
    with pytest.raises(StoreFailed, match="bucket file"):
        await files.find("file/a")
    with pytest.raises(Collision, match="no directory of a bucket"):
        await files.make_bucket("file")


async def test_what_is_gone(files: TreeFiles) -> None:
    locator = await put(files, "x/a")
    os.unlink(files.root / BUCKET / "x/a")
    with pytest.raises(FileGone):
        await files.open(locator, 0, 1)
    (files.root / BUCKET / "x").rmdir()
    with pytest.raises(FileGone):
        await files.open(locator, 0, 1)
    with pytest.raises(BlobMissing):
        await files.open("f:0000000000000001", 0, 1)


async def test_buckets_are_removed_as_far_as_they_are_empty(files: TreeFiles) -> None:
    await put(files, "x/y/z/a")
    await put(files, "x/../a")
    assert not await files.remove_bucket(BUCKET)
    await files.remove(files.escaped_path(BUCKET, "x/../a"))
    assert not await files.remove_bucket(BUCKET)
    await files.remove(f"{BUCKET}/x/y/z/a")
    (files.root / BUCKET / "x/other").mkdir()
    assert await files.remove_bucket(BUCKET)
    assert not (files.root / BUCKET).exists()
    assert await files.remove_bucket(BUCKET)
    await files.make_bucket(BUCKET)
    assert await get(files, await put(files, "x/y/z/a")) == b"body"


async def test_no_bucket_is_removed_where_rmdir_is_not_safe(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.tree.trials.rmdir_refuses", lambda _: (False, "it is gone"))
    files = await make_files()
    assert not await files.remove_bucket(BUCKET)
    assert (files.root / BUCKET).is_dir()


async def test_a_directory_that_goes_away_meanwhile_is_made_again(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = await make_files()
    original, left = os.rename, [1, 2]

    def rename(source: bytes, target: bytes, **where: int) -> None:
        if left:
            left.pop()
            (files.root / BUCKET / "x/y").rmdir()
            (files.root / BUCKET / "x").rmdir()
        original(source, target, **where)

    monkeypatch.setattr(os, "rename", rename)
    assert await get(files, await put(files, "x/y/a")) == b"body"


@pytest.mark.parametrize(
    ("trial", "reason"),
    [("rename_over", "rename over"), ("rename_across", "rename across"), ("stamps_survive", "size or mtime")],
)
async def test_a_mount_that_cannot_rename_is_refused(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, trial: str, reason: str
) -> None:
    def refused(_: object) -> tuple[bool, str]:
        return False, "no"

    refused.__name__ = trial
    monkeypatch.setattr(f"sluice_s3.storage_drivers.tree.trials.{trial}", refused)
    with pytest.raises(StoreFailed, match=reason):
        await make_files()


async def test_a_full_mount_can_still_be_read(make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    locator = await put(await make_files(), "a")
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.probing.scratch.write_all", fail_nth(lambda *_: None, OSError(28, "full"), 1)
    )
    files = await make_files()
    assert files.traits.careful
    assert not files.traits.rmdir
    assert await get(files, locator) == b"body"


async def test_stamps_are_told_as_text() -> None:
    assert str(Stamp(16, -1, 255)) == "10.-1.ff"


async def test_everything_at_once(make_files: MakeFiles) -> None:
    """Keys that are each other's directories, put and removed by two gateways while empty directories are."""
    gateways = [await make_files(durability=Durability.RELAXED) for _ in range(2)]
    keys = ["a", "a/b", "a/b/c", "d/e", "d"]
    ids = itertools.count(5000)
    kept = gateways[0].root / BUCKET / "kept"
    kept.symlink_to("nowhere")  # else the bucket itself goes away

    async def write(files: TreeFiles, key: str) -> None:
        """No two at the same key: the index sees to that."""
        for number in range(sized(15, 300)):
            blob_id, body = next(ids), f"{key} {number}".encode()
            stamp = await files.stage(blob_id, Pieces(body))
            path = await files.path_for(BUCKET, key)
            try:
                await files.publish(blob_id, path)
            except Collision:
                path = files.escaped_path(BUCKET, key)
                await files.publish(blob_id, path)
            assert await get(files, files.locator(path, stamp)) == body
            assert await files.remove(path)

    async def clean(files: TreeFiles) -> None:
        while not done.is_set():
            assert not await files.remove_bucket(BUCKET)
            await asyncio.sleep(0.002)

    done = asyncio.Event()
    cleaning = asyncio.create_task(clean(gateways[0]))
    try:
        await asyncio.gather(*(write(gateways[number % 2], key) for number, key in enumerate(keys)))
    finally:
        done.set()
        await cleaning
    assert await scanned(gateways[1]) == []
    kept.unlink()
    assert await gateways[1].remove_bucket(BUCKET)
