"""What the recipes ask for beyond what all drivers do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.blobs.footer import CHUNK
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed
from sluice_s3.storage_drivers.fuse import FuseDriver
from sluice_s3.storage_drivers.local import LocalDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import EFS
from tests.unit.storage_drivers.conftest import HastyEfs, HastyFuse, MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book
from tests.unit.storage_drivers.tools import Pieces, content, stored

BODY = os.urandom(2 * CHUNK)


def spoil_at_close(monkeypatch: pytest.MonkeyPatch, spoil: object) -> None:
    """What a mount does that loses something when a file is closed."""
    close = os.close

    def closing(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        close(fd)
        if "/data/" in path and os.path.isfile(path):
            spoil(path)  # type: ignore[operator]

    monkeypatch.setattr("sluice_s3.storage_drivers.blobs.writer.os.close", closing)


def cut(path: str) -> None:
    os.truncate(path, os.stat(path).st_size - 1)


def flip(path: str) -> None:
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, bytes([os.pread(fd, 1, 5)[0] ^ 1]), 5)


@pytest.mark.parametrize(
    ("driver_class", "read_back", "spoil", "error"),
    [
        (HastyFuse, False, cut, StoreFailed),
        (HastyFuse, True, flip, BlobDamaged),
        (HastyEfs, True, flip, BlobDamaged),
    ],
)
@pytest.mark.parametrize("body", [b"a small one", BODY], ids=["small", "large"])
async def test_what_a_mount_loses_is_seen_before_200(
    make_driver: MakeDriver,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    read_back: bool,
    spoil: object,
    error: type[Exception],
    body: bytes,
) -> None:
    driver = await make_driver(read_back=read_back)
    with monkeypatch.context() as patch:
        spoil_at_close(patch, spoil)
        with pytest.raises(error):
            await driver.put(1, Pieces(body))
    assert stored(root) == []
    assert await content(driver, await driver.put(1, Pieces(body)), 0, len(body)) == body


@pytest.mark.parametrize("durability", list(Durability))
@pytest.mark.parametrize("driver_class", [HastyFuse])
async def test_a_pack_that_loses_something(
    make_driver: MakeDriver, root: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability
) -> None:
    driver = await make_driver(read_back=True, pack_threshold=1000, durability=durability)
    driver.open_packs(Book())
    appends = Appends(driver)
    (first,) = await appends.put(b"kept")
    pwritev = os.pwritev

    def spoilt(fd: int, buffers: list[bytes], offset: int) -> int:
        return pwritev(fd, [bytes(len(b"".join(buffers)))], offset)

    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.packs.writer.os.pwritev", spoilt)
        (second,) = await appends.put(b"lost")
    assert isinstance(second.error, BlobDamaged)
    (third,) = await appends.put(b"in another pack")
    assert driver.packed(third.locator)[0] != driver.packed(first.locator)[0]  # type: ignore[index]
    assert await content(driver, first.locator, 0, 4) == b"kept"
    assert await content(driver, third.locator, 0, 15) == b"in another pack"


@pytest.mark.parametrize("driver_class", [HastyEfs])
async def test_no_record_moves_the_end_of_a_pack(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver(pack_threshold=1000)
    book = Book()
    driver.open_packs(book)
    appends = Appends(driver)
    entries = await appends.put(b"first")
    (pack,) = (root / "data").rglob("*.pack")
    size = pack.stat().st_size
    assert size >= EFS.pack_ahead
    for number in range(20):
        entries += await appends.put(b"another %d" % number)
    assert pack.stat().st_size == size
    assert len([locator async for locator, _ in driver.walk()]) == 21
    found, following = await driver.list_records(book.opened, 0, 100)
    assert ([record.locator for record in found], following) == ([entry.locator for entry in entries], 0)
    await driver.close_packs()
    assert 0 < book.sealed[book.opened] < size
    assert await content(driver, entries[-1].locator, 0, 10) == b"another 19"


@pytest.mark.parametrize("driver_class", [HastyEfs, HastyFuse])
async def test_nothing_on_the_loop_and_no_descriptor_outside(driver: ObjectsDriver) -> None:
    assert (driver.capabilities.nowait, driver.capabilities.descriptors) == (False, False)
    locator = await driver.put(1, Pieces(BODY))
    assert await content(driver, locator, 0, len(BODY)) == BODY
    assert driver.try_read(locator, 0, 10) is None
    before = len(os.listdir("/proc/self/fd"))
    first = await driver.read(locator, 10, len(BODY) - 10)
    assert isinstance(first, bytes)
    assert BODY[10:].startswith(first)
    await content(driver, locator, 0, len(BODY))
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_mount_without_sendfile(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> int:
        raise OSError(22, "injected")

    monkeypatch.setattr("sluice_s3.storage_drivers.probing.trials.os.sendfile", unsupported)
    driver = await make_driver()
    assert not driver.capabilities.descriptors
    locator = await driver.put(1, Pieces(BODY))
    assert isinstance(await driver.read(locator, 0, len(BODY)), bytes)
    assert await content(driver, locator, 0, len(BODY)) == BODY


def test_drivers_are_called_alike(tmp_path: Path) -> None:
    for driver_class in (LocalDriver, HastyEfs, FuseDriver):
        made = driver_class(
            tmp_path,
            durability=Durability.RELAXED,
            threads=2,
            create=False,
            pack_threshold=1,
            pack_size=1 << 20,
            at=lambda _: None,
        )
        assert made.capabilities.durability is Durability.RELAXED
