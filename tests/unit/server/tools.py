"""A server in the test's own event loop, and clients that speak to it in bytes."""

from __future__ import annotations

import asyncio
import re
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

PATIENCE = 60.0
"""Seconds after which a test that still waits has failed."""


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The S3 error code of an error document."""
        found = re.search(rb"<Code>(\w+)</Code>", self.body)
        return found[1].decode() if found else ""


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def response(self, *, head: bool = False) -> Response:
        """The next response."""
        async with asyncio.timeout(PATIENCE):
            raw = await self.reader.readuntil(b"\r\n\r\n")
            lines = raw.decode("latin-1").split("\r\n")[:-2]
            status = int(lines[0].split()[1])
            headers: dict[str, str] = {}
            for line in lines[1:]:
                name, _, value = line.partition(": ")
                assert name.lower() not in headers, f"{name} came twice"
                headers[name.lower()] = value
            if status == 100 or head:
                return Response(status, headers, b"")
            if headers.get("transfer-encoding") == "chunked":
                return Response(status, headers, await self._chunks())
            if "content-length" in headers:
                return Response(status, headers, await self.reader.readexactly(int(headers["content-length"])))
            return Response(status, headers, await self.reader.read())

    async def _chunks(self) -> bytes:
        body = b""
        while True:
            size = int((await self.reader.readline()).strip(), 16)
            body += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
            if not size:
                return body

    async def ask(self, data: bytes) -> Response:
        await self.send(data)
        return await self.response()

    async def rest(self) -> bytes:
        """Everything until the server closes. Fails when it does not, or resets the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def lost(self) -> None:
        """Wait for the end of the connection, of whatever kind."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass

    def close(self) -> None:
        self.writer.close()


@dataclass
class Site:
    """A running server."""

    state: HttpState
    sweeper: Sweeper
    port: int
    clients: list[Client] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    async def connect(self, **options: Any) -> Client:
        limit = 64 * 1024 * 1024
        pair = await asyncio.open_connection("127.0.0.1", self.port, limit=limit, ssl=self.tls, **options)
        client = Client(*pair)
        self.clients.append(client)
        return client

    async def ask(self, data: bytes) -> Response:
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
    """Serve an ASGI application with settings of choice."""
    settings = Settings(data=Path("unused"), **options)
    state = HttpState(settings, BodyMemoryBudget(settings.max_body_memory))
    sweeper = Sweeper(state)
    server_tls = client_tls = None
    if cert is not None:
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_tls.load_cert_chain(*cert)
        client_tls = ssl.create_default_context(cafile=str(cert[0]))
        client_tls.check_hostname = False
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state, app), "127.0.0.1", 0, ssl=server_tls)
    if sweeps:
        sweeper.start()
    site = Site(state, sweeper, server.sockets[0].getsockname()[1], tls=client_tls)
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
        state.close()
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
