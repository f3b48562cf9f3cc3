"""A store in a temporary directory; stores over fsspec on the `place` of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from sluice_s3.loadtests.mounts import Mount, mounted
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.efs import EfsDriver
from sluice_s3.storage_drivers.fsspec.store import FsspecDriver
from sluice_s3.storage_drivers.fuse import FuseDriver
from sluice_s3.storage_drivers.local import LocalDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import EFS, FUSE
from tests.support.environment import need_fuse
from tests.unit.storage_drivers.places import Place, SshServer, ssh_server

MakeDriver = Callable[..., Awaitable[ObjectsDriver]]
MakeMount = Callable[..., Mount]
MakeStore = Callable[..., Awaitable[FsspecDriver]]


class HastyEfs(EfsDriver):
    """With less patience for what a test took away."""

    mount_profile = replace(EFS, retry_seconds=0.2)


class HastyFuse(FuseDriver):
    """The same."""

    mount_profile = replace(FUSE, retry_seconds=0.2)


ALL: list[type[ObjectsDriver]] = [LocalDriver, HastyEfs, HastyFuse]
IDS = ["local", "efs", "fuse"]
ON_MOUNTS: list[tuple[type[ObjectsDriver], str]] = [(HastyEfs, "efs-004"), (HastyFuse, "zdbfs")]
QUICK = {"create": 0.1, "setattr": 0.1, "remove": 0.1, "lookup": 0.0, "close": 0.0}
"""Milliseconds: no test should wait for hundreds of directories to be made as far away as they would be."""


@pytest.fixture
def driver_class() -> type[ObjectsDriver]:
    """The driver under test; a module whose tests are of every driver has another of `ALL`."""
    return LocalDriver


@pytest.fixture
def mount() -> str:
    """The mount under test; empty: the temporary directory's own."""
    return ""


@pytest.fixture(scope="session")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Makes each mount once: `zdbfs` is the personality, other names are profiles, some calls quicker."""
    made: dict[str, Path] = {}
    with ExitStack() as running:

        def make(name: str) -> Path:
            if name not in made:
                need_fuse()
                parent = tmp_path_factory.mktemp(name)
                backing, made[name] = parent / "backing", parent / "mount"
                backing.mkdir()
                made[name].mkdir()
                kind = {"personality": name} if name == "zdbfs" else {"profile": name, "ms": QUICK}
                running.enter_context(mounted(backing, made[name], **kind))  # type: ignore[arg-type]
            return made[name]

        yield make


@pytest.fixture
def make_mount(tmp_path: Path) -> Iterator[MakeMount]:
    """Make the mount of a test, of a personality, a profile and what else it says."""
    need_fuse()
    with ExitStack() as running:

        def make(**how: Any) -> Mount:
            backing, where = tmp_path / "backing", tmp_path / "mount"
            backing.mkdir()
            where.mkdir()
            return running.enter_context(mounted(backing, where, **how))

        yield make


@pytest.fixture
def root(tmp_path: Path, mount: str, mounts: Callable[[str], Path]) -> Iterator[Path]:
    """Where the store of a test is. On a mount it is one store for all tests, empty at the beginning of each."""
    if not mount:
        yield tmp_path / "store"
        return
    store = mounts(mount) / "store"
    yield store
    for low in range(256):
        for path in (store / f"data/{low:02x}").glob("*"):
            path.unlink()


@pytest.fixture
async def make_driver(root: Path, driver_class: type[ObjectsDriver]) -> AsyncIterator[MakeDriver]:
    """Make and start drivers on `root`; they are closed after the test."""
    made: list[ObjectsDriver] = []

    async def make(**settings: object) -> ObjectsDriver:
        driver = driver_class(root, **{"durability": Durability.FULL, "threads": 4, **settings})  # type: ignore[arg-type]
        made.append(driver)
        await driver.start()
        return driver

    yield make
    for driver in made:
        await driver.close()


@pytest.fixture
async def driver(make_driver: MakeDriver) -> ObjectsDriver:
    return await make_driver()


@pytest.fixture(scope="session")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture(autouse=True)
def forget_memory() -> Iterator[None]:
    """Memory filesystems look through all that they hold."""
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


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
