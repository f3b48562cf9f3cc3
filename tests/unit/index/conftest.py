"""An index on disk with one bucket, and one in memory."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.support import postgres
from tests.unit.index.tools import OWNER, URL, FaultyIndex, Memory, open_at

ENGINES = ("sqlite", "postgres")
ONLY_SQLITE = {"test_connection", "test_migrations", "test_processes", "test_writer"}
"""Modules about what SQLite alone is and does; and so is what asks for the fixture `faulty`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The contract of the seam is tested on both engines."""
    if "engine" in metafunc.fixturenames:
        alone = metafunc.module.__name__.rpartition(".")[2] in ONLY_SQLITE or "faulty" in metafunc.fixturenames
        others = [] if alone else [pytest.param(engine, marks=pytest.mark.slow) for engine in ENGINES[1:]]
        metafunc.parametrize("engine", [ENGINES[0], *others], scope="session")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new index, migrated once: each test begins with a copy."""
    path = tmp_path_factory.mktemp("template") / "sluice.db"
    migrate.upgrade(path, path.with_name("index.lock"))
    return path


@pytest.fixture
def directory(tmp_path: Path, template: Path, engine: str) -> Iterator[Path]:
    made = tmp_path / "index"
    (made / "run").mkdir(parents=True)
    if engine == "postgres":
        with postgres.server().lent() as url:
            (made / URL).write_text(url)
            yield made
    else:
        shutil.copy(template, made)
        yield made


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
