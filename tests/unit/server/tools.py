"""A server in the test's own event loop, and connections to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.http.connection import Connection
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.sweeper import Sweeper
from sluice_s3.app.server.http.timeouts import enforce_timeouts
from sluice_s3.app.settings import Settings
from tests.support.raw_http import Answer, AsyncConnection


@dataclass
class Site:
    """A running server."""

    state: HttpState
    sweeper: Sweeper
    port: int
    clients: list[AsyncConnection] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    refusals: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    """Request id, code, status, bytes and client of each answer without the application."""

    async def connect(self, **options: Any) -> AsyncConnection:
        limit = 64 * 1024 * 1024
        pair = await asyncio.open_connection("127.0.0.1", self.port, limit=limit, ssl=self.tls, **options)
        client = AsyncConnection(*pair)
        self.clients.append(client)
        return client

    async def ask(self, data: bytes) -> Answer:
        """One request on a connection of its own."""
        return await (await self.connect()).ask(data)

    def later(self, seconds: float) -> None:
        """Let time pass for a server that was started with `sweeps=False`."""
        self.state.now += seconds
        for connection in list(self.state.connections):
            enforce_timeouts(connection, self.state)


@asynccontextmanager
async def serving(
    app: Any, *, cert: tuple[Path, Path] | None = None, sweeps: bool = True, **options: Any
) -> AsyncIterator[Site]:
    """Serve an ASGI application, or a responder, with settings of choice. Requests start eagerly, as they do there."""
    settings = Settings(data=Path("unused"), **options)
    refusals: list[tuple[str, str, int, int, str]] = []

    def on_refused(request_id: str, code: str, status: int, sent: int, client: str) -> None:
        refusals.append((request_id, code, status, sent, client))

    state = HttpState(settings, BodyMemoryBudget(settings.max_body_memory), on_refused=on_refused)
    sweeper = Sweeper(state)
    server_tls = client_tls = None
    if cert is not None:
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_tls.load_cert_chain(*cert)
        client_tls = ssl.create_default_context(cafile=str(cert[0]))
        client_tls.check_hostname = False
    loop = asyncio.get_running_loop()
    responder = app if hasattr(app, "respond") else None

    def connect() -> Connection:
        return Connection(state, app, responder, starts_eagerly=True)

    server = await loop.create_server(connect, "127.0.0.1", 0, ssl=server_tls)
    if sweeps:
        sweeper.start()
    site = Site(state, sweeper, server.sockets[0].getsockname()[1], tls=client_tls, refusals=refusals)
    try:
        yield site
    finally:
        server.close()
        for client in site.clients:
            client.close()
        for connection in list(state.connections):
            connection.abort()
        tasks = [cycle.task for cycle in state.running if cycle.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        sweeper.stop()
        await server.wait_closed()


class Recorder:
    """An application that reads every body, answers `ok`, and remembers what it was asked."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes | None] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from tests.unit.server.apps import answer, read_body

        self.scopes.append(scope)
        self.bodies.append(await read_body(receive))
        await answer(send, b"ok")
