"""A local store in a temporary directory; stores over fsspec on the `place` of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from storage_drivers.base import Durability
from storage_drivers.fsspec_store import FsspecDriver
from storage_drivers.local import LocalDriver
from tests.storage_drivers.places import Place, SshServer, ssh_server

MakeDriver = Callable[..., Awaitable[LocalDriver]]
MakeStore = Callable[..., Awaitable[FsspecDriver]]


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


@pytest.fixture(scope="session")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
async def make_store(place: Place) -> AsyncIterator[MakeStore]:
    """Make and start drivers on `place`; they are closed after the test."""
    made: list[FsspecDriver] = []

    async def make(**options: object) -> FsspecDriver:
        driver = FsspecDriver(place.url, **{"threads": 2, "options": place.options, **options})  # type: ignore[arg-type]
        made.append(driver)
        await driver.start()
        return driver

    yield make
    for driver in made:
        await driver.close()


@pytest.fixture
async def store(make_store: MakeStore) -> FsspecDriver:
    return await make_store()
