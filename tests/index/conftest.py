"""An index on disk with one bucket, and one in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.index.rows import Bucket
from app.index.sqlite import SqliteIndex
from tests.index.tools import OWNER, FaultyIndex, Memory, open_at


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
async def index(directory: Path) -> AsyncIterator[SqliteIndex]:
    opened: SqliteIndex = open_at(directory)
    await opened.start(migrate=True)
    yield opened
    await opened.close()


@pytest.fixture
async def faulty(directory: Path) -> AsyncIterator[FaultyIndex]:
    opened: FaultyIndex = open_at(directory, FaultyIndex)
    await opened.start(migrate=True)
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
