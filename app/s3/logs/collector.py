"""Lines of access logs from the answered request to the index, where they wait for their object.

Each worker keeps its lines in memory for `PERIOD` and then writes down all of them in one change: that much is lost
when it is killed. Server access logs are best effort on AWS too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from app.access.known import Known
from app.errors import DomainError, NotNow
from app.index.base import Index
from app.index.rows import Bucket
from app.s3.logs import record
from app.s3.logs.configuration import MARK
from app.s3.request import S3Request
from app.s3.response import Response

logger = logging.getLogger("sluice.s3")

PERIOD = 1.0
"""Seconds between two writes."""
MAX_PENDING = 8 * 1024**2
"""Characters that wait in memory at most. What comes then is lost, and said in the log of the server."""
LAST = 5.0
"""Seconds that a stopping worker takes to write what is left."""


class _Of(NamedTuple):
    name: str
    lines: list[str]


class Collector:
    """The lines of one worker."""

    def __init__(self, index: Index, known: Known) -> None:
        self._index = index
        self._known = known
        self._pending: dict[int, _Of] = {}
        self._size = 0
        self._lost = 0

    def note(
        self, request: S3Request, response: Response | None, code: str, sent: int, seconds: float, turned: float
    ) -> None:
        """Add the lines of an answered request, if its bucket has a log."""
        bucket = request.bucket_row or self._find(request)
        if bucket is not None and MARK in bucket.settings:
            self._add(bucket, record.line(request, bucket, response, code, sent, seconds, turned))
        for done in request.also_logged:
            self._add(done.bucket, record.also(request, done, response, seconds))

    def _find(self, request: S3Request) -> Bucket | None:
        """The bucket of a request that was refused before it came to it."""
        if request.bucket is None:
            return None
        try:
            return self._known.bucket_now(request.bucket)
        except (NotNow, DomainError):
            return None

    def _add(self, bucket: Bucket, line: str) -> None:
        if self._size + len(line) > MAX_PENDING:
            self._lost += 1
            return
        self._size += len(line)
        self._pending.setdefault(bucket.id, _Of(bucket.name, [])).lines.append(line)

    async def run(self) -> None:
        """Write down what came, again and again, until cancelled; then what is left."""
        try:
            while True:
                await asyncio.sleep(PERIOD)
                await self._attempt()
        finally:
            try:
                async with asyncio.timeout(LAST):
                    await self._attempt()
            except TimeoutError:
                logger.warning("access logs: the last lines are lost")

    async def _attempt(self) -> None:
        try:
            await self.flush()
        except DomainError as error:
            logger.warning("access logs: %s, to be tried again", type(error).__name__)
        except Exception:
            logger.exception("access logs: to be tried again")
        if self._lost:
            logger.warning("access logs: %d lines are lost, because too many wait", self._lost)
            self._lost = 0

    async def flush(self) -> None:
        """Write down what came. Raises DomainError, and keeps it then."""
        if not self._pending:
            return
        taken, size = self._pending, self._size
        self._pending, self._size = {}, 0
        try:
            await self._index.add_log_lines([(number, of.name, "".join(of.lines)) for number, of in taken.items()])
        except BaseException:
            for number, of in self._pending.items():
                taken.setdefault(number, _Of(of.name, [])).lines.extend(of.lines)
            self._pending, self._size = taken, self._size + size
            raise
