"""Several packs at once: where a sync takes long, and more come meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.support.waiting import eventually_async
from tests.unit.storage_drivers.conftest import HastyEfs, LocalDriver, MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book, packs

STREAMS = HastyEfs.mount_profile.streams


class Slow:
    """Syncs that end when they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.under_way = 0
        self.most = 0
        self._lock = threading.Lock()
        self._sync = os.fdatasync
        monkeypatch.setattr("sluice_s3.storage_drivers.packs.writer.os.fdatasync", self)

    def __call__(self, fd: int) -> None:
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        self.go.wait(10)
        with self._lock:
            self.under_way -= 1
        self._sync(fd)


@pytest.fixture
def driver_class() -> type[ObjectsDriver]:
    return HastyEfs


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def driver(make_driver: MakeDriver, book: Book) -> ObjectsDriver:
    driver = await make_driver(pack_threshold=4096)
    driver.open_packs(book)
    return driver


async def put_while_busy(driver: ObjectsDriver, appends: Appends, slow: Slow, count: int) -> None:
    """Append one by one, each once the last is on its way to the mount (or waits)."""
    for number in range(count):
        driver.append(await appends.entry(b"%d" % number))
        wanted = min(number + 1, STREAMS)
        await eventually_async(lambda wanted=wanted: slow.under_way >= wanted)


async def test_what_comes_during_a_sync_goes_to_another_pack(
    driver: ObjectsDriver, book: Book, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends, slow = Appends(driver), Slow(monkeypatch)
    await put_while_busy(driver, appends, slow, 3 * STREAMS)
    slow.go.set()
    found = [await appends.next() for _ in range(3 * STREAMS)]
    assert slow.most == STREAMS
    assert len(packs(root)) == STREAMS
    for entry in found:
        assert entry.error is None
        assert await driver.read(entry.locator, 0, 1) == bytes(entry.piece)[:1]
    await driver.close_packs()
    assert len(book.sealed) == STREAMS


async def test_one_after_the_other_fill_one_pack(driver: ObjectsDriver, root: Path) -> None:
    appends = Appends(driver)
    for _ in range(20):
        (entry,) = await appends.put(b"body")
        assert entry.error is None
    assert len(packs(root)) == 1


@pytest.mark.parametrize("driver_class", [LocalDriver])
async def test_a_local_disk_gets_one(driver: ObjectsDriver, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appends, slow = Appends(driver), Slow(monkeypatch)
    for number in range(20):
        driver.append(await appends.entry(b"%d" % number))
        await asyncio.sleep(0.001)
    slow.go.set()
    assert [(await appends.next()).error for _ in range(20)] == [None] * 20
    assert len(packs(root)) == 1


async def test_one_that_fails_is_its_own_packs(
    driver: ObjectsDriver, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends, slow = Appends(driver), Slow(monkeypatch)
    await put_while_busy(driver, appends, slow, 3)
    sync = slow._sync

    def failing(fd: int) -> None:
        slow._sync = sync
        raise OSError(5, "injected")

    slow._sync = failing
    slow.go.set()
    found = [await appends.next() for _ in range(3)]
    assert sorted(type(entry.error) for entry in found if entry.error) == [StoreFailed]
    (after,) = await appends.put(b"after")
    assert after.error is None
    assert await driver.read(after.locator, 0, 5) == b"after"


async def test_closed_meanwhile_all_is_written(driver: ObjectsDriver, book: Book) -> None:
    appends = Appends(driver)
    entries = [await appends.entry(os.urandom(4000)) for _ in range(100)]
    for entry in entries:
        driver.append(entry)
    await driver.close_packs()
    assert [(await appends.next()).error for _ in entries] == [None] * 100
    assert len(book.sealed) == book.opened - 0x100 > 1
    with pytest.raises(StoreFailed):
        driver.append(await appends.entry(b"late"))


async def test_given_up_all_are_told(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    appends, slow = Appends(driver), Slow(monkeypatch)
    await put_while_busy(driver, appends, slow, 4)
    driver.give_up(StoreFailed("the mount hangs"))
    assert [type((await appends.next()).error) for _ in range(4)] == [StoreFailed] * 4
    slow.go.set()


async def test_where_no_thread_can_be_started_appends_fail_and_others_go_on(
    driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the lab: such PUTs had no answer for ever."""
    appends = Appends(driver)

    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.threads.start_new_thread", refuse)
        (refused,) = await appends.put(b"nobody takes it")
        assert isinstance(refused.error, RuntimeError)
    (taken,) = await appends.put(b"a writer takes it")
    slow = Slow(monkeypatch)
    driver.append(await appends.entry(b"it waits"))
    await eventually_async(lambda: slow.under_way == 1)
    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.threads.start_new_thread", refuse)
        driver.append(await appends.entry(b"it waits for the same writer"))
        await asyncio.sleep(0)
    slow.go.set()
    found = [taken, await appends.next(), await appends.next()]
    assert [entry.error for entry in found] == [None] * 3
    assert slow.most == 1
