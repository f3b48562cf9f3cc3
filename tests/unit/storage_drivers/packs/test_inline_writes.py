"""Small groups that a relaxed store writes on the event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable

import pytest

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import StoreFull
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.packs import writer
from sluice_s3.storage_drivers.probing import trials
from tests.unit.storage_drivers.conftest import HastyEfs, LocalDriver, MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book

pytestmark = pytest.mark.disk  # a write that may not wait (RWF_NOWAIT) is none of tmpfs

WRITE = "sluice_s3.storage_drivers.packs.writer.write_buffers"


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def appends(make_driver: MakeDriver, book: Book) -> Appends:
    driver: ObjectsDriver = await make_driver(
        durability=Durability.RELAXED, pack_threshold=writer.INLINE_BYTES, pack_size=4 << 20
    )
    driver.open_packs(book)
    return Appends(driver)


@pytest.fixture
def wrote_here(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[bool]]:
    """For each write since the last call, whether it was on the event loop."""
    threads: list[int] = []
    real = writer.write_buffers

    def write(*arguments: object) -> None:
        threads.append(threading.get_ident())
        real(*arguments)  # type: ignore[arg-type]

    def take() -> list[bool]:
        found = [thread == threading.main_thread().ident for thread in threads]
        threads.clear()
        return found

    monkeypatch.setattr(WRITE, write)
    return take


async def is_read_back(appends: Appends, body: bytes) -> None:
    (entry,) = await appends.put(body)
    assert entry.error is None
    assert await appends.driver.read(entry.locator, 0, len(body)) == body


@pytest.mark.parametrize("driver_class", [LocalDriver])
async def test_the_thread_opens_packs_and_writes_large_groups(
    appends: Appends, wrote_here: Callable[[], list[bool]]
) -> None:
    await is_read_back(appends, b"opens the pack")
    assert wrote_here() == [False]
    await is_read_back(appends, os.urandom(4096))
    assert wrote_here() == [True]
    half = os.urandom(writer.INLINE_BYTES // 2 + 1)
    assert [entry.error for entry in await appends.put(half, half)] == [None, None]
    assert True not in wrote_here()


@pytest.mark.parametrize("driver_class", [LocalDriver, HastyEfs])
async def test_only_mounts_that_answer_at_once(
    appends: Appends, wrote_here: Callable[[], list[bool]], driver_class: type[ObjectsDriver]
) -> None:
    await is_read_back(appends, b"opens the pack")
    await is_read_back(appends, b"more")
    assert wrote_here() == [False, driver_class is LocalDriver]


@pytest.mark.parametrize("driver_class", [LocalDriver])
async def test_after_a_slow_write_the_thread_writes(
    appends: Appends, wrote_here: Callable[[], list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SLOW_PAUSE_SECONDS", 0.2)
    await is_read_back(appends, b"opens the pack")
    noted = writer.write_buffers

    def slow(*arguments: object) -> None:
        noted(*arguments)  # type: ignore[arg-type]
        time.sleep(writer.SLOW_SECONDS * 1.2)

    monkeypatch.setattr(WRITE, slow)
    await is_read_back(appends, b"slow")
    monkeypatch.setattr(WRITE, noted)
    await is_read_back(appends, b"in the thread")
    await asyncio.sleep(0.25)
    await is_read_back(appends, b"here again")
    assert wrote_here() == [False, True, False, True]


@pytest.mark.parametrize("driver_class", [LocalDriver])
async def test_a_failed_write_seals_the_pack(appends: Appends, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    await is_read_back(appends, b"opens the pack")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as broken:
        broken.setattr(WRITE, refuse)
        entries = await appends.put(b"one", b"two")
    assert [type(entry.error) for entry in entries] == [StoreFull, StoreFull]
    await is_read_back(appends, b"in another pack")
    assert book.opened == 0x102


@pytest.mark.parametrize("driver_class", [LocalDriver])
async def test_a_refused_body_fails_alone(appends: Appends) -> None:
    await is_read_back(appends, b"opens the pack")
    refused, good = await appends.entry(b"bad", ValueError("its hash")), await appends.entry(b"good")
    appends.driver.append(refused)
    appends.driver.append(good)
    done = [await appends.next() for _ in range(2)]
    assert {entry.blob_id: type(entry.error) for entry in done} == {
        refused.blob_id: ValueError,
        good.blob_id: type(None),
    }


@pytest.mark.parametrize("driver_class", [LocalDriver])
@pytest.mark.parametrize("read_back", [False, True])
async def test_a_mount_that_is_not_trusted(
    make_driver: MakeDriver,
    book: Book,
    monkeypatch: pytest.MonkeyPatch,
    wrote_here: Callable[[], list[bool]],
    read_back: bool,
) -> None:
    """The probe saw no reads without waiting, as on NFS; or every write is read again."""
    if not read_back:
        monkeypatch.setitem(trials.CHECKS, trials.Capability.NOWAIT, lambda _: (False, "as NFS and FUSE"))
    driver = await make_driver(durability=Durability.RELAXED, pack_threshold=4096, read_back=read_back)
    driver.open_packs(book)
    appends = Appends(driver)
    await is_read_back(appends, b"opens the pack")
    await is_read_back(appends, b"more")
    assert wrote_here() == [False, False]
