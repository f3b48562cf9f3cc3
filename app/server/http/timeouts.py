"""All time limits of a connection, checked once a second. That is cheaper than a timer per request."""

from __future__ import annotations

from sluice_s3.app.s3.errors import RequestTimeout
from sluice_s3.app.server.http.interfaces import OpenConnection, RunningRequest
from sluice_s3.app.server.http.state import HttpState

DRAIN_IDLE_SECONDS = 5.0
"""Seconds that a patient drain leaves an idle connection. Its client may be about to use it."""
FIRST_REQUEST_GRACE_SECONDS = 1.0
"""Seconds that any drain leaves a new connection."""


def enforce_timeouts(connection: OpenConnection, state: HttpState) -> None:
    """End what has made no progress for too long."""
    settings, now = state.settings, state.now
    active = connection.active
    if connection.linger_until:
        if now >= connection.linger_until:
            connection.transport.abort()
    elif connection.is_reader_stuck(now, settings.body_timeout) or _reads_too_long(connection, state):
        connection.abort()
    elif active is not None:
        if active.wants_body or (active.response_complete and not active.complete):
            _watch_body(connection, active, state)
    elif connection.in_head:
        if now - connection.since > settings.header_timeout:
            connection.refuse(RequestTimeout())
    elif not connection.input_closed:
        limit = settings.header_timeout if connection.fresh else settings.keep_alive_timeout
        if state.draining:
            close_if_idle(connection, state)
        elif now - connection.since > limit:
            _close_idle(connection)
    connection.swept_at = now


def _reads_too_long(connection: OpenConnection, state: HttpState) -> bool:
    """Return whether an answer in memory waits for its reader for longer than a request may last."""
    age = state.now - connection.since
    is_over = connection.active is None and age > state.settings.request_max_age
    return is_over and connection.transport.get_write_buffer_size() > 0


def _watch_body(connection: OpenConnection, active: RunningRequest, state: HttpState) -> None:
    """Count the time of waiting for the client, not for a disk or memory. Ends a wait that is too long."""
    active.waited += state.now - connection.swept_at
    if state.now - connection.progress > state.settings.body_timeout or active.is_late():
        if active.head_sent:
            connection.abort()
        else:
            connection.refuse(RequestTimeout())


def close_if_idle(connection: OpenConnection, state: HttpState) -> None:
    """Close an idle connection of a stopping worker, after a grace. Others close with their next answer."""
    if connection.active is not None or connection.in_head or connection.input_closed:
        return
    now = state.now
    if state.patient and connection.is_read_from():
        connection.since = now  # the client sends no further request before it has read all of this
        return
    grace = DRAIN_IDLE_SECONDS if state.patient else FIRST_REQUEST_GRACE_SECONDS if connection.fresh else 0.0
    if now - max(connection.since, state.drain_since) >= grace:
        _close_idle(connection)


def _close_idle(connection: OpenConnection) -> None:
    if not connection.is_readable():  # else a request has arrived that the loop has not seen
        connection.end(linger=False)
