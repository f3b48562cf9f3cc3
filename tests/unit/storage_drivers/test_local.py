"""What only the driver of a local disk does: reads at once from the page cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import BlobMissing
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.read import INLINE_READ_BYTES
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, content


@pytest.mark.disk
async def test_read_now_from_the_page_cache(make_driver: MakeDriver) -> None:
    driver = await make_driver()
    if not driver.capabilities.nowait:
        pytest.skip("the filesystem of the temporary directory has no RWF_NOWAIT")
    body = os.urandom(INLINE_READ_BYTES)
    locator = await driver.put(1, Pieces(body))
    assert driver.try_read(locator, 0, len(body)) == body
    other = await make_driver()
    assert other.try_read(locator, 0, len(body)) is None, "nothing was checked yet"
    assert await content(other, locator, 0, len(body)) == body
    assert other.try_read(locator, 0, len(body)) == body
    assert other.try_read(locator, 10, 20) == body[10:30]


async def test_read_now_leaves_large_and_cold_reads(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    body = bytes(INLINE_READ_BYTES + 1)
    locator = await driver.put(1, Pieces(body))
    assert await content(driver, locator, 0, len(body)) == body
    assert driver.try_read(locator, 0, len(body)) is None

    def cold(*_: object) -> int:
        raise BlockingIOError

    monkeypatch.setattr("sluice_s3.storage_drivers.blobs.reader.os.preadv", cold)
    assert driver.try_read(locator, 0, 1) is None


async def test_read_now_learns_that_the_mount_cannot(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    locator = await driver.put(1, Pieces(b"x"))
    assert await content(driver, locator, 0, 1) == b"x"
    calls = []

    def unsupported(*_: object) -> int:
        calls.append(1)
        raise OSError(95, "not supported")

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.preadv", unsupported)
    driver._nowait = True
    assert driver.try_read(locator, 0, 1) is None
    assert driver.try_read(locator, 0, 1) is None
    assert len(calls) == 1


async def test_the_probe_finds_a_mount_without_nowait(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> int:
        raise OSError(95, "not supported")

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.preadv", unsupported)
    assert not (await make_driver()).capabilities.nowait


@pytest.mark.disk
async def test_a_verified_file_is_opened_without_a_thread(
    make_driver: MakeDriver, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, other = await make_driver(), await make_driver()
    if not driver.capabilities.nowait:
        pytest.skip("the filesystem of the temporary directory has no RWF_NOWAIT")
    body = os.urandom(INLINE_READ_BYTES + 1)
    locator = await driver.put(1, Pieces(body))
    threads = []

    def open_in_thread(*arguments: object) -> object:
        threads.append(arguments)
        return ObjectsDriver._open_slice(other, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(driver, "_open_slice", None)
    monkeypatch.setattr(other, "_open_slice", open_in_thread)
    assert await content(driver, locator, 5, len(body) - 5) == body[5:], "this process wrote it"
    assert await content(other, locator, 0, len(body)) == body
    assert len(threads) == 1, "the first reader verifies it"
    assert await content(other, locator, 0, len(body)) == body
    assert len(threads) == 1
    path = next(path for path in (root / "data").rglob("*") if path.is_file() and path.stat().st_size > len(body))
    os.utime(path, ns=(1, 1))
    assert await content(other, locator, 0, len(body)) == body
    assert len(threads) == 2, "it was changed since"
    path.unlink()
    with pytest.raises(BlobMissing):
        await other.read(locator, 0, len(body))
