"""What only the driver of a local disk does: reads at once from the page cache."""

from __future__ import annotations

import os

import pytest

from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.read import INLINE_READ_BYTES
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, content


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
