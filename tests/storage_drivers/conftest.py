"""A local store in a temporary directory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from storage_drivers.base import Durability
from storage_drivers.local import LocalDriver

MakeDriver = Callable[..., Awaitable[LocalDriver]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def make_driver(root: Path) -> AsyncIterator[MakeDriver]:
    """Make and start drivers on `root`; they are closed after the test."""
    made: list[LocalDriver] = []

    async def make(**settings: object) -> LocalDriver:
        driver = LocalDriver(root, **{"durability": Durability.FULL, "threads": 4, **settings})  # type: ignore[arg-type]
        made.append(driver)
        await driver.start()
        return driver

    yield make
    for driver in made:
        await driver.close()


@pytest.fixture
async def driver(make_driver: MakeDriver) -> LocalDriver:
    return await make_driver()
