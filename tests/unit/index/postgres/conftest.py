"""Indexes on one database, as those of several gateways are."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.postgres.index import PostgresIndex
from tests.support import postgres
from tests.unit.index.tools import OWNER

Opens = Callable[..., PostgresIndex]


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.server().lent() as lent:
        yield lent


@pytest.fixture
def opens(url: str, tmp_path: Path) -> Opens:
    """Makes indexes, each with a run directory of its own; to be started and closed."""
    numbers = itertools.count()

    def made(**settings: Any) -> PostgresIndex:
        return PostgresIndex(settings.pop("url", url), tmp_path / f"run{next(numbers)}", **settings)

    return made


@pytest.fixture
async def one(opens: Opens) -> AsyncIterator[PostgresIndex]:
    index = opens()
    await index.start()
    yield index
    await index.close()


@pytest.fixture
async def other(opens: Opens) -> AsyncIterator[PostgresIndex]:
    index = opens()
    await index.start()
    yield index
    await index.close()


@pytest.fixture
async def bucket(one: PostgresIndex) -> Bucket:
    return await one.create_bucket("bucket", OWNER, "us-east-1", 10)
