"""Changes of plain files that fail in the middle are ended later; what others do meanwhile is told from ours."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import (
    CommitUnknown,
    ConditionalRequestConflict,
    NoSuchKey,
    Overloaded,
    PreconditionFailed,
    StoreFull,
    StoreUnavailable,
    WriterDead,
)
from sluice_s3.app.index import open_index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from sluice_s3.app.store import buckets, reading
from sluice_s3.app.store.plain_files import reads
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_stores
from sluice_s3.storage_drivers.errors import StoreFailed
from tests.support.settings import make_settings
from tests.unit.store.site import Bytes

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, stores={"default": {"path": tmp_path / "tree", "layout": "tree"}})
    prepare(made)
    return made


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple[Store, PlainFiles, Bucket]]:
    index = open_index(settings)
    await index.start()
    store = make_stores(index, settings)
    await store.start()
    assert store.tree is not None
    bucket = await index.bucket("bucket")
    if bucket is None:
        bucket = await buckets.create_bucket(store, "bucket", "owner", "r", 10)
    try:
        yield store, store.tree, bucket
    finally:
        await store.close()
        await index.close()


async def put(tree: PlainFiles, bucket: Bucket, key: str, body: bytes, conditions: Conditions | None = None) -> None:
    source = Bytes(body)
    await tree.put(bucket, key, source, source.describe, conditions, {})


async def read(store: Store, tree: PlainFiles, bucket: Bucket, key: str) -> tuple[str, bytes]:
    version = await tree.find(bucket, key)
    assert version is not None
    body = await reading.read_body(store, version, 0, version.size, {})
    assert isinstance(body, bytes)
    return version.etag, body


def md5(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


def staged(settings: Settings) -> list[Path]:
    directory = settings.named_stores["default"].directory
    assert directory is not None
    return list((directory / "staged").iterdir())


def failing(call: Callable[..., Awaitable[Any]], error: Exception, *, after: bool) -> Callable[..., Awaitable[Any]]:
    """Fails once, before it does anything or after it did everything."""
    left = [error]

    async def fail(*arguments: Any) -> Any:
        if left and not after:
            raise left.pop()
        answer = await call(*arguments)
        if left:
            raise left.pop()
        return answer

    return fail


PUBLISH = [("publish", StoreFailed("EIO"), False, False), ("publish", StoreFailed("EIO"), True, True)]
COMMIT = [
    ("commit_intent", Overloaded(), False, True),
    ("commit_intent", CommitUnknown(), False, True),
    ("commit_intent", CommitUnknown(), True, True),
    ("begin_tree_put", CommitUnknown(), True, False),
    ("begin_tree_put", CommitUnknown(), False, False),
]


@pytest.mark.parametrize(("name", "error", "after", "done"), [*PUBLISH, *COMMIT])
async def test_a_put_that_fails_in_the_middle(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, after: bool, done: bool
) -> None:
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        target = tree.files if name == "publish" else tree.index
        monkeypatch.setattr(target, name, failing(getattr(target, name), error, after=after))
        with pytest.raises((StoreUnavailable, Overloaded, CommitUnknown)):
            await put(tree, bucket, "k", b"new")
        await tree.finish_interrupted()
        wanted = b"new" if done else b"old"
        assert await read(store, tree, bucket, "k") == (md5(wanted), wanted)
        assert staged(settings) == []
        await put(tree, bucket, "k", b"again")
        assert await read(store, tree, bucket, "k") == (md5(b"again"), b"again")
        assert await tree.finish_interrupted() == 0
        await tree.index.retire_range((await tree.index.ranges(tree.index.incarnation))[0])


@pytest.mark.parametrize(("name", "error", "after", "done"), [*PUBLISH, *COMMIT[:2], COMMIT[3]])
async def test_the_next_change_of_a_key_ends_what_was_left_in_the_middle(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, after: bool, done: bool
) -> None:
    """Found by the lab: changes of the key waited for it in turn, ten seconds each, and clients gave up."""
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        with monkeypatch.context() as patch:
            target = tree.files if name == "publish" else tree.index
            patch.setattr(target, name, failing(getattr(target, name), error, after=after))
            with pytest.raises((StoreUnavailable, Overloaded, CommitUnknown)):
                await put(tree, bucket, "k", b"new")
        with monkeypatch.context() as patch:
            refuse = failing(tree.files.is_published, StoreFailed("EIO"), after=False)
            patch.setattr(tree.files, "is_published", refuse)
            with pytest.raises(StoreUnavailable):
                await asyncio.wait_for(put(tree, bucket, "k", b"not yet"), 5)
        found = Conditions(if_match=md5(b"new" if done else b"old"))
        await asyncio.wait_for(tree.delete(bucket, "k", None, found, {}), 5)
        assert await tree.find(bucket, "k") is None
        assert await tree.finish_interrupted() == 0
        assert staged(settings) == []
        await put(tree, bucket, "k", b"again")
        assert await read(store, tree, bucket, "k") == (md5(b"again"), b"again")


async def test_a_reader_that_leaves_does_not_stop_the_end_of_a_change(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its id would be settled twice, and the job that ends such changes would fail from then on."""
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        with monkeypatch.context() as patch:
            patch.setattr(tree.index, "commit_intent", failing(tree.index.commit_intent, Overloaded(), after=False))
            with pytest.raises(Overloaded):
                await put(tree, bucket, "k", b"new")
        settled, go_on, settle = asyncio.Event(), asyncio.Event(), tree._ids.settle

        async def settle_slowly(blob_id: int) -> None:
            await settle(blob_id)
            settled.set()
            await go_on.wait()

        monkeypatch.setattr(tree._ids, "settle", settle_slowly)
        reading = asyncio.create_task(tree.find(bucket, "k"))
        await asyncio.wait_for(settled.wait(), 5)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        go_on.set()
        await tree.finish()
        assert await tree.finish_interrupted() == 0
        assert await read(store, tree, bucket, "k") == (md5(b"new"), b"new")


@pytest.mark.parametrize(
    ("name", "error", "after", "done"),
    [
        ("remove", StoreFailed("EIO"), False, False),
        ("remove", StoreFailed("EIO"), True, True),
        ("commit_intent", CommitUnknown(), False, True),
        ("commit_intent", CommitUnknown(), True, True),
        ("begin_tree_delete", CommitUnknown(), True, False),
    ],
)
async def test_a_delete_that_fails_in_the_middle(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, after: bool, done: bool
) -> None:
    async with opened(settings) as (_, tree, bucket):
        await put(tree, bucket, "k", b"old")
        target = tree.files if name == "remove" else tree.index
        monkeypatch.setattr(target, name, failing(getattr(target, name), error, after=after))
        with pytest.raises((StoreUnavailable, CommitUnknown)):
            await tree.delete(bucket, "k", None, None, {})
        await tree.finish_interrupted()
        assert (await tree.find(bucket, "k") is None) == done
        await tree.delete(bucket, "k", None, None, {})
        assert await tree.find(bucket, "k") is None


async def test_a_delete_that_was_left_by_a_worker_that_stopped_is_ended(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopping worker takes its leave of the index only when nothing is left that locks a key."""
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        monkeypatch.setattr(tree.files, "remove", failing(tree.files.remove, StoreFailed("EIO"), after=False))
        with pytest.raises(StoreUnavailable):
            await tree.delete(bucket, "k", None, None, {})
        await store.ids.close()
    async with opened(settings) as (store, tree, bucket):
        await sweep(store, tree.index.is_writer_dead)
        assert await tree.index.intent_on(bucket.id, "k") is None
        await put(tree, bucket, "k", b"again")
        assert await read(store, tree, bucket, "k") == (md5(b"again"), b"again")


async def test_a_delete_that_goes_on_after_its_gateway_was_declared_dead_spares_what_was_written_since(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as (_, stopped, bucket), opened(settings) as (store, tree, _):
        await put(stopped, bucket, "k", b"old")
        reached, gate = asyncio.Event(), asyncio.Event()
        remove = stopped.files.remove

        async def late(*arguments: Any) -> bool:
            reached.set()
            await gate.wait()
            return await remove(*arguments)

        monkeypatch.setattr(stopped.files, "remove", late)
        deleting = asyncio.create_task(stopped.delete(bucket, "k", None, None, {}))
        await reached.wait()
        await sweep(store, lambda writer: writer.incarnation == stopped.index.incarnation)
        await put(tree, bucket, "k", b"acknowledged")
        gate.set()
        with pytest.raises(WriterDead):
            await deleting
        assert await read(store, tree, bucket, "k") == (md5(b"acknowledged"), b"acknowledged")


async def test_a_delete_of_a_file_that_others_change_just_then(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as (_, tree, bucket):
        await put(tree, bucket, "k", b"old")
        remove, path = tree.files.remove, tree.files.root / "bucket" / "k"
        seen: list[bool] = []

        async def changed_before(*arguments: Any) -> bool:
            if not seen:
                path.write_bytes(b"by others")
            seen.append(path.exists())
            return await remove(*arguments)

        monkeypatch.setattr(tree.files, "remove", changed_before)
        assert await tree.delete(bucket, "k", None, None, {}) is not None
        assert seen == [True, True]
        assert await tree.find(bucket, "k") is None
        assert not path.exists()


async def test_what_is_refused_leaves_nothing(settings: Settings) -> None:
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        with pytest.raises(PreconditionFailed):
            await put(tree, bucket, "k", b"new", Conditions(if_none_match=True))
        with pytest.raises(NoSuchKey):
            await put(tree, bucket, "none", b"new", Conditions(if_match="*"))
        broken = Bytes(b"new", refuse=PreconditionFailed())
        with pytest.raises(PreconditionFailed):
            await tree.put(bucket, "k", broken, broken.describe, None, {})
        store.full = True
        with pytest.raises(StoreFull):
            await put(tree, bucket, "k", b"new")
        assert staged(settings) == []
        assert await read(store, tree, bucket, "k") == (md5(b"old"), b"old")


async def test_whoever_waits_too_long_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that another worker is at, which does not come to an end."""
    monkeypatch.setattr(reads, "STABLE_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(reads.Backoff.__init__, "__defaults__", (0.05,))
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        version = await tree.find(bucket, "k")
        assert version is not None
        described = Bytes(b"x").describe(tree.body_of("bucket/k", tree.parse(version.body)[1]))
        intent = await tree.index.begin_tree_put(bucket.id, "k", 1 << 40, described, None)
        assert await read(store, tree, bucket, "k") == (md5(b"old"), b"old")
        with pytest.raises(Overloaded):
            await put(tree, bucket, "k", b"new")
        with pytest.raises(ConditionalRequestConflict):
            await put(tree, bucket, "k", b"new", Conditions(if_match="*"))
        (tree.files.root / "bucket" / "k").unlink()
        with pytest.raises(Overloaded):
            await tree.find(bucket, "k")
        await tree.recover(intent)
        assert await tree.find(bucket, "k") is None


async def test_a_change_goes_on_when_nobody_waits_for_it(settings: Settings) -> None:
    async with opened(settings) as (store, tree, bucket):
        gate = asyncio.Event()
        publish = tree.files.publish

        async def slow(*arguments: Any) -> None:
            gate.set()
            await asyncio.sleep(0.05)
            await publish(*arguments)

        tree.files.publish = slow  # type: ignore[method-assign]
        asking = asyncio.create_task(put(tree, bucket, "k", b"body"))
        await gate.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await tree.finish()
        assert await read(store, tree, bucket, "k") == (md5(b"body"), b"body")


async def test_a_store_that_is_not_mounted_forgets_nothing(settings: Settings) -> None:
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "k", b"old")
        jobs = PlainFileScanner(store, tree, 0.001, now=iter(range(1000)).__next__)
        root = tree.files.root
        root.rename(root.with_name("away"))
        root.mkdir()
        (root / "bucket").mkdir()
        await jobs.run_once()
        with pytest.raises(StoreUnavailable):
            await tree.find(bucket, "k")
        (root / "bucket").rmdir()
        root.rmdir()
        root.with_name("away").rename(root)
        assert await read(store, tree, bucket, "k") == (md5(b"old"), b"old")
        await jobs.run_once()
        assert await read(store, tree, bucket, "k") == (md5(b"old"), b"old")


async def test_a_put_makes_no_directory_of_a_bucket_that_is_away(settings: Settings) -> None:
    """It would look as if all else in the bucket had been taken away."""
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "d/k", b"old")
        directory = tree.files.root / "bucket"
        directory.rename(directory.with_name("away"))
        jobs = PlainFileScanner(store, tree, 0.001, now=iter(range(1000)).__next__)
        for key in ("d/k", "d/new", "new", "x//y"):
            with pytest.raises(StoreUnavailable):
                await put(tree, bucket, key, b"new")
            await jobs.run_once()
        assert not directory.exists()
        directory.with_name("away").rename(directory)
        await tree.finish_interrupted()
        assert (await read(store, tree, bucket, "d/k"))[1] == b"old"
        assert await tree.find(bucket, "new") is None
        await put(tree, bucket, "x//y", b"new")
        assert (await read(store, tree, bucket, "x//y"))[1] == b"new"
        assert staged(settings) == []


async def test_a_bucket_that_is_made_while_the_last_one_of_its_name_goes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as (store, tree, bucket):
        directory = tree.files.root / "bucket"
        remove, make = tree.files.remove_bucket, store.index.create_bucket
        made: list[Bucket] = []

        async def made_first(name: str) -> bool:
            made.append(await buckets.create_bucket(store, name, "owner", "r", 10))
            return await remove(name)

        async def removed_first(*arguments: Any) -> Bucket:
            directory.rmdir()
            return await make(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(tree.files, "remove_bucket", made_first)
            await buckets.delete_bucket(store, bucket)
        await put(tree, made[0], "k", b"new")
        await tree.delete(made[0], "k", None, None, {})
        await buckets.delete_bucket(store, made[0])
        with monkeypatch.context() as patch:
            patch.setattr(store.index, "create_bucket", removed_first)
            made.append(await buckets.create_bucket(store, "bucket", "owner", "r", 10))
        await put(tree, made[1], "k", b"new")


async def test_what_cannot_be_settled_keeps_nothing_else_waiting(settings: Settings) -> None:
    async with opened(settings) as (store, tree, bucket):
        other = await buckets.create_bucket(store, "other", "owner", "r", 10)
        await put(tree, bucket, "k", b"old")
        await put(tree, other, "k", b"old")
        whole = tree.files.publish
        for each in (bucket, other):
            tree.files.publish = failing(whole, StoreFailed("EIO"), after=True)  # type: ignore[method-assign]
            with pytest.raises(StoreUnavailable):
                await put(tree, each, "k", b"new")
        directory = tree.files.root / "bucket"
        directory.rename(directory.with_name("away"))
        with pytest.raises(StoreUnavailable):
            await tree.finish_interrupted()
        assert await read(store, tree, other, "k") == (md5(b"new"), b"new")
        directory.with_name("away").rename(directory)
        assert await tree.finish_interrupted() == 1
        assert await read(store, tree, bucket, "k") == (md5(b"new"), b"new")


async def test_hashes_of_a_file_that_goes_on_changing(settings: Settings) -> None:
    async with opened(settings) as (store, tree, bucket):
        path = tree.files.root / "bucket" / "k"
        path.write_bytes(b"one")
        assert await tree.find(bucket, "k") is not None
        path.write_bytes(b"another")
        jobs = PlainFileScanner(store, tree, 0)
        await jobs.run_once()
        await jobs.run_once()
        assert await read(store, tree, bucket, "k") == (md5(b"another"), b"another")
        assert await tree.index.unhashed(0, 10) == []
        path.unlink()
        path.write_bytes(b"gone soon")
        assert await tree.find(bucket, "k") is not None
        path.unlink()
        await jobs.run_once()
        assert await tree.find(bucket, "k") is None
        await jobs.run_once()
        assert await tree.index.unhashed(0, 10) == []


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("data:x/y\r\nInjected: 1,", reads.DEFAULT_TYPE),
        ("data:text/html,.txt", "text/plain"),
        ("data:\u20ac/\u20ac,", reads.DEFAULT_TYPE),
        ("http:/[x/page.html", "text/html"),
        ("d/page.html", "text/html"),
        ("page.html/", reads.DEFAULT_TYPE),
        ("//[x", reads.DEFAULT_TYPE),
    ],
)
def test_the_type_of_a_file_is_told_by_its_extension_alone(key: str, kind: str) -> None:
    """Names that look like URLs say nothing of it: that of `data:` could be no header, or any type."""
    assert reads.content_type(key) == kind
