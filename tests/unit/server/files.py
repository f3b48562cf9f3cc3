"""A responder whose answers are slices of one file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.store.reading import BodyStream
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.types import FileSlice


class Files:
    """Answers GET /OFFSET/COUNT with that slice of a file, /parts with slices and bytes, and /quick with two bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nowait = True
        """Of the slices: whether they may be sent on the event loop."""
        self.threads: StoreThreadPool | None = None
        """Read the slices; None: any thread."""
        self.waits = False
        """Whether an answer first lets others run, so that it is a task."""
        self.sent: list[int] = []
        """Bytes of each answer that has ended, in their order."""

    async def respond(self, request: S3Request) -> Response:
        if self.waits:
            await asyncio.sleep(0)
        if request.raw_path == b"/quick":
            response = Response(body=b"ok")
        elif request.raw_path == b"/parts":
            parts = [(5, 10), b"between", (100_000, 2_000_000), b"x" * 500_000, (0, 3)]
            total = sum(len(part) if isinstance(part, bytes) else part[1] for part in parts)
            response = Response(body=BodyStream(self._open(parts[0]), self._rest(parts[1:])), length=total)
        else:
            offset, count = map(int, request.raw_path[1:].split(b"/"))
            response = Response(body=BodyStream(self._open((offset, count))), length=count)
        length = 2 if response.length is None else response.length
        response.head = b"content-length: %d\r\n" % length
        return response

    def record(self, request: S3Request, response: Response | None, sent: int) -> None:
        self.sent.append(sent)

    async def _rest(self, parts: list[Any]) -> AsyncIterator[FileSlice | bytes]:
        for part in parts:
            yield self._open(part)

    def _open(self, part: Any) -> FileSlice | bytes:
        if isinstance(part, bytes):
            return part
        opened = FileSlice(os.open(self.path, os.O_RDONLY), *part)
        opened.nowait, opened.threads = self.nowait, self.threads
        return opened
