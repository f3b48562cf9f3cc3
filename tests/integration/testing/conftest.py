"""One server for the tests of servers for tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sluice_s3.testing import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(max_buckets=50) as running:
        yield running


@pytest.fixture(scope="session")
def s3(server: Server) -> Any:
    return server.client()
