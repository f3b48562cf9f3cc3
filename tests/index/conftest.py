"""An index on disk with one bucket, and one in memory."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.index import migrate
from app.index.rows import Bucket
from app.index.sqlite import SqliteIndex
from tests.index.tools import OWNER, FaultyIndex, Memory, open_at


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new index, migrated once: each test begins with a copy."""
    path = tmp_path_factory.mktemp("template") / "sluice.db"
    migrate.upgrade(path, path.with_name("index.lock"))
    return path


@pytest.fixture
def directory(tmp_path: Path, template: Path) -> Path:
    made = tmp_path / "index"
    (made / "run").mkdir(parents=True)
    shutil.copy(template, made)
    return made


@pytest.fixture
async def index(directory: Path) -> AsyncIterator[SqliteIndex]:
    opened: SqliteIndex = open_at(directory)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def faulty(directory: Path) -> AsyncIterator[FaultyIndex]:
    opened: FaultyIndex = open_at(directory, FaultyIndex)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def bucket(index: SqliteIndex) -> Bucket:
    return await index.create_bucket("bucket", OWNER, "us-east-1", 10)


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.close()
