"""The sockets of a server, bound by the launcher and passed from worker to worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from sluice_s3.app.private_files import open_file, replace_file

BACKLOG = 2048
ADDRESSES = "addresses"
"""The file of the runtime directory that names what a server listens on."""
S3, ADMIN, WEBSITES = "s3", "admin", "websites"
"""Names of the listeners."""


class CannotListen(Exception):
    """An address cannot be bound; the message says which and why."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address, on a port of the kernel's choice if `port` is 0.

    Raises CannotListen.
    """
    family, address = _address(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {url_host(host)}:{port}: {error.strerror}") from error
    return listener


class Listeners:
    """The sockets of all listeners: those that were handed over, else sockets of its own."""

    def __init__(self, given: Mapping[str, socket.socket]) -> None:
        self.given = given
        self.sockets: list[socket.socket] = []

    def open(self, name: str, host: str, port: int) -> tuple[int, str]:
        """Return the descriptor of a listener, which its processes share, and its address. Raises CannotListen."""
        bound = self.given.get(name)
        if bound is None:
            bound = listen(host, port)
        else:
            host = bound.getsockname()[0]
        self.sockets.append(bound)
        return bound.fileno(), f"{url_host(host)}:{bound.getsockname()[1]}"


def url_host(host: str) -> str:
    """Return a host as URLs write it."""
    return f"[{host}]" if ":" in host else host


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


def write_addresses(run_dir: Path, addresses: dict[str, str]) -> None:
    """Write the URLs of the listeners by their names, for commands beside the server. Raises OSError."""
    with os.fdopen(replace_file(run_dir / ADDRESSES), "w") as file:
        file.writelines(f"{name} {url}\n" for name, url in addresses.items())


def read_addresses(run_dir: Path) -> dict[str, str]:
    """Return the URLs that the last server of this directory listened on. Raises OSError."""
    with os.fdopen(open_file(run_dir / ADDRESSES, os.O_RDONLY)) as file:
        return dict(line.split(maxsplit=1) for line in file.read().splitlines())
