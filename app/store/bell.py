"""Rung by who waits for the journals of a store, heard by whoever of this host writes them.

A datagram to a socket that has no file: it goes with its process, and nobody waits when there is none. Processes of
other hosts do not hear it; there the journals are written about every second, as ever.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from xxhash import xxh3_128_hexdigest


class Bell:
    """Of one store of the server whose runtime directory is `run_dir`."""

    def __init__(self, run_dir: Path, store: str) -> None:
        digest = xxh3_128_hexdigest(f"{run_dir.absolute()}\0{store}".encode())
        self._name = f"\0sluice-{digest}"
        self._sender: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Somebody waits."""
        if self._sender is None:
            self._sender = _socket()
        try:
            self._sender.sendto(b"", self._name)
        except OSError:
            pass  # nobody listens here, or it was rung often enough

    async def wait(self, seconds: float) -> bool:
        """Whether it is rung within so many seconds."""
        self._listen()
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def _listen(self) -> None:
        if self._listener is not None:
            return
        listener = _socket()
        try:
            listener.bind(self._name)
        except OSError:  # by the process before us, which is not gone yet
            listener.close()
            return
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._hear)

    def _hear(self) -> None:
        assert self._listener is not None
        try:
            while True:
                self._listener.recv(1)
        except OSError:
            self._rung.set()

    def deafen(self) -> None:
        """Listen no more: it is another process's turn."""
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()

    def close(self) -> None:
        """It is not rung any more, either."""
        self.deafen()
        if self._sender is not None:
            self._sender.close()
            self._sender = None


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
