"""The proxy between gateways and Postgres does what is asked of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.lab.proxy import WAY_BACK, WAY_THERE, Proxy


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[str]:
    """A Unix socket that answers with what it hears."""
    path = str(tmp_path / "echo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()

        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(one,), daemon=True).start()

        def answer(one: socket.socket) -> None:
            with one:
                while data := one.recv(1000):
                    one.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield path
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: str) -> Iterator[Proxy]:
    made = Proxy(echo)
    yield made
    made.close()


def is_ended(one: socket.socket) -> bool:
    try:
        return one.recv(100) == b""
    except ConnectionError:
        return True


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), 20)


def test_it_passes_bytes_on(proxy: Proxy) -> None:
    with connect(proxy) as one:
        one.sendall(b"hello")
        assert one.recv(100) == b"hello"


@pytest.mark.parametrize("ways", [(WAY_THERE,), (WAY_BACK,), (WAY_THERE, WAY_BACK)])
def test_silence_keeps_bytes_until_it_ends(proxy: Proxy, ways: tuple[str, ...]) -> None:
    with connect(proxy) as one:
        one.sendall(b"a")
        assert one.recv(100) == b"a"
        proxy.silence(*ways)
        one.sendall(b"b")
        one.settimeout(0.2)
        with pytest.raises(TimeoutError):
            one.recv(100)
        one.settimeout(20)
        proxy.mend()
        assert one.recv(100) == b"b"


def test_a_cut_ends_connections_and_takes_none(proxy: Proxy) -> None:
    with connect(proxy) as one:
        one.sendall(b"a")
        assert one.recv(100) == b"a"
        proxy.cut()
        assert is_ended(one)
    with connect(proxy) as other:
        assert is_ended(other)
    proxy.mend()
    test_it_passes_bytes_on(proxy)
