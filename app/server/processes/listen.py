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


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Return `count` SO_REUSEPORT sockets that listen on one port, chosen here if `port` is 0.

    SO_REUSEPORT would let two servers of one user share a port silently, so the address is first bound without it.
    """
    family, address = _address(host, port)
    sockets: list[socket.socket] = []
    try:
        with _bound(family, address, shared=False):
            pass
        for _ in range(count):
            if sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            sockets.append(_bound(family, address, shared=True))
        for listener in sockets:
            listener.listen(BACKLOG)
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise CannotListen(f"cannot listen on {url_host(host)}:{port}: {error.strerror}") from error
    return sockets


class Listeners:
    """The sockets of all listeners: those that were handed over, else sockets of its own."""

    def __init__(self, given: Mapping[str, socket.socket]) -> None:
        self.given = given
        self.sockets: list[socket.socket] = []

    def open(self, name: str, host: str, port: int, count: int, *, shared: bool = False) -> tuple[tuple[int, ...], str]:
        """Return a descriptor for each of `count` processes, and the address. Raises CannotListen.

        If `shared` they have one socket; else each has its own, and the kernel spreads connections over them. They also
        share a socket that was handed over: nobody but its owner may bind others beside it.
        """
        if name in self.given:
            bound = [self.given[name]]
            host = bound[0].getsockname()[0]
        else:
            bound = listen(host, port, 1 if shared else count)
        self.sockets += bound
        fds = tuple(one.fileno() for one in bound) * (count // len(bound))
        return fds, f"{url_host(host)}:{bound[0].getsockname()[1]}"


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


def _bound(family: socket.AddressFamily, address: tuple[object, ...], *, shared: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setblocking(False)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def write_addresses(run_dir: Path, addresses: dict[str, str]) -> None:
    """Write the URLs of the listeners by their names, for commands beside the server. Raises OSError."""
    with os.fdopen(replace_file(run_dir / ADDRESSES), "w") as file:
        file.writelines(f"{name} {url}\n" for name, url in addresses.items())


def read_addresses(run_dir: Path) -> dict[str, str]:
    """Return the URLs that the last server of this directory listened on. Raises OSError."""
    with os.fdopen(open_file(run_dir / ADDRESSES, os.O_RDONLY)) as file:
        return dict(line.split(maxsplit=1) for line in file.read().splitlines())
