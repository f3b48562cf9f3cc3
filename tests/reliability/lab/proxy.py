"""A TCP proxy of one gateway's way to Postgres, which can be cut, delayed, or silent in one or both directions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

PIECE = 1 << 16
WAY_THERE, WAY_BACK = "there", "back"


class Proxy:
    """Listens on a port of its own and passes bytes on to a Unix socket, in a thread of its own."""

    def __init__(self, target: str) -> None:
        self.target = target
        """The socket's path, for connections to come."""
        self.delay = 0.0
        """Seconds that every piece waits."""
        self.port = 0
        self._silent: set[str] = set()
        self._refuses = False
        self._open: set[asyncio.StreamWriter] = set()
        self._passing: asyncio.Event | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(self._listen())

    def cut(self) -> None:
        """End every connection, and take no new one until `mend`."""
        self._do(self._cut())

    def silence(self, *ways: str) -> None:
        """Pass nothing on in these directions until `mend`; connections stay, and new ones are taken."""
        self._do(self._silence(set(ways)))

    def mend(self) -> None:
        """Pass everything on again, late bytes too."""
        self.delay = 0.0
        self._do(self._mend())

    def hand_over(self, target: str) -> None:
        """Lead new connections to another server, and end those to the old one."""
        self.target = target
        self._do(self._cut())
        self._do(self._mend())

    def close(self) -> None:
        """End."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self) -> None:
        self._passing = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        self._refuses = True
        for writer in self._open:
            writer.transport.abort()

    async def _silence(self, ways: set[str]) -> None:
        assert self._passing is not None
        self._silent = ways
        self._passing.clear()

    async def _mend(self) -> None:
        assert self._passing is not None
        self._refuses, self._silent = False, set()
        self._passing.set()

    async def _close(self) -> None:
        self._server.close()
        await self._cut()
        me = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not me]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        try:
            back_reader, back_writer = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, back_writer}
        self._open |= both
        try:
            with contextlib.suppress(asyncio.CancelledError):  # at the end: asyncio reports it with a traceback else
                await asyncio.gather(
                    self._pass(reader, back_writer, WAY_THERE), self._pass(back_reader, writer, WAY_BACK)
                )
        finally:
            self._open -= both
            for one in both:
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        assert self._passing is not None
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                while way in self._silent:
                    await self._passing.wait()
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()
