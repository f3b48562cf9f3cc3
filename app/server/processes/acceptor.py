"""The listeners of one process: it accepts their connections, or leaves them to other workers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import uvicorn

from sluice_s3.app.server.http.connection import Connection
from sluice_s3.app.server.http.interfaces import Application, Responder
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.processes.handover import Handed


class Listener(NamedTuple):
    """A listening socket, and the responder to its requests; without one, the application answers them."""

    socket: socket.socket
    responder: Responder | None


class Acceptor:
    """Accepts connections between `open` and `close`, which may alternate."""

    def __init__(
        self,
        state: HttpState,
        listeners: Sequence[Listener],
        application: Application | None,
        config: uvicorn.Config,
        *,
        starts_eagerly: bool,
    ) -> None:
        self._state = state
        self._listeners = listeners
        self._application = application
        self._config = config
        self._starts_eagerly = starts_eagerly
        self._servers: list[asyncio.Server] = []
        self._adopting: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Accept connections on all listeners. Raises OSError, and accepts on none then."""
        try:
            for number in range(len(self._listeners)):
                self._servers.append(await self._open(number))
        except BaseException:
            self.close()
            raise

    async def _open(self, number: int) -> asyncio.Server:
        own = self._listeners[number].socket.dup()  # a server closes its own
        try:
            return await self._state.loop.create_server(
                lambda: self._make_connection(number), sock=own, ssl=self._config.ssl, backlog=self._config.backlog
            )
        except BaseException:
            own.close()
            raise

    def close(self) -> None:
        """Leave further connections to other workers; those that are open stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    @property
    def is_open(self) -> bool:
        """It accepts connections."""
        return bool(self._servers)

    async def end(self) -> None:
        """Close the listening sockets, which the launcher has, too; those handed over are connections on return."""
        self.close()
        for listener in self._listeners:
            listener.socket.close()
        if self._adopting:
            await asyncio.wait(self._adopting)

    def adopt(self, handed: Handed) -> None:
        """Serve a connection that another worker accepted."""
        task = self._state.loop.create_task(self._adopt(handed))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, handed: Handed) -> None:
        def connect() -> Connection:
            connection = self._make_connection(handed.listener)
            connection.fresh, connection.idle_before = handed.is_new, handed.idle_seconds
            return connection

        try:
            await self._state.loop.connect_accepted_socket(connect, handed.socket)
        except OSError:  # the client is gone
            with suppress(OSError):
                handed.socket.close()

    def _make_connection(self, number: int) -> Connection:
        responder = self._listeners[number].responder
        eager = self._starts_eagerly
        return Connection(self._state, self._application, responder, listener=number, starts_eagerly=eager)
