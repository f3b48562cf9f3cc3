"""Backups of gateways of other kinds: an index in Postgres, plain files, several stores."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import DomainError, StoreUnavailable
from sluice_s3.app.index import open_index
from sluice_s3.app.jobs.backup import create, restore
from sluice_s3.app.jobs.backup.check import Report, check
from sluice_s3.app.jobs.backup.create import Summary
from sluice_s3.app.jobs.backup.directory import BackupDirectory
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from sluice_s3.app.store.stores import make_stores
from sluice_s3.storage_drivers import identity
from tests.support import postgres
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import Past, writing
from tests.unit.jobs.test_rebuild import bodies
from tests.unit.store import test_tree as plain
from tests.unit.store.site import put

pytestmark = pytest.mark.slow


def quiet(*_: object) -> None:
    """Show no progress."""


async def back_up(settings: Settings, tmp_path: Path) -> Summary:
    return await create.create(settings, BackupDirectory(tmp_path / "backups"), keys=False, progress=quiet)


async def restored(settings: Settings, tmp_path: Path) -> Report:
    work = restore.Restore(settings, BackupDirectory(tmp_path / "backups"), None, quiet)
    report = await asyncio.to_thread(work.run)
    await asyncio.to_thread(prepare, settings)
    return report


def rows(found: dict[Any, tuple[Any, int]]) -> dict[Any, Any]:
    return {place: (version._replace(body=""), digest) for place, (version, digest) in found.items()}


@pytest.fixture
def urls() -> list[str]:
    return [postgres.server().fresh() for _ in range(2)]


async def test_an_index_in_postgres(urls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings(tmp_path / "source", index=urls[0], runtime_dir=tmp_path / "run")
    await asyncio.to_thread(prepare, settings)
    async with writing(settings) as store:
        past = Past(store, seed=3, keys=30)
        await past.begin()
        await past.run(100)
        before = rows(await bodies(store))
        assert (await back_up(settings, tmp_path)).faults == []
    assert check(BackupDirectory(tmp_path / "backups"), None, quiet).whole
    to_sqlite = make_settings(tmp_path / "sqlite")
    to_postgres = make_settings(tmp_path / "postgres", index=urls[1], runtime_dir=tmp_path / "other run")
    with monkeypatch.context() as patched:
        patched.setattr("sluice_s3.storage_drivers.identity.replace_identity", after(2))
        with pytest.raises(ZeroDivisionError):
            await restored(to_postgres, tmp_path)
    for new in (to_sqlite, to_postgres):
        assert (await restored(new, tmp_path)).whole
        async with writing(new) as store:
            assert rows(await bodies(store)) == before
            bucket = await store.index.bucket("once")
            assert bucket is not None
            await put(store, bucket, "later", b"it goes on")
    used = make_settings(tmp_path / "third", index=urls[0], runtime_dir=tmp_path / "third run")
    with pytest.raises(StoreUnavailable, match="in use"):
        await restored(used, tmp_path)


def after(calls: int) -> Any:
    """The function that replaces identities, which fails at that call."""
    from sluice_s3.storage_drivers import identity

    replace, left = identity.replace_identity, iter(range(calls - 1))

    def call(*arguments: Any) -> None:
        if next(left, None) is None:
            raise ZeroDivisionError
        replace(*arguments)

    return call


def plain_settings(path: Path) -> Settings:
    return make_settings(path, stores={"default": {"path": path / "tree", "layout": "tree"}})


def fail_for_want_of_room(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = plain_settings(tmp_path / "source")
    await asyncio.to_thread(prepare, settings)
    async with plain.opened(settings) as (_, tree, bucket):
        for key in ("kept", "a/deep/er", "a//b", "written over", "deleted", "by others"):
            await plain.put(tree, bucket, key, key.encode() * 100)
        with monkeypatch.context() as full:
            full.setattr(BackupDirectory, "_write", staticmethod(fail_for_want_of_room))
            with pytest.raises(OSError, match="No space left"):  # not: the files are missing
                await back_up(settings, tmp_path)
        first = await back_up(settings, tmp_path)
        assert (await back_up(settings, tmp_path)).copied_files == 0
        copy = create._Creation._copy

        def changed(self: Any, *arguments: Any) -> Any:
            for key in ("by others", "new by others"):
                (tmp_path / "source/tree/bucket" / key).write_bytes(b"changed")
            for key in ("deleted", "new deleted"):
                (tmp_path / "source/tree/bucket" / key).unlink()
            return copy(self, *arguments)

        for key in ("written over", "new by others", "new deleted"):
            await plain.put(tree, bucket, key, b"again")
        monkeypatch.setattr(create._Creation, "_copy", changed)
        second = await back_up(settings, tmp_path)
    assert (first.files, first.changed, second.copied_files, second.changed, second.faults) == (6, 0, 2, 1, [])
    assert check(BackupDirectory(tmp_path / "backups"), None, quiet).whole
    new = plain_settings(tmp_path / "restored")
    report = await restored(new, tmp_path)
    assert (report.whole, report.files) == (True, 7)
    root = new.named_stores["default"].path
    assert root is not None
    assert (root / "bucket/a/deep/er").read_bytes() == b"a/deep/er" * 100
    assert os.stat(root / "bucket/kept").st_mtime_ns == os.stat(tmp_path / "source/tree/bucket/kept").st_mtime_ns
    async with plain.opened(new) as (store, tree, bucket):
        found = await tree.find(bucket, "kept")
        assert found is not None
        unscanned = found.seq
        for key in ("kept", "a/deep/er", "a//b"):
            assert (await plain.read(store, tree, bucket, key))[1] == key.encode() * 100
        assert (await plain.read(store, tree, bucket, "written over"))[1] == b"again"
        await PlainFileScanner(store, tree, 300).run_once()
        again = await tree.find(bucket, "kept")
        assert again is not None
        assert again.seq == unscanned, "not taken for another program's file"
        for key, body in (
            ("by others", b"by others" * 100),
            ("deleted", b"deleted" * 100),
            ("new by others", b"changed"),
        ):
            assert (await plain.read(store, tree, bucket, key))[1] == body
        assert await tree.find(bucket, "new deleted") is None


def two_stores(path: Path) -> Settings:
    stores = {"fast": {"path": path / "fast"}, "slow": {"path": path / "slow", "pack_threshold": 0}}
    return make_settings(path, stores=stores, index=f"sqlite:///{path}/index/sluice.db")


async def test_several_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = two_stores(tmp_path / "source")
    await asyncio.to_thread(prepare, settings)
    contents = {name: os.urandom(5000) for name in ("fast", "slow")}
    async with plain_opened(settings) as stores:
        for name, content in contents.items():
            bucket = await stores["fast"].index.create_bucket(name, "owner", "us-east-1", 10, name)
            await put(stores[name], bucket, "k", content)
        await back_up(settings, tmp_path)
    with pytest.raises(StoreUnavailable, match="the settings do not name"):
        await restored(make_settings(tmp_path / "one"), tmp_path)
    new = two_stores(tmp_path / "restored")
    final: list[Path] = []
    replace = identity.replace_identity

    def die_at_the_second(root: Path, new: identity.Identity, layout: str = identity.LAYOUT) -> None:
        final.extend([root] * (layout == identity.LAYOUT))
        if len(final) == 2:
            raise ZeroDivisionError
        replace(root, new, layout)

    with monkeypatch.context() as patched:
        patched.setattr(identity, "replace_identity", die_at_the_second)
        with pytest.raises(ZeroDivisionError):
            await restored(new, tmp_path)
    assert len({path.name for path in final}) == 2
    assert (await restored(new, tmp_path)).whole
    async with plain_opened(new) as stores:
        found = await bodies(stores["fast"])
        assert {digest for _, digest in found.values()} <= {hash(content) for content in contents.values()}
        for name in contents:
            bucket = await stores[name].index.bucket(name)
            assert bucket.store == name
    (tmp_path / "source/slow/store.json").rename(tmp_path / "elsewhere")
    with pytest.raises(DomainError, match="is it mounted"):
        await back_up(settings, tmp_path)


async def test_a_store_that_the_gateway_left_is_not_asked_for(tmp_path: Path) -> None:
    both = two_stores(tmp_path / "source")
    await asyncio.to_thread(prepare, both)
    one = both.model_copy(update={"stores": {"fast": both.stores["fast"]}})
    one.__dict__.pop("named_stores", None)
    await back_up(one, tmp_path)
    new = two_stores(tmp_path / "restored")
    new = new.model_copy(update={"stores": {"fast": new.stores["fast"]}})
    new.__dict__.pop("named_stores", None)
    assert (await restored(new, tmp_path)).whole


class plain_opened:
    """All stores of settings, with a writer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def __aenter__(self) -> Any:
        self._index = open_index(self._settings)
        await self._index.start()
        self._store = make_stores(self._index, self._settings)
        for one in self._store.all.values():
            await one.start()
        return self._store.all

    async def __aexit__(self, *_: object) -> None:
        for one in self._store.all.values():
            await one.close()
        await self._index.close()
