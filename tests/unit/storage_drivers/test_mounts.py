"""Drivers on mounts that are not a local disk: what a probe says of them, faults at every step, a power cut, a hang."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sluice_s3.loadtests.mounts import Mount
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.blobs.footer import CHUNK
from sluice_s3.storage_drivers.efs import EfsDriver
from sluice_s3.storage_drivers.errors import DriverError, ReadOnlyStore, StoreFailed, StoreFull, StoreUnfit
from sluice_s3.storage_drivers.fuse import FuseDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.probing.probe import measure, refusal_reason, run_with_timeout
from sluice_s3.storage_drivers.probing.trials import Capability
from tests.unit.storage_drivers.conftest import MakeMount
from tests.unit.storage_drivers.packs.test_packs import Appends, Book
from tests.unit.storage_drivers.tools import Pieces, content, split, stored

pytestmark = pytest.mark.slow

BODY = os.urandom(3 * CHUNK + 5)


@asynccontextmanager
async def running(driver_class: type[ObjectsDriver], mount: Mount, **settings: Any) -> AsyncIterator[ObjectsDriver]:
    driver = driver_class(mount.path / "store", threads=8, **settings)
    try:
        await driver.start()
        yield driver
    finally:
        await driver.close()


async def put(driver: ObjectsDriver, blob_id: int = 1) -> str:
    return await driver.put(blob_id, Pieces(*split(BODY, [CHUNK] * 3)))


def test_what_zdbfs_does(make_mount: MakeMount) -> None:
    mount = make_mount(personality="zdbfs")
    found = measure(mount.path)
    lacks = {trial.ability for trial in found.trials if trial.works is False}
    # what other tests remove meanwhile, beside what this one writes, may hide that the space follows
    assert lacks - {Capability.FREE_SPACE} == {
        Capability.NOWAIT,
        Capability.PUNCH,
        Capability.FALLOCATE,
        Capability.TMPFILE,
        Capability.XATTR,
        Capability.READ_AFTER_UNLINK,
        Capability.RMDIR_REFUSES,
        Capability.TRUNCATE_CLEARS,
        Capability.MTIME,
    }
    assert refusal_reason(found, Durability.FULL) is None
    assert found.mount.driver == "fuse"
    assert list(mount.backing.iterdir()) == []


def test_what_nfs_does(make_mount: MakeMount) -> None:
    mount = make_mount(personality="nfs")
    found = measure(mount.path)
    for ability in (Capability.RMDIR_REFUSES, Capability.READ_AFTER_UNLINK, Capability.RENAME_OVER, Capability.LINK):
        assert found.can(ability)
    for ability in (Capability.NOWAIT, Capability.PUNCH, Capability.XATTR):
        assert not found.can(ability)
    assert list(mount.backing.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "act", "kind"),
    [("fsync", "EIO", "durability"), ("fsyncdir", "EIO", "durability"), ("read", "EIO", "error")],
)
async def test_a_mount_that_is_refused(make_mount: MakeMount, call: str, act: str, kind: str) -> None:
    mount = make_mount(personality="nfs", cached=False)
    async with running(EfsDriver, mount):
        pass
    mount.fault(call, act, "/store/probe*", times=None)
    with pytest.raises(StoreUnfit) as caught:
        async with running(EfsDriver, mount):
            pass
    assert caught.value.kind == kind
    mount.clear()
    async with running(EfsDriver, mount) as driver:
        assert await content(driver, await put(driver), 0, len(BODY)) == BODY


async def test_a_mount_that_hangs(make_mount: MakeMount, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = make_mount(personality="nfs")
    async with running(EfsDriver, mount):
        pass
    mount.fault("fsync", "hang", times=None)
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.objects.driver.run_with_timeout", lambda *args: run_with_timeout(*args, timeout=0.5)
    )
    with pytest.raises(StoreUnfit, match="fsync") as caught:
        async with running(EfsDriver, mount):
            pass
    assert caught.value.kind == "no-answer"


@pytest.mark.parametrize("driver_class", [EfsDriver, FuseDriver])
@pytest.mark.parametrize(
    ("call", "act", "expected"),
    [
        ("create", "EIO", StoreFailed),
        ("create", "ENOSPC", StoreFull),
        ("write", "EDQUOT", StoreFull),
        ("write", "EIO", StoreFailed),
        ("fsync", "EIO", StoreFailed),
        ("close", "ENOSPC", StoreFull),
        ("fsyncdir", "EIO", StoreFailed),
        ("change", "EROFS", ReadOnlyStore),
    ],
)
async def test_a_fault_at_every_step_of_put(
    make_mount: MakeMount, driver_class: type[ObjectsDriver], call: str, act: str, expected: type[DriverError]
) -> None:
    mount = make_mount(personality="nfs" if driver_class is EfsDriver else "zdbfs")
    async with running(driver_class, mount) as driver:
        before = await put(driver, 0x10)
        failed = 0
        for nth in (1, 2, 3):
            fault = mount.fault(call, act, "/store/data*", nth=nth)
            (outcome,) = await asyncio.gather(put(driver, nth), return_exceptions=True)
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, expected)
                assert mount.struck(fault)
                failed += 1
            else:  # it did not need so many calls, or only the rest of a write(2) was refused, and then taken
                assert await content(driver, outcome, 0, len(BODY)) == BODY
                await driver.discard(outcome)
            mount.clear()
            if call != "change":  # else unlinking was refused as well
                assert {name[:16] for name in stored(mount.backing / "store")} == {f"{0x10:016x}"}
        assert failed
        assert await content(driver, before, 0, len(BODY)) == BODY


@pytest.mark.parametrize("driver_class", [EfsDriver, FuseDriver])
@pytest.mark.parametrize(
    ("call", "act"), [("write", "short"), ("read", "short"), ("open", "ESTALE"), ("read", "ESTALE")]
)
async def test_what_a_driver_gets_over(
    make_mount: MakeMount, driver_class: type[ObjectsDriver], call: str, act: str
) -> None:
    mount = make_mount(personality="nfs", cached=False)
    async with running(driver_class, mount) as driver:
        if call == "write":
            mount.fault(call, act, "/store/data*", nth=2)
        locator = await put(driver)
        if call != "write":
            mount.fault(call, act, "/store/data*")
        assert await content(driver, locator, 0, len(BODY)) == BODY


async def test_nothing_acknowledged_is_lost_by_a_power_cut(make_mount: MakeMount) -> None:
    mount = make_mount(personality="nfs", tracked=True)
    async with running(EfsDriver, mount, pack_threshold=1000) as driver:
        driver.open_packs(Book())
        entries = await Appends(driver).put(*(b"small %d" % number for number in range(20)))
        large = [await put(driver, blob_id) for blob_id in (0x20, 0xFE)]
        undone = Pieces(*split(BODY, [CHUNK] * 3), ValueError("the client goes"))
        undone.size = len(BODY) + 1
        with pytest.raises(ValueError, match="goes"):
            await driver.put(0x30, undone)
    mount.crash()
    async with running(EfsDriver, mount) as driver:
        for number, entry in enumerate(entries):
            body = b"small %d" % number
            assert entry.error is None
            assert await content(driver, entry.locator, 0, len(body)) == body
        for locator in large:
            assert await content(driver, locator, 0, len(BODY)) == BODY


@pytest.mark.parametrize("way", ["store", "a/b/store"])
async def test_a_new_store_outlives_a_power_cut_with_all_directories_above_it(make_mount: MakeMount, way: str) -> None:
    mount = make_mount(personality="nfs", tracked=True)
    if way != "store":
        (mount.path / "a").mkdir()  # as by a start that crashed, before it was synced
    driver = EfsDriver(mount.path / way, threads=8)
    try:
        await driver.start()
        locator = await put(driver)
    finally:
        await driver.close()
    mount.crash()
    driver = EfsDriver(mount.path / way, threads=8, create=False)
    try:
        await driver.start()
        assert await content(driver, locator, 0, len(BODY)) == BODY
    finally:
        await driver.close()


@pytest.mark.parametrize(("driver_class", "personality"), [(EfsDriver, "nfs"), (FuseDriver, "zdbfs")])
async def test_readers_while_others_are_discarded(
    make_mount: MakeMount, driver_class: type[ObjectsDriver], personality: str
) -> None:
    """What MinIO and Versity lost on zdbfs: neighbours of what was deleted (`rmdir` that takes all)."""
    mount = make_mount(personality=personality)
    async with running(driver_class, mount) as driver:
        locators = [await put(driver, blob_id) for blob_id in range(1, 25)]
        gone, kept = locators[::2], locators[1::2]

        async def discard() -> None:
            for locator in gone[:6]:
                await driver.discard(locator)
            await driver.discard_many(gone[6:])

        async def read() -> None:
            for locator in kept:
                assert await content(driver, locator, 0, len(BODY)) == BODY

        await asyncio.gather(discard(), read(), read())
        assert sorted([locator async for locator, _ in driver.walk()]) == kept


async def test_an_unmounted_path_is_no_empty_store(make_mount: MakeMount) -> None:
    mount = make_mount(personality="nfs")
    async with running(EfsDriver, mount):
        pass
    mount.stop()
    with pytest.raises(StoreFailed, match="mount"):
        async with running(EfsDriver, mount, create=False):
            pass
    assert os.listdir(mount.path) == []
    mount.start()
    async with running(EfsDriver, mount, create=False) as driver:
        assert driver.identity is not None
