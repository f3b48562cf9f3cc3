"""The wakeup of a store's journal writer on this host.

A wakeup is a datagram to a socket without a file: the socket ends with its process, and no sender waits when there is
none. Processes of other hosts do not receive it; journals there are written about every second.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from xxhash import xxh3_128_hexdigest


class JournalWakeup:
    """The wakeup of one store, for the server whose runtime directory is `run_dir`."""

    def __init__(self, run_dir: Path, store: str) -> None:
        digest = xxh3_128_hexdigest(f"{run_dir.absolute()}\0{store}".encode())
        self._name = f"\0sluice-{digest}"
        self._sender: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the journal writer."""
        if self._sender is None:
            self._sender = _socket()
        try:
            self._sender.sendto(b"", self._name)
        except OSError:
            pass  # no writer listens here, or enough wakeups are queued

    async def wait(self, seconds: float) -> bool:
        """Wait for a wakeup, at most `seconds`; return whether one came."""
        self._listen()
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _listen(self) -> None:
        if self._listener is not None:
            return
        listener = _socket()
        try:
            listener.bind(self._name)
        except OSError:  # held by the process before this one, which still runs
            listener.close()
            return
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._receive)

    def _receive(self) -> None:
        assert self._listener is not None
        try:
            while True:
                self._listener.recv(1)
        except OSError:
            self._event.set()

    def stop_listening(self) -> None:
        """Stop listening: another process is the journal writer now."""
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()

    def close(self) -> None:
        """Stop listening and sending."""
        self.stop_listening()
        if self._sender is not None:
            self._sender.close()
            self._sender = None


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
