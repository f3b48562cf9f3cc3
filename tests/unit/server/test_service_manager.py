"""What systemd hands over: which sockets are taken, and which are refused in one line."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.app.server.processes import service_manager
from sluice_s3.app.server.processes.listen import CannotListen, Listeners
from sluice_s3.app.server.processes.service_manager import notify, take_sockets

FIRST = 200
"""A descriptor above all that tests have; systemd begins at 3."""


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Two listening sockets as systemd hands them over."""
    monkeypatch.setattr(service_manager, "FIRST_FD", FIRST)
    for number in range(2):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            os.dup2(listener.fileno(), FIRST + number)
    for name, value in {"PID": str(os.getpid()), "FDS": "2", "FDNAMES": "sluice.socket:admin"}.items():
        monkeypatch.setenv(f"LISTEN_{name}", value)
    yield monkeypatch
    for fd in (FIRST, FIRST + 1):
        try:
            os.close(fd)
        except OSError:  # its socket was closed
            pass


def test_sockets_are_taken_once_and_by_name(handed: pytest.MonkeyPatch) -> None:
    found = take_sockets()
    assert {name: one.fileno() for name, one in found.items()} == {"s3": FIRST, "admin": FIRST + 1}
    assert not any(os.get_inheritable(one.fileno()) for one in found.values())
    assert take_sockets() == {}
    assert "LISTEN_FDS" not in os.environ
    listeners = Listeners(found)
    fds, address = listeners.open("s3", "0.0.0.0", 1, 3)
    assert fds == (FIRST,) * 3
    assert address == f"127.0.0.1:{found['s3'].getsockname()[1]}"
    for one in found.values():
        one.close()


def test_sockets_of_another_process_are_left_alone(handed: pytest.MonkeyPatch) -> None:
    handed.setenv("LISTEN_PID", "1")
    assert take_sockets() == {}


def test_two_of_one_name_are_refused(handed: pytest.MonkeyPatch) -> None:
    handed.setenv("LISTEN_FDNAMES", "sluice.socket:more")
    with pytest.raises(CannotListen, match="two sockets for s3"):
        take_sockets()


def test_what_does_not_listen_on_tcp_is_refused(handed: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as idle:
        os.dup2(idle.fileno(), FIRST + 1)
    with pytest.raises(CannotListen, match="'admin' of systemd cannot be used: it does not listen"):
        take_sockets()


def test_what_is_no_socket_is_refused(handed: pytest.MonkeyPatch) -> None:
    with open("/dev/null") as file:
        os.dup2(file.fileno(), FIRST + 1)
    with pytest.raises(CannotListen, match="'admin' of systemd cannot be used: Socket operation on non-socket"):
        take_sockets()


@pytest.mark.parametrize("address", ["/nowhere/notify", "relative", ""])
def test_a_manager_that_does_not_listen_is_ignored(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")


def test_an_abstract_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"sluice-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(f"\0{name}")
        channel.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify("READY=1")
        assert channel.recv(100) == b"READY=1"
