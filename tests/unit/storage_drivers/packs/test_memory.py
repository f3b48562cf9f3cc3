"""Records in memory: never other bytes than the mount has, never more of them than was allowed."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.packs.reader import RecordLocation
from sluice_s3.storage_drivers.packs.record_cache import GROUP, GROWING_PACK_SECONDS, RecordCache
from tests.unit.storage_drivers.conftest import HastyEfs, HastyFuse, MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book, packs
from tests.unit.storage_drivers.tools import content

pytestmark = pytest.mark.slow

BUDGET = 2 << 20
LIMIT = 100_000


@pytest.fixture(params=[HastyEfs, HastyFuse], ids=["efs", "fuse"])
def driver_class(request: pytest.FixtureRequest) -> type[ObjectsDriver]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
async def driver(make_driver: MakeDriver) -> ObjectsDriver:
    driver = await make_driver(pack_threshold=LIMIT, read_cache=BUDGET)
    driver.open_packs(Book())
    return driver


@pytest.fixture
def reads(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The windows that were read so far: pack and offset."""
    seen: list[tuple[int, int]] = []
    stretch = driver._packs.stretch

    def counted(pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        seen.append((pack_id, offset))
        return stretch(pack_id, offset, length)

    monkeypatch.setattr(driver._packs, "stretch", counted)
    return seen


def memory_of(driver: ObjectsDriver) -> RecordCache:
    assert driver._memory is not None
    return driver._memory


async def put_each(driver: ObjectsDriver, *bodies: bytes) -> list[str]:
    """One after the other, so that they lie side by side in one pack."""
    appends = Appends(driver)
    return [(await appends.put(body))[0].locator for body in bodies]


def spoil(root: Path, locator: str) -> None:
    """Flip a bit at the end of a record."""
    pack, offset, total = (int(number, 16) for number in locator[2:].split(".")[:3])
    (path,) = [path for path in packs(root) if int(path.stem, 16) == pack]
    with path.open("r+b") as file:
        file.seek(offset + total - 1)
        (byte,) = file.read(1)
        file.seek(offset + total - 1)
        file.write(bytes([byte ^ 1]))


async def test_what_was_read_is_there_at_once(driver: ObjectsDriver, reads: list[tuple[int, int]]) -> None:
    (locator,) = await put_each(driver, b"a body")
    assert driver.try_read(locator, 0, 6) is None
    assert await driver.read(locator, 0, 6) == b"a body"
    assert driver.try_read(locator, 0, 6) == b"a body"
    assert driver.try_read(locator, 2, 3) == b"bod"
    assert await driver.read(locator, 2, 4) == b"body"
    assert await content(driver, locator, 0, 6) == b"a body"
    assert len(reads) == 1


async def test_those_who_want_the_same_share_its_reading(
    driver: ObjectsDriver, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.objects.caching_driver.MAX_READ_AHEAD", 0)
    (locator,) = await put_each(driver, b"body")
    assert await asyncio.gather(*(driver.read(locator, 0, 4) for _ in range(9))) == [b"body"] * 9
    assert len(reads) == 1


async def test_neighbours_come_along(driver: ObjectsDriver, reads: list[tuple[int, int]]) -> None:
    bodies = [os.urandom(3000) for _ in range(20)]
    locators = await put_each(driver, *bodies)
    assert await driver.read(locators[7], 0, 3000) == bodies[7]
    assert [driver.try_read(locator, 0, 3000) for locator in locators] == bodies
    assert len(reads) == 1


async def test_a_record_in_two_windows(driver: ObjectsDriver, reads: list[tuple[int, int]]) -> None:
    bodies = [os.urandom(LIMIT) for _ in range(5)]
    locators = await put_each(driver, *bodies)
    for locator, body in zip(locators, bodies, strict=True):
        assert await driver.read(locator, 0, LIMIT) == body
        assert driver.try_read(locator, LIMIT - 10, 10) == body[-10:]
    assert sorted(reads) == sorted(set(reads)), "no window was read twice"


async def test_those_who_want_a_window_share_it(driver: ObjectsDriver, reads: list[tuple[int, int]]) -> None:
    bodies = [os.urandom(2000) for _ in range(20)]
    locators = await put_each(driver, *bodies)
    assert await asyncio.gather(*(driver.read(locator, 0, 2000) for locator in locators)) == bodies
    assert len(reads) == 1


async def test_who_gives_up_takes_nothing_from_the_others(
    driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    locators = await put_each(driver, b"one", b"two")
    stretch, go = driver._packs.stretch, threading.Event()

    def late(pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        go.wait(10)
        return stretch(pack_id, offset, length)

    monkeypatch.setattr(driver._packs, "stretch", late)
    first, second = (asyncio.ensure_future(driver.read(locator, 0, 3)) for locator in locators)
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0)
    go.set()
    assert await second == b"two"
    assert first.cancelled()


async def test_what_is_written_after_its_window_was_read(driver: ObjectsDriver) -> None:
    locators: list[str] = []
    for number in range(30):
        locators += await put_each(driver, b"%d" % number)
        assert await driver.read(locators[-1], 0, len(b"%d" % number)) == b"%d" % number


async def test_a_pack_that_grows_is_read_by_records(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    stretch = driver._packs.stretch

    def counted(pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        lengths.append(length)
        return stretch(pack_id, offset, length)

    monkeypatch.setattr(driver._packs, "stretch", counted)
    for number in range(20):
        (locator,) = await put_each(driver, b"%d" % number)
        assert await driver.read(locator, 0, len(b"%d" % number)) == b"%d" % number
    assert sum(length > 1000 for length in lengths) <= 2
    assert len(lengths) <= 21
    memory_of(driver)._growing[0x101] -= GROWING_PACK_SECONDS
    assert memory_of(driver).around(RecordLocation(0x101, 0, 100, 1)), "not for ever"


async def test_damage_is_told(driver: ObjectsDriver, root: Path) -> None:
    good, bad = await put_each(driver, b"good", b"bad!")
    spoil(root, bad)
    assert await driver.read(good, 0, 4) == b"good"
    assert driver.try_read(bad, 0, 4) is None
    with pytest.raises(BlobDamaged):
        await driver.read(bad, 0, 4)
    assert await driver.read(good, 0, 4) == b"good"


async def test_damage_of_a_moment_is_read_over(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    (locator,) = await put_each(driver, b"body")
    stretch = driver._packs.stretch

    def wrong(pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        piece, salt = stretch(pack_id, offset, length)
        return bytes(len(piece)), salt

    monkeypatch.setattr(driver._packs, "stretch", wrong)
    assert await driver.read(locator, 0, 4) == b"body"
    assert driver.try_read(locator, 0, 4) is None, "zeros are not believed"


async def test_damage_in_memory_is_not_believed(driver: ObjectsDriver) -> None:
    (locator,) = await put_each(driver, b"body")
    await driver.read(locator, 0, 4)
    shared = memory_of(driver)._memory
    shared[shared.find(b"body")] ^= 1
    assert driver.try_read(locator, 0, 4) is None
    assert await driver.read(locator, 0, 4) == b"body"


async def test_reads_past_the_end(driver: ObjectsDriver) -> None:
    (locator,) = await put_each(driver, b"body")
    for _ in range(2):
        with pytest.raises(BlobDamaged):
            await driver.read(locator, 0, 5)
        assert driver.try_read(locator, 0, 5) is None
        assert await driver.read(locator, 0, 4) == b"body"


async def test_a_pack_that_is_not_there(driver: ObjectsDriver) -> None:
    with pytest.raises(BlobMissing):
        await driver.read("p:999.40.50.1", 0, 4)
    assert driver.try_read("p:999.40.50.1", 0, 4) is None


@pytest.mark.parametrize("how", ["whole", "punched"])
async def test_nothing_else_is_ever_read_by_a_discarded_locator(driver: ObjectsDriver, how: str) -> None:
    gone, other = await put_each(driver, b"gone", b"also")
    for locator in (gone, other):
        await driver.read(locator, 0, 4)
    pack, _ = driver.packed(gone) or (0, 0)
    await driver.discard_many([driver.pack_locator(pack)] if how == "whole" else [gone])
    newer = await put_each(driver, *(b"%04d" % number for number in range(20))) if how == "punched" else []
    assert [await driver.read(locator, 0, 4) for locator in newer] == [b"%04d" % number for number in range(20)][
        : len(newer)
    ]
    assert driver.try_read(gone, 0, 4) in (b"gone", None), "no row references it"


async def test_a_driver_that_gave_up_leaves_what_is_shared(driver: ObjectsDriver) -> None:
    (locator,) = await put_each(driver, b"body")
    await driver.read(locator, 0, 4)
    driver.give_up(BlobMissing("the mount"))
    assert driver.try_read(locator, 0, 4) == b"body"


async def test_what_was_moved_is_read_where_it_is(driver: ObjectsDriver) -> None:
    (locator,) = await put_each(driver, b"body")
    await driver.read(locator, 0, 4)
    (moved,) = (await driver.move([locator])).values()
    pack, _ = driver.packed(locator) or (0, 0)
    await driver.discard_many([driver.pack_locator(pack)])
    assert driver.try_read(locator, 0, 4) in (b"body", None)
    assert await driver.read(moved, 0, 4) == b"body"
    assert driver.try_read(moved, 0, 4) == b"body"


async def test_what_another_gateway_moves_and_discards(make_driver: MakeDriver) -> None:
    """Places are never used again: what one gateway remembers is never read for what another wrote since."""
    book, seen = Book(), set()
    one, other = [await make_driver(pack_threshold=LIMIT, read_cache=BUDGET) for _ in range(2)]
    appends = Appends(one), Appends(other)
    for writer, first in zip(appends, (0, 1000), strict=True):
        writer.driver.open_packs(book)
        writer.last = first
    for _ in range(5):
        bodies = [os.urandom(3000) for _ in range(12)]
        locators = [(await appends[0].put(body))[0].locator for body in bodies]
        for locator, body in zip(locators, bodies, strict=True):
            assert await one.read(locator, 0, 3000) == body
        moved = await other.move(locators)
        pack, _ = one.packed(locators[0]) or (0, 0)
        await one.close_packs()
        one.open_packs(book)
        await other.discard_many([other.pack_locator(pack)])
        newer = [os.urandom(3000) for _ in range(12)]
        written = [(await appends[1].put(body))[0].locator for body in newer]
        assert seen.isdisjoint({*locators, *moved.values(), *written})
        seen.update(locators, moved.values(), written)
        for locator, new, body, also in zip(locators, written, bodies, newer, strict=True):
            assert one.try_read(locator, 0, 3000) in (body, None)
            assert await one.read(moved[locator], 0, 3000) == body
            assert await one.read(new, 0, 3000) == also
            assert await one.read(new, 0, 3000) == also
        await one.close_unlinked()


async def test_it_is_bounded(make_driver: MakeDriver) -> None:
    budget = 600_000
    driver = await make_driver(pack_threshold=LIMIT, read_cache=budget)
    driver.open_packs(Book())
    memory, bodies = memory_of(driver), [os.urandom(size) for size in (10, 40_000, LIMIT, 3000) * 10]
    locators = await put_each(driver, *bodies)
    for _ in range(2):
        for locator, body in zip(locators, bodies, strict=True):
            assert await driver.read(locator, 0, len(body)) == body
            assert memory.cached_bytes <= budget
    assert driver.cached_bytes > budget // 2
    assert len(memory._memory) == budget


async def test_what_is_asked_for_stays(make_driver: MakeDriver) -> None:
    driver = await make_driver(pack_threshold=LIMIT, read_cache=600_000)
    driver.open_packs(Book())
    bodies = [os.urandom(20_000) for _ in range(100)]
    locators = await put_each(driver, *bodies)
    for locator in locators:
        await driver.read(locators[0], 0, 20_000)
        await driver.read(locator, 0, 20_000)
    assert driver.try_read(locators[0], 0, 20_000) == bodies[0]
    assert driver.try_read(locators[1], 0, 20_000) is None


@pytest.mark.parametrize("most", [0, 1, GROUP])
async def test_no_more_windows_at_once_than_allowed(
    driver: ObjectsDriver, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.objects.caching_driver.MAX_READ_AHEAD", most)
    bodies = [os.urandom(LIMIT - 1) for _ in range(15)]
    locators = await put_each(driver, *bodies)
    assert await asyncio.gather(*(driver.read(locator, 0, LIMIT - 1) for locator in locators)) == bodies
    assert await asyncio.gather(*(driver.read(locators[0], 0, 5) for _ in range(5))) == [bodies[0][:5]] * 5
    assert len(reads) == 15 if most < GROUP else len(reads) < 15


async def test_workers_share_what_one_read(
    make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also what one reads of the other's packs, and never more memory than one has."""
    fd = os.memfd_create("cache")
    os.ftruncate(fd, BUDGET)
    one, other = [await make_driver(pack_threshold=LIMIT, read_cache=BUDGET, read_cache_fd=fd) for _ in range(2)]
    os.close(fd)
    one.open_packs(Book())
    bodies = [os.urandom(3000) for _ in range(20)]
    locators = await put_each(one, *bodies)
    assert [await one.read(locator, 0, 3000) for locator in locators] == bodies
    monkeypatch.setattr(other._packs, "stretch", None)
    monkeypatch.setattr(other._packs, "read", None)
    assert [other.try_read(locator, 0, 3000) for locator in locators] == bodies
    assert [await other.read(locator, 7, 50) for locator in locators] == [body[7:57] for body in bodies]
    assert other.cached_bytes == one.cached_bytes > 60_000


async def test_without_a_budget_nothing_is_kept(make_driver: MakeDriver) -> None:
    driver = await make_driver(pack_threshold=LIMIT, read_cache=0)
    assert driver.cached_bytes == 0
    driver.open_packs(Book())
    (locator,) = await put_each(driver, b"body")
    assert await driver.read(locator, 0, 4) == b"body"
    assert driver.try_read(locator, 0, 4) is None
