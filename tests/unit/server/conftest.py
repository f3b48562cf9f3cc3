"""The server runs on uvloop, and so do its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.unit.server.launched import Launched


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Any]:
    launched: list[Launched] = []

    def start(name: str = "data", **options: Any) -> Launched:
        launched.append(Launched(tmp_path / name, **options))
        return launched[-1]

    yield start
    for server in launched:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        assert server.process.stdout is not None
        server.process.stdout.close()
        for connection in server.connections:
            connection.close()
