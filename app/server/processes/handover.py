"""Open connections that pass from worker to worker, as descriptors over Unix sockets (unix(7), SCM_RIGHTS)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import NamedTuple

MAX_TAKEN = 64
"""Connections that a worker takes at a time, so that its loop also does other things."""


class Inboxes(NamedTuple):
    """The descriptors of all inboxes: a worker receives from its own and sends to the others."""

    receiving: tuple[int, ...] = ()
    sending: tuple[int, ...] = ()

    @classmethod
    def open(cls, count: int) -> Inboxes:
        """Make an inbox for each of `count` workers; none for a single one. Raises OSError.

        They outlive the workers' processes, as the listening sockets do: what is in one when its worker dies is the
        next one's.
        """
        if count < 2:
            return cls()
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        for pair in pairs:
            for end in pair:
                end.setblocking(False)
        return cls(tuple(one.detach() for one, _ in pairs), tuple(other.detach() for _, other in pairs))

    @property
    def descriptors(self) -> tuple[int, ...]:
        """All of them."""
        return self.receiving + self.sending

    def close(self) -> None:
        """Close them in this process."""
        for descriptor in self.descriptors:
            os.close(descriptor)


MAX_IDLE_SECONDS = 2**16 - 1
NO_INBOXES = Inboxes()


class Handed(NamedTuple):
    """A connection that another worker handed over."""

    socket: socket.socket
    listener: int
    """The number of the listener that accepted it."""
    is_new: bool
    """Nothing has arrived on it yet."""
    idle_seconds: int
    """For how long it has been waiting for a request."""


class Inbox:
    """The inbox of one worker, and the way into those of the others."""

    def __init__(self, inboxes: Inboxes, worker: int) -> None:
        self._own = socket.socket(fileno=inboxes.receiving[worker])
        for number, descriptor in enumerate(inboxes.receiving):
            if number != worker:
                os.close(descriptor)
        self._others = [socket.socket(fileno=fd) for fd in inboxes.sending]

    def fileno(self) -> int:
        """Return the descriptor that is readable once a connection is there."""
        return self._own.fileno()

    def send(self, worker: int, descriptor: int, listener: int, *, is_new: bool, idle_seconds: float) -> bool:
        """Hand over a connection to a worker; return whether its inbox took it."""
        message = bytes((listener, is_new)) + min(int(idle_seconds), MAX_IDLE_SECONDS).to_bytes(2)
        try:
            socket.send_fds(self._others[worker], [message], [descriptor])
        except OSError:  # it is full, or too many descriptors are under way
            return False
        return True

    def take(self) -> Iterator[Handed]:
        """Take the connections that are there, at most MAX_TAKEN. Raises OSError without a free descriptor.

        The kernel would close a connection for which there is none (unix(7), MSG_CTRUNC).
        """
        for _ in range(MAX_TAKEN):
            os.close(os.dup(self._own.fileno()))
            try:
                data, descriptors, _, _ = socket.recv_fds(self._own, 4, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            if not descriptors:
                return
            handed = socket.socket(fileno=descriptors[0])
            handed.setblocking(False)
            yield Handed(handed, data[0], bool(data[1]), int.from_bytes(data[2:4]))

    def close(self) -> None:
        """Close this process's ends."""
        for end in (self._own, *self._others):
            end.close()
