"""A worker's server: in which order it starts."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.processes import worker
from sluice_s3.app.server.processes.acceptor import Acceptor
from sluice_s3.app.server.processes.context import WorkerSpec
from sluice_s3.app.server.processes.worker import READY, Server
from sluice_s3.app.settings import Settings
from tests.unit.server.apps import Served

HEADER_SECONDS = 0.2


class EarlyClient(Acceptor):
    """Ends its opening only after a client of the first listener was answered; then the server stops."""

    answer = b""
    executor_threads = 0

    async def open(self) -> None:
        await super().open()
        EarlyClient.executor_threads = sum(thread.name.startswith("loop_") for thread in threading.enumerate())
        reader, writer = await asyncio.open_connection(*self._listeners[0].socket.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nhost:")
        with suppress(TimeoutError):
            async with asyncio.timeout(HEADER_SECONDS * 20):
                EarlyClient.answer = await reader.read()
        writer.close()
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def thawed() -> Iterator[None]:
    """A worker freezes what exists when it is ready."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what collection made, see `tests/conftest.py`


@pytest.mark.usefixtures("thawed")
async def test_the_first_connection_has_time_limits(
    sockets: list[socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the worker is not ready yet: nobody sends the rest of this head, and its client gets an answer."""
    monkeypatch.setattr(worker, "Acceptor", EarlyClient)
    settings = Settings(data=tmp_path, header_timeout=HEADER_SECONDS, graceful_timeout=1)
    spec = WorkerSpec(settings, "", "worker", 0, 0, 1, (), 0, 0, False)
    nothing = lambda *_: None  # noqa: E731
    context: Any = SimpleNamespace(
        memory=BodyMemoryBudget(settings.max_body_memory),
        counters=SimpleNamespace(count_loop_hold=nothing),
        **dict.fromkeys(("publish", "record_refusal", "gather_log", "leave"), nothing),
    )
    config = uvicorn.Config(served := Served(), interface="asgi3", log_config=None)
    config.load()
    with (tmp_path / "ready").open("wb", buffering=0) as ready:
        await Server(served, config, spec, context, ready).serve(sockets)
    assert (tmp_path / "ready").read_bytes() == READY
    assert b"<Code>RequestTimeout</Code>" in EarlyClient.answer
    # one that is started later, where memory lacks, would hold the event loop for ever
    assert EarlyClient.executor_threads == min(32, (os.cpu_count() or 1) + 4)
