"""Every driver of the layout *objects* when nothing goes wrong: what is put is read, listed and discarded."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import Durability, FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed
from sluice_s3.storage_drivers.fsutil import write_all
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.unit.storage_drivers.conftest import ALL, IDS, ON_MOUNTS, MakeDriver
from tests.unit.storage_drivers.tools import Pieces, blobs, content, split, stored

MOUNTED = [pytest.param(one, marks=pytest.mark.slow) for one in ON_MOUNTS]


@pytest.fixture(params=[*((driver, "") for driver in ALL), *MOUNTED], ids=[*IDS, "efs on efs-004", "fuse on zdbfs"])
def driver_and_mount(request: pytest.FixtureRequest) -> tuple[type[ObjectsDriver], str]:
    chosen: tuple[type[ObjectsDriver], str] = request.param
    return chosen


@pytest.fixture
def driver_class(driver_and_mount: tuple[type[ObjectsDriver], str]) -> type[ObjectsDriver]:
    return driver_and_mount[0]


@pytest.fixture
def mount(driver_and_mount: tuple[type[ObjectsDriver], str]) -> str:
    return driver_and_mount[1]


async def test_put_and_read(driver: ObjectsDriver, root: Path) -> None:
    locator = await driver.put(0x1234ABCD, Pieces(b"one body"))
    assert (root / "data/cd/000000001234abcd").read_bytes().startswith(b"one body")
    assert await content(driver, locator, 0, 8) == b"one body"
    assert await content(driver, locator, 4, 2) == b"bo"


@given(
    body=st.binary(min_size=0, max_size=5000),
    cuts=st.lists(st.integers(min_value=1, max_value=1500), max_size=5),
    known=st.booleans(),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_size_in_any_pieces(driver: ObjectsDriver, body: bytes, cuts: list[int], known: bool) -> None:
    source = Pieces(*split(body, cuts))
    if not known:
        source.size = None
    locator = await driver.put(7, source)
    try:
        assert source.verified
        assert source.hash.digest() == Pieces.hash_of(body)
        assert await content(driver, locator, 0, len(body)) == body
        middle = len(body) // 2
        assert await content(driver, locator, middle, len(body) - middle) == body[middle:]
    finally:
        await driver.discard(locator)


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
async def test_pieces_may_be_any_buffer(driver: ObjectsDriver, buffer: type) -> None:
    locator = await driver.put(1, Pieces(buffer(b"first "), buffer(b"second")))
    assert await content(driver, locator, 0, 12) == b"first second"


async def test_feed_goes_past_one_hop(driver: ObjectsDriver) -> None:
    piece = os.urandom(1 << 20)
    locator = await driver.put(1, Pieces(*[piece] * 9, b"end"))
    assert await content(driver, locator, 0, 9 * len(piece) + 3) == piece * 9 + b"end"


async def test_timings_of_every_phase(driver: ObjectsDriver) -> None:
    timings = {"open": 1.0}
    await driver.put(1, Pieces(b"a", b"b"), timings)
    assert timings["open"] > 1.0
    assert timings["write"] > 0
    assert timings["sync"] > 0


async def test_an_id_is_used_once(driver: ObjectsDriver, root: Path) -> None:
    await driver.put(5, Pieces(b"first"))
    with pytest.raises(StoreFailed):
        await driver.put(5, Pieces(b"second"))
    assert (root / "data/05/0000000000000005").read_bytes().startswith(b"first")


async def test_the_next_piece_is_read_while_one_is_written(
    driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    reached = asyncio.Event()
    read_again = asyncio.run_coroutine_threadsafe

    def write(fd: int, piece: bytes) -> int:
        if bytes(piece) == b"one":  # the write of "one" ends only after the source was asked for "two"
            read_again(asyncio.wait_for(reached.wait(), 20), loop).result(30)
        return os_write(fd, piece)

    async def asked() -> None:
        reached.set()

    os_write = os.write
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.write", write)
    locator = await driver.put(1, Pieces(b"one", asked(), b"two"))
    assert await content(driver, locator, 0, 6) == b"onetwo"


async def test_discard_is_final_and_repeatable(driver: ObjectsDriver, root: Path) -> None:
    locator = await driver.put(9, Pieces(b"x"))
    await driver.discard(locator)
    await driver.discard(locator)
    assert stored(root) == []
    with pytest.raises(BlobMissing):
        await driver.read(locator, 0, 1)


async def test_discard_by_id(driver: ObjectsDriver, root: Path) -> None:
    await driver.put(9, Pieces(b"x"))
    assert await driver.discard_id(9)
    assert not await driver.discard_id(9)
    assert stored(root) == []


async def test_discard_many(driver: ObjectsDriver, root: Path) -> None:
    locators = [await driver.put(blob_id, Pieces(b"x")) for blob_id in (1, 2, 0x102)]
    await driver.put(3, Pieces(b"kept"))
    await driver.discard_many([*locators, driver.locator(99)])
    assert stored(root) == ["0000000000000003"]


async def test_what_discard_many_took_away_is_synced(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    locators = [await driver.put(blob_id, Pieces(b"x")) for blob_id in (1, 2, 0x102)]
    synced: list[str] = []
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.sync_directory", lambda path: synced.append(path[-2:]))
    await driver.discard_many(locators)
    assert set(synced) == {"01", "02"}
    synced.clear()
    await driver.discard_many(locators)
    assert set(synced) == {"01", "02"}, "a process may have been killed between its unlink and its sync"


async def test_locators_and_ids(driver: ObjectsDriver) -> None:
    locator = await driver.put(2**64 - 1, Pieces(b"x"))
    assert locator == driver.locator(2**64 - 1)
    assert driver.blob_id(locator) == 2**64 - 1
    with pytest.raises(BlobMissing):
        driver.blob_id("p:1:2")


async def test_walk_finds_all_and_nothing_else(driver: ObjectsDriver, root: Path) -> None:
    expected = {await driver.put(blob_id, Pieces(b"x" * blob_id)): blob_id for blob_id in range(1, 600, 4)}
    (root / "data/00/notes.txt").write_text("not ours")
    assert await blobs(driver) == expected


async def test_walk_while_blobs_go(driver: ObjectsDriver) -> None:
    for blob_id in (0x100, 0x200):
        await driver.put(blob_id, Pieces(b"x"))
    opened = os.open

    def vanish(path: str, flags: int) -> int:
        if path.endswith("0000000000000200"):
            raise FileNotFoundError
        return opened(path, flags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.blobs.reader.os.open", vanish)
        assert await blobs(driver) == {"f:0000000000000100": 1}


async def test_usage(driver: ObjectsDriver) -> None:
    usage = await driver.usage()
    assert 0 < usage.free <= usage.total
    assert usage.free_inodes <= usage.inodes


@pytest.mark.parametrize(
    "locator", ["", "f:", "f:xyz", "f:../../../../etc/pass", "p:0000000000000001", "f:000000000000000G"]
)
async def test_a_locator_of_another_kind(driver: ObjectsDriver, locator: str) -> None:
    with pytest.raises(BlobMissing):
        await driver.read(locator, 0, 1)
    if driver.capabilities.nowait:
        with pytest.raises(BlobMissing):
            driver.try_read(locator, 0, 1)
    with pytest.raises(BlobMissing):
        await driver.discard(locator)


async def test_a_short_blob_is_damaged(driver: ObjectsDriver, root: Path) -> None:
    locator = await driver.put(9, Pieces(b"12345"))
    with pytest.raises(BlobDamaged):
        await driver.read(locator, 3, 3)
    assert driver.try_read(locator, 3, 3) is None
    opened = await driver.read(locator, 0, 5)
    os.truncate(root / "data/09/0000000000000009", 2)
    with pytest.raises(BlobDamaged):
        await content(driver, locator, 0, 5)
    if isinstance(opened, FileSlice):
        opened.release()
        opened.release()


async def test_a_link_is_not_followed(driver: ObjectsDriver, root: Path) -> None:
    locator = await driver.put(9, Pieces(b"12345"))
    path = root / "data/09/0000000000000009"
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(StoreFailed):
        await driver.read(locator, 0, 5)
    assert driver.try_read(locator, 0, 5) is None


async def test_short_writes_and_reads(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    write, pwritev, pread = os.write, os.pwritev, os.pread
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.write", lambda fd, piece: write(fd, memoryview(piece)[:7]))
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.fsutil.os.pwritev", lambda fd, pieces, at: pwritev(fd, [b"".join(pieces)[:7]], at)
    )
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.pread", lambda fd, n, at: pread(fd, min(n, 5), at))
    body = os.urandom(100)
    for number, pieces in enumerate([(body[:60], body[60:]), (body,)], start=1):
        locator = await driver.put(number, Pieces(*pieces))
        assert await content(driver, locator, 0, 100) == body


def test_write_all_counts_bytes(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    write_all(fd, memoryview(b"abc"))
    assert os.pread(fd, 10, 0) == b"abc"
    os.close(fd)


async def test_relaxed_syncs_nothing(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = await make_driver(durability=Durability.RELAXED)

    def never(fd: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", never)
    await driver.put(1, Pieces(b"a"))
    await driver.put(2, Pieces(b"a", b"b"))


async def test_full_syncs_the_file_then_its_directory(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    fsync, close = os.fsync, os.close

    def name(fd: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{fd}")).name

    monkeypatch.setattr(
        "sluice_s3.storage_drivers.fsutil.os.fsync", lambda fd: (order.append(f"sync {name(fd)}"), fsync(fd))
    )
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.fsutil.os.close", lambda fd: (order.append(f"close {name(fd)}"), close(fd))
    )
    await driver.put(0xAB, Pieces(b"a"))
    file = "00000000000000ab"
    assert order == [f"sync {file}", f"close {file}", "sync ab", "close ab"]


async def test_every_step_is_named(make_driver: MakeDriver) -> None:
    steps: list[str] = []
    driver = await make_driver(at=steps.append)
    locator = await driver.put(1, Pieces(b"a", b"b"))
    await driver.discard(locator)
    assert steps == [
        "put.created",
        "put.written",
        "put.written",
        "put.synced",
        "put.closed",
        "put.directory_synced",
        "discard.unlinked",
    ]


async def test_a_closed_driver_refuses(driver: ObjectsDriver) -> None:
    await driver.close()
    with pytest.raises(StoreFailed):
        await driver.put(1, Pieces(b"a"))
    with pytest.raises(StoreFailed):
        await driver.usage()
