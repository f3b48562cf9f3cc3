"""A server that answers what a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def answering(*answers: Callable[[socket.socket, bytes], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives each request, by a connection that stays, the next of the answers; and what it was sent."""
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        left = list(answers)
        while left:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            with wire:
                while left and wire.fileno() >= 0 and (request := _request(wire)):
                    seen.append(request)
                    try:
                        left.pop(0)(wire, request)
                    except OSError:
                        break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        listener.close()


def _request(wire: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = wire.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += wire.recv(65536)
    return head + b"\r\n\r\n" + body


def saying(text: bytes, *, close: bool = False) -> Callable[[socket.socket, bytes], None]:
    def answer(wire: socket.socket, _: bytes) -> None:
        wire.sendall(text)
        if close:
            wire.close()

    return answer


OK = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
