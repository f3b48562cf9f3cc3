"""The driver of test suites: a fault that another process sets is that of a real mount."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import DriverError, ReadOnlyStore, StoreFull
from sluice_s3.storage_drivers.fault_file import NAME, clear_fault, read_fault, set_fault
from sluice_s3.storage_drivers.faulty import FaultyDriver
from sluice_s3.storage_drivers.local import LocalDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book
from tests.unit.storage_drivers.tools import Pieces, content, stored

FAILING = [("disk full", StoreFull), ("read-only", ReadOnlyStore)]


@pytest.fixture
def driver_class() -> type[ObjectsDriver]:
    return FaultyDriver


@pytest.mark.parametrize(("name", "expected"), FAILING)
@pytest.mark.parametrize("pieces", [(b"whole",), (b"in ", b"pieces")], ids=["whole", "pieces"])
async def test_a_file_is_not_written(
    make_driver: MakeDriver, root: Path, name: str, expected: type[DriverError], pieces: tuple[bytes, ...]
) -> None:
    driver = await make_driver()
    set_fault(root, name, 0)
    with pytest.raises(expected):
        await driver.put(1, Pieces(*pieces))
    assert stored(root) == []
    clear_fault(root)
    locator = await driver.put(2, Pieces(*pieces))
    assert await content(driver, locator, 0, len(b"".join(pieces))) == b"".join(pieces)


@pytest.mark.parametrize(("name", "expected"), FAILING)
@pytest.mark.parametrize("durability", Durability)
async def test_a_record_is_not_written(
    make_driver: MakeDriver, root: Path, name: str, expected: type[DriverError], durability: Durability
) -> None:
    driver = await make_driver(pack_threshold=1000, durability=durability)
    driver.open_packs(Book())
    appends = Appends(driver)
    set_fault(root, name, 0)
    (entry,) = await appends.put(b"small")
    assert type(entry.error) is expected
    assert driver.troubles == 1
    clear_fault(root)
    (entry,) = await appends.put(b"small")
    assert entry.error is None
    assert await content(driver, entry.locator, 0, 5) == b"small"


async def test_a_slow_sync_holds_writes_up(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver(pack_threshold=1000, durability=Durability.RELAXED)
    driver.open_packs(Book())
    set_fault(root, "slow fsync", 0.3)
    started = asyncio.get_running_loop().time()
    (entry,) = await Appends(driver).put(b"small")
    assert entry.error is None
    middle = asyncio.get_running_loop().time()
    await driver.put(9, Pieces(b"whole"))
    assert middle - started >= 0.3
    assert asyncio.get_running_loop().time() - middle >= 0.3


@pytest.mark.parametrize(("name", "expected"), FAILING)
async def test_the_circuit_breaker_sees_the_fault(
    make_driver: MakeDriver, root: Path, name: str, expected: type[DriverError]
) -> None:
    driver = await make_driver()
    assert driver.identity is not None
    set_fault(root, name, 0)
    driver.look(driver.identity, write=False)
    with pytest.raises(expected):
        driver.look(driver.identity, write=True)


async def test_other_drivers_do_not_read_the_file(tmp_path: Path) -> None:
    driver = LocalDriver(tmp_path / "store")
    await driver.start()
    set_fault(tmp_path / "store", "disk full", 0)
    await driver.put(1, Pieces(b"whole"))
    await driver.close()


async def test_closing_fails_what_waits(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver(pack_threshold=1000)
    driver.open_packs(Book())
    set_fault(root, "slow fsync", 0.2)
    appends = Appends(driver)
    driver.append(await appends.entry(b"small"))
    await driver.close()
    assert isinstance((await appends.next()).error, DriverError)


def test_a_fault_has_a_name_and_bounds(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no fault 'full': choose one of disk full, read-only, slow fsync"):
        set_fault(tmp_path, "full", 1)
    with pytest.raises(ValueError, match="seconds"):
        set_fault(tmp_path, "slow fsync", -1)
    assert read_fault(tmp_path) is None
    set_fault(tmp_path, "slow fsync", 2)
    assert json.loads((tmp_path / NAME).read_text()) == [0, 2]
    clear_fault(tmp_path)
    clear_fault(tmp_path)
    assert list(tmp_path.iterdir()) == []
