"""Streams of events: their form, their limits, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sluice_s3.app.admin.live import (
    HEARTBEAT,
    MAX_SESSION_STREAMS,
    MAX_STREAMS,
    LiveResponse,
    LiveStreams,
    render_event,
)
from tests.support.waiting import eventually_async


class Reader:
    """The server's side of a stream: remembers what is sent."""

    def __init__(self, response: LiveResponse, *, live: bool = True) -> None:
        self.sent: list[dict[str, Any]] = []
        scope = {"type": "http", "extensions": {"sluice.live": {}} if live else {}}
        self.task = asyncio.create_task(response(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def status(self) -> int:
        return next(message["status"] for message in self.sent if message["type"] == "http.response.start")


async def numbers(*values: int, then_wait: bool = True) -> AsyncIterator[bytes]:
    for value in values:
        yield render_event(b"%d" % value)
    if then_wait:
        await asyncio.Event().wait()


async def allowed() -> bool:
    return True


def test_an_event_is_one_line_of_data() -> None:
    assert render_event(b"{}", "sample", 7) == b"event: sample\nid: 7\ndata: {}\n\n"
    assert render_event(b"[1]") == b"data: [1]\n\n"
    with pytest.raises(AssertionError):
        render_event(b"one\nevent: other")


async def test_a_stream_leaves_the_running_requests_before_its_first_event() -> None:
    reader = Reader(LiveResponse(LiveStreams(), "s", numbers(1, 2, then_wait=False), allowed))
    await reader.task
    assert [message["type"] for message in reader.sent[:2]] == ["http.response.start", "sluice.live"]
    assert reader.body == b"data: 1\n\ndata: 2\n\n"
    assert reader.sent[-1].get("more_body", False) is False
    plain = Reader(LiveResponse(LiveStreams(), "s", numbers(1, then_wait=False), allowed), live=False)
    await plain.task
    assert "sluice.live" not in [message["type"] for message in plain.sent], "another server does not know it"


async def test_a_stream_without_events_beats_and_ends_with_its_session() -> None:
    answers = iter([True, True, False])

    async def is_allowed() -> bool:
        return next(answers)

    streams = LiveStreams(heartbeat=0.01)
    reader = Reader(LiveResponse(streams, "s", numbers(1), is_allowed))
    await asyncio.wait_for(reader.task, 5)
    assert reader.body == b"data: 1\n\n" + 2 * HEARTBEAT
    assert len(streams) == 0


async def test_streams_are_bounded_by_session_and_in_all() -> None:
    streams = LiveStreams()
    readers = [Reader(LiveResponse(streams, "s0", numbers(), allowed)) for _ in range(MAX_SESSION_STREAMS)]
    for number in range(1, MAX_STREAMS // MAX_SESSION_STREAMS):
        readers += [Reader(LiveResponse(streams, f"s{number}", numbers(), allowed)) for _ in range(MAX_SESSION_STREAMS)]
        if number == 1:
            await eventually_async(lambda: len(streams) == 2 * MAX_SESSION_STREAMS)
            one_more = Reader(LiveResponse(streams, "s0", numbers(), allowed))
            await one_more.task
            assert one_more.status == 429
            assert b"Close a tab" in one_more.body
    await eventually_async(lambda: len(streams) == MAX_STREAMS)
    other = Reader(LiveResponse(streams, "other", numbers(), allowed))
    await other.task
    assert other.status == 429
    for reader in readers:
        reader.task.cancel()
    await asyncio.gather(*(reader.task for reader in readers), return_exceptions=True)
    assert len(streams) == 0
