"""Limits of heads, pipelined requests and the framing of bodies (law 9: nothing unbounded)."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from sluice_s3.app.s3.errors import RequestHeaderSectionTooLarge, SlowDown
from sluice_s3.app.server.http.request_head import Framing
from sluice_s3.app.server.http.state import HttpState

MAX_PIPELINED = 64
"""Requests that may wait behind the active one."""
CHUNK_OVERHEAD_BYTES = 8
"""Bytes allowed for one byte of a chunked body, with framing. Chunks of one byte need six."""
READ_BYTES = 256 * 1024
"""The most bytes that one read from the socket returns."""


class IncomingHead(Protocol):
    """A head that the parser has read, and the requests before it."""

    target: bytes
    fields: list[bytes]
    """Names and values, by turns."""
    suspect: bool
    """The head may exceed its limit."""

    @property
    def pipeline(self) -> Sized:
        """The requests that wait behind the active one."""
        ...


def check_limits(head: IncomingHead, framing: Framing, state: HttpState) -> None:
    """Require room for one more request. Raises RequestHeaderSectionTooLarge, SlowDown."""
    fields = head.fields
    if len(fields) > 2 * state.max_headers:
        raise RequestHeaderSectionTooLarge
    if head.suspect:
        size = len(head.target) + sum(map(len, fields)) + 2 * len(fields)
        if size > state.max_header_bytes:
            raise RequestHeaderSectionTooLarge
    waiting = len(head.pipeline)
    if waiting >= MAX_PIPELINED:
        raise SlowDown
    running = len(state.running) + waiting
    if running >= state.max_requests and running - len(state.unauthenticated) >= state.max_requests:
        raise SlowDown
    if framing.length != 0 and state.memory.buffered > state.memory.budget:
        raise SlowDown


def is_mostly_framing(fed: int, received: int, max_header_bytes: int) -> bool:
    """Return whether chunk extensions and trailers exceed the head's limit and the size of their body.

    `fed` bytes came from the socket for `received` bytes of the body.
    """
    return fed > max_header_bytes + CHUNK_OVERHEAD_BYTES * received + READ_BYTES
