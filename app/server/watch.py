"""Every limit of time of a connection, looked at about once a second: cheaper than a timer a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3.errors import RequestTimeout

if TYPE_CHECKING:
    from app.server.protocol import Connection

DRAIN_IDLE = 5.0
"""Seconds that a patient drain leaves an idle connection, whose client may be about to use it."""
FRESH_GRACE = 1.0
"""Seconds that any drain leaves a connection that was just made."""


def watch(connection: Connection, now: float) -> None:
    """End what has stood still for too long."""
    settings = connection.state.settings
    active = connection.active
    if connection.linger_until:
        if now >= connection.linger_until:
            connection.transport.abort()
    elif connection.reader_stuck(now, settings.body_timeout):
        connection.abort()
    elif active is not None:
        waits = active.wants_body or (active.response_complete and not active.complete)
        if waits and now - connection.progress > settings.body_timeout:
            if active.started:
                connection.abort()
            else:
                connection.refuse(RequestTimeout())
    elif connection.heading:
        if now - connection.since > settings.header_timeout:
            connection.refuse(RequestTimeout())
    elif not connection.deaf:
        limit = settings.header_timeout if connection.fresh else settings.keep_alive_timeout
        if connection.state.draining:
            drain(connection, now)
        elif now - connection.since > limit:
            _close_idle(connection)


def drain(connection: Connection, now: float) -> None:
    """The worker stops: an idle connection is closed after a grace; others are with their next answer."""
    if connection.active is not None or connection.heading or connection.deaf:
        return
    state = connection.state
    if state.patient and connection.is_read_from():
        connection.since = now  # its client will not be about to ask for more before it has read all of this
        return
    grace = DRAIN_IDLE if state.patient else FRESH_GRACE if connection.fresh else 0.0
    if now - max(connection.since, state.drain_since) >= grace:
        _close_idle(connection)


def _close_idle(connection: Connection) -> None:
    if not connection.readable():  # else a request has come that the loop has not seen yet
        connection.end(linger=False)
