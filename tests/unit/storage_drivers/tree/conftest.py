"""A tree store in a temporary directory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import TreeFiles
from tests.unit.storage_drivers.tree.tools import BUCKET

MakeFiles = Callable[..., Awaitable[TreeFiles]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
async def make_files(root: Path) -> AsyncIterator[MakeFiles]:
    """Start the files of a store, of `root` unless told otherwise, with a bucket."""
    threads = StoreThreadPool(4)

    async def make(where: Path = root, **settings: object) -> TreeFiles:
        files = TreeFiles(where, threads, **settings)  # type: ignore[arg-type]
        await files.start()
        await files.make_bucket(BUCKET)
        return files

    yield make
    threads.shutdown()


@pytest.fixture
async def files(make_files: MakeFiles) -> TreeFiles:
    return await make_files()
