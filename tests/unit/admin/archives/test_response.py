"""The answer with an archive, to clients that leave."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from starlette.types import Message

from sluice_s3.app.admin.archives.archive import Archive, Progress, Selection
from sluice_s3.app.admin.archives.routes import ArchiveResponse
from tests.unit.admin.archives.test_archive import Listener, source_of


async def test_a_client_that_leaves_before_the_first_byte_ends_its_download() -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await asyncio.sleep(60)  # the connection takes nothing

    listener, held, progress, freed = Listener({"a": b"one"}), ExitStack(), Progress(), []
    held.callback(freed.append, True)
    async with source_of(listener) as source:
        archive = Archive(source, Selection(("a",), (), ""), progress)
        await ArchiveResponse(archive, "a.zip", held)({"type": "http"}, receive, send)
    assert (progress.state, freed, listener.requests) == ("broken", [True], [])
