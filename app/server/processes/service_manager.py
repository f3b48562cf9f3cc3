"""What systemd hands to a service and hears from it: sockets and notifications.

The protocols are those of sd_listen_fds(3) and sd_notify(3).
"""

from __future__ import annotations

import os
import socket

from sluice_s3.app.server.processes.listen import ADMIN, S3, WEBSITES, CannotListen

FIRST_FD = 3


def take_sockets() -> dict[str, socket.socket]:
    """Return the listening sockets that systemd opened for this process, by listener; empty without any.

    `FileDescriptorName=` says which listener it is; a socket of any other name is that of S3.

    They are taken once: children see no trace of them. Raises CannotListen for what is no TCP listener, and for two of
    one name.
    """
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    names = os.environ.pop("LISTEN_FDNAMES", "").split(":")
    if pid != str(os.getpid()) or not count.isdigit():
        return {}
    found: dict[str, socket.socket] = {}
    try:
        for number in range(int(count)):
            given = names[number] if number < len(names) else ""
            name = given if given in (ADMIN, WEBSITES) else S3
            if name in found:
                raise CannotListen(f"systemd hands over two sockets for {name}: one listener has one socket here")
            found[name] = _open(FIRST_FD + number, given or name)
            _check(found[name], given or name)
    except CannotListen:
        for one in found.values():
            one.close()
        raise
    return found


def _open(fd: int, name: str) -> socket.socket:
    try:
        os.set_inheritable(fd, False)
        return socket.socket(fileno=fd)
    except OSError as error:
        raise CannotListen(f"the socket {name!r} of systemd cannot be used: {error.strerror}") from None


def _check(listener: socket.socket, name: str) -> None:
    is_listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if not is_listening or listener.family not in (socket.AF_INET, socket.AF_INET6):
        raise CannotListen(f"the socket {name!r} of systemd cannot be used: it does not listen on TCP")
    listener.setblocking(False)


def notify(state: str) -> None:
    """Tell the service manager a state such as `READY=1`, if there is one that listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        try:
            channel.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)
        except OSError:
            pass  # a service manager that does not listen must not stop the service
