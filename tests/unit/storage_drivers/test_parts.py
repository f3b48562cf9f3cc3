"""Bodies that are written to several files at once, as on NFS: one blob to everybody else."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.blobs.footer import CHUNK, Shape
from sluice_s3.storage_drivers.blobs.striping import MIN_STRIPE_BYTES, plan_stripes
from sluice_s3.storage_drivers.efs import EfsDriver
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed, StoreFull
from sluice_s3.storage_drivers.local import LocalDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.offline_reader import Blob, OfflineStoreReader
from sluice_s3.storage_drivers.objects.read_ahead import pieces
from tests.unit.storage_drivers.conftest import HastyEfs, MakeDriver
from tests.unit.storage_drivers.tools import Pieces, blobs, content, fail_nth, split, stored

SIZE = 11 * CHUNK + 777
BODY = os.urandom(SIZE)
SHORT = BODY[: 8 * MIN_STRIPE_BYTES + 777]
"""Is gathered in memory before it is written."""
BODIES = pytest.mark.parametrize("body", [BODY, SHORT], ids=["long", "short"])
ID = 0xFD
"""Its parts lie in the directories fd, fe, ff, 00, …"""
NAMES = sorted([f"{ID:016x}", *(f"{ID:016x}.{part}" for part in range(1, 8))])


@pytest.fixture
def driver_class() -> type[ObjectsDriver]:
    return HastyEfs


def source(body: bytes = BODY) -> Pieces:
    return Pieces(*split(body, [CHUNK] * (len(body) // CHUNK)))


async def written(driver: ObjectsDriver, blob_id: int = ID, body: bytes = BODY) -> str:
    return await driver.put(blob_id, source(body), make_header=lambda: b"claim")


async def read_all(driver: ObjectsDriver, locator: str, offset: int, length: int) -> bytes:
    """By `read`, as a GET does."""
    taken = bytearray()
    while len(taken) < length:
        some = await driver.read(locator, offset + len(taken), length - len(taken))
        if isinstance(some, FileSlice):
            taken += os.pread(some.fd, some.count, some.offset)
            some.release()
        else:
            taken += some
    return bytes(taken)


@given(size=st.integers(0, 1 << 36), parts=st.integers(1, 8))
def test_shapes(size: int, parts: int) -> None:
    shape = plan_stripes(size, parts)
    if shape is None:
        assert parts == 1 or size < 2 * MIN_STRIPE_BYTES or size > parts << 32
        return
    assert shape.total == size
    assert 2 <= shape.parts <= parts
    assert 0 < shape.last <= shape.size < 1 << 32
    assert shape.locate(0, size)[0] == 0
    assert shape.locate(size - 1, 1) == (shape.parts - 1, shape.last - 1, 1)
    assert shape.locate(shape.size, size - shape.size) == (1, 0, shape.size_of(1))


@given(st.integers(2, 8), st.integers(1, 40), st.integers(1, 1 << 16), st.data())
def test_pieces_make_up_a_range(parts: int, units: int, last: int, data: st.DataObject) -> None:
    shape = Shape(parts, units << 16, last)
    offset = data.draw(st.integers(0, shape.total - 1))
    length = data.draw(st.integers(1, shape.total - offset))
    at = offset
    for start, count in pieces(shape, offset, length):
        part, inside, there = shape.locate(start, count)
        assert (start, count) == (at, there)
        assert inside // CHUNK == (inside + count - 1) // CHUNK
        assert part < parts
        at += count
    assert at == offset + length


async def test_one_blob_in_eight_files(driver: ObjectsDriver, root: Path) -> None:
    body = source()
    locator = await driver.put(ID, body)
    assert stored(root) == NAMES
    assert sorted(path.parent.name for path in (root / "data").rglob(f"{ID:016x}.*")) == sorted(
        ["fe", "ff", "00", "01", "02", "03", "04"]
    )
    assert locator == driver.locator(ID)
    assert body.verified
    assert body.hash.digest() == Pieces.hash_of(BODY)
    assert await blobs(driver) == {locator: SIZE}


@pytest.mark.parametrize("reader", [HastyEfs, LocalDriver])
@pytest.mark.parametrize(
    ("offset", "length"), [(0, SIZE), (0, 1), (SIZE - 1, 1), (5 * CHUNK - 3, 3 * CHUNK), (CHUNK, CHUNK), (SIZE, 0)]
)
async def test_any_driver_reads_it(
    driver: ObjectsDriver, root: Path, reader: type[ObjectsDriver], offset: int, length: int
) -> None:
    locator = await written(driver)
    other = reader(root, threads=4)
    await other.start()
    try:
        for _ in range(2):
            assert await content(other, locator, offset, length) == BODY[offset : offset + length]
            assert await read_all(other, locator, offset, length) == BODY[offset : offset + length]
        with pytest.raises(BlobDamaged, match="early"):
            await read_all(other, locator, offset, SIZE - offset + 1)
    finally:
        await other.close()


async def test_readers_beside_each_other(driver: ObjectsDriver) -> None:
    locators = [await written(driver, blob_id) for blob_id in (1, 2)]
    ranges = [(start, SIZE - start) for start in range(0, SIZE, 3 * CHUNK + 1)]
    reads = [read_all(driver, locator, *some) for locator in locators for some in ranges]
    for found, (start, _) in zip(await asyncio.gather(*reads), ranges * 2, strict=True):
        assert found == BODY[start:]


async def test_a_reader_that_goes_away_leaves_room(driver: ObjectsDriver) -> None:
    locator = await written(driver)
    for start in range(100):
        await driver.read(locator, start, SIZE - start)
    assert len(driver._ahead._pieces) <= driver._ahead._most
    assert await read_all(driver, locator, 0, SIZE) == BODY


async def test_several_puts_share_the_streams(driver: ObjectsDriver, root: Path) -> None:
    locators = await asyncio.gather(*(written(driver, blob_id) for blob_id in range(1, 10)))
    assert len(stored(root)) < 9 * 8
    for locator in locators:
        assert await content(driver, locator, 0, SIZE) == BODY


@pytest.mark.parametrize("size", [0, 1, 2 * MIN_STRIPE_BYTES - 1, 2 * MIN_STRIPE_BYTES, CHUNK, CHUNK + 1])
async def test_small_ones(driver: ObjectsDriver, root: Path, size: int) -> None:
    locator = await driver.put(ID, source(BODY[:size]))
    assert len(stored(root)) == max(1, min(8, size // MIN_STRIPE_BYTES))
    assert await content(driver, locator, 0, size) == BODY[:size]


async def test_a_body_of_unknown_size_is_one_file(driver: ObjectsDriver, root: Path) -> None:
    body = source()
    body.size = None
    await driver.put(ID, body)
    assert stored(root) == NAMES[:1]


@BODIES
@pytest.mark.parametrize("error", [-1, 1])
async def test_a_body_of_another_size(driver: ObjectsDriver, root: Path, body: bytes, error: int) -> None:
    wrong = source(body)
    wrong.size = len(body) + error
    with pytest.raises(StoreFailed, match="came"):
        await driver.put(ID, wrong)
    assert stored(root) == []


@BODIES
async def test_pieces_of_odd_sizes(driver: ObjectsDriver, root: Path, body: bytes) -> None:
    cut = [1, MIN_STRIPE_BYTES, 3, CHUNK - 1, 2 * CHUNK + 5, 70_000]
    locator = await driver.put(ID, Pieces(*split(body, cut)))
    assert stored(root) == NAMES
    assert await content(driver, locator, 0, len(body)) == body


@BODIES
@pytest.mark.parametrize("call", ["open", "write", "pwritev", "fsync", "fdatasync", "close"])
@pytest.mark.parametrize("nth", [1, 2, 5, 8])
async def test_a_failed_call_leaves_nothing(
    driver: ObjectsDriver, root: Path, body: bytes, call: str, nth: int
) -> None:
    most = {"write": 2, "pwritev": 7, "fdatasync": 0} if body is SHORT else {"pwritev": 0, "fdatasync": 1}
    if nth > most.get(call, 8):
        pytest.skip("is not called so often")
    failing = fail_nth(getattr(os, call), OSError(errno.ENOSPC, "injected"), nth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"sluice_s3.storage_drivers.fsutil.os.{call}", failing)
        with pytest.raises(StoreFull):
            await written(driver, body=body)
    assert stored(root) == []
    assert await content(driver, await written(driver, body=body), 0, len(body)) == body


@BODIES
async def test_a_refused_or_broken_body_leaves_nothing(driver: ObjectsDriver, root: Path, body: bytes) -> None:
    piece = len(body) // 11
    with pytest.raises(ValueError, match="bad digest"):
        await driver.put(ID, Pieces(*split(body, [piece] * 11), refuse=ValueError("bad digest")))
    broken = Pieces(body[:piece], body[piece : 5 * piece], ValueError("broken off"))
    broken.size = len(body)
    with pytest.raises(ValueError, match="broken off"):
        await driver.put(ID, broken)
    assert stored(root) == []


@pytest.mark.parametrize("step", ["put.created", "put.written", "put.synced", "put.closed", "put.directory_synced"])
@BODIES
async def test_cancelled_in_every_step(make_driver: MakeDriver, root: Path, body: bytes, step: str) -> None:
    loop = asyncio.get_running_loop()
    reached, go_on = asyncio.Event(), threading.Event()

    def at(name: str) -> None:
        if name == step and not go_on.is_set():
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(30)

    driver = await make_driver(at=at)
    put = asyncio.create_task(written(driver, body=body))
    await reached.wait()
    put.cancel()
    await asyncio.sleep(0)
    assert not put.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await put
    assert stored(root) == []


@pytest.mark.parametrize("many", [False, True])
async def test_discard(driver: ObjectsDriver, root: Path, many: bool) -> None:
    locators = [await written(driver, blob_id) for blob_id in (ID, 5, 0x1FF)]
    for _ in range(2):
        if many:
            await driver.discard_many(locators)
        else:
            for locator in locators:
                await driver.discard(locator)
    assert stored(root) == []
    with pytest.raises(BlobMissing):
        await driver.read(locators[0], 0, SIZE)


@pytest.mark.parametrize("driver_class", [LocalDriver, HastyEfs])
@pytest.mark.parametrize("fails", range(1, 9))
async def test_a_discard_that_was_broken_off_is_repeated(
    driver: ObjectsDriver, root: Path, tmp_path: Path, fails: int
) -> None:
    """Whatever part it stopped at, the next one finds what is left."""
    writer = EfsDriver(root, threads=4)
    await writer.start()
    locator = await written(writer)
    await writer.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sluice_s3.storage_drivers.fsutil.os.unlink", fail_nth(os.unlink, OSError(errno.EIO, "injected"), fails)
        )
        with pytest.raises(DriverError):
            await driver.discard_many([locator])
    assert stored(root) != []
    await driver.discard_many([locator])
    assert stored(root) == []


@pytest.mark.parametrize("left", [NAMES, NAMES[1:], NAMES[3:4], NAMES[-1:]])
async def test_the_sweep_finds_what_is_left(driver: ObjectsDriver, root: Path, left: list[str]) -> None:
    await written(driver)
    for path in (root / "data").rglob(f"{ID:016x}*"):
        if path.name not in left:
            path.unlink()
    assert await driver.discard_id(ID)
    assert not await driver.discard_id(ID)
    assert stored(root) == []


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _flip(path: Path) -> None:
    with path.open("r+b") as file:
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes([byte ^ 1]))


def _other_part(path: Path) -> None:
    """Whole in itself, but of another place in the blob."""
    other = next(one for one in path.parents[1].rglob(f"{path.name[:16]}.*") if one != path)
    path.write_bytes(other.read_bytes())


DAMAGES: list[Callable[[Path], object]] = [Path.unlink, _cut, _flip, _other_part]


@pytest.mark.parametrize("damage", DAMAGES, ids=["gone", "cut", "bit", "another part"])
@pytest.mark.parametrize("part", [1, 6, 7])
async def test_a_damaged_part_is_noticed_by_all(
    driver: ObjectsDriver, make_driver: MakeDriver, root: Path, damage: Callable[[Path], object], part: int
) -> None:
    locator = await written(driver)
    assert [blob.recovery_header for blob in OfflineStoreReader(root).files() if isinstance(blob, Blob)] == [b"claim"]
    assert OfflineStoreReader(root).intact(locator)
    assert [count async for count in driver.reread(locator, None)]
    damage(next((root / "data").rglob(f"{ID:016x}.{part}")))
    assert not OfflineStoreReader(root).intact(locator)
    other = await make_driver()
    with pytest.raises((BlobDamaged, BlobMissing)):
        await content(other, locator, 0, SIZE)
    with pytest.raises((BlobDamaged, BlobMissing)):
        async for _ in other.reread(locator, None):
            pass
    if damage is not _flip:  # fsck looks at trailers only
        assert (await blobs(other))[locator] < SIZE


async def test_a_blob_that_seems_gone_is_waited_for(driver: ObjectsDriver, root: Path) -> None:
    """As with a client of NFS that remembers that there was nothing."""
    locator = await driver.put(ID, Pieces(b"here"))
    opened, looked = os.open, []

    def hide(path: str, *args: int) -> int:
        if re.search("/[0-9a-f]{16}$", str(path)) and not looked:
            looked.append(path)
            raise FileNotFoundError(errno.ENOENT, "injected")
        return opened(path, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.fsutil.os.open", hide)
        assert await driver.read(locator, 0, 4) == b"here"
    assert looked


@pytest.mark.parametrize("code", [errno.ENOENT, errno.ESTALE])
async def test_patience_ends(driver: ObjectsDriver, code: int) -> None:
    locator = await driver.put(ID, Pieces(b"here"))

    def stale(*_: object) -> int:
        raise OSError(code, "injected")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.fsutil.os.open", stale)
        with pytest.raises(BlobMissing):
            await driver.read(locator, 0, 4)
