"""Collects access log lines of answered requests, and writes them into the index for delivery.

Each worker buffers its lines for `FLUSH_SECONDS` and then writes them in one change: a killed worker loses that much.
Server access logs are best effort on AWS too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.interface import Index
from sluice_s3.app.s3.logging import record
from sluice_s3.app.s3.logging.xml import MARK
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

logger = logging.getLogger("sluice.s3")

FLUSH_SECONDS = 1.0
"""Seconds between two writes."""
MAX_PENDING = 8 * 1024**2
"""Characters that may be buffered. Further lines are lost, and the server's log reports it."""
LAST_FLUSH_SECONDS = 5.0
"""Seconds that a stopping worker has to write the rest."""


class _BucketLines(NamedTuple):
    """Buffered lines of one bucket."""

    name: str
    lines: list[str]


class Collector:
    """The buffered lines of one worker."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._pending: dict[int, _BucketLines] = {}
        self._size = 0
        self._lost_lines = 0

    def collect(
        self,
        request: S3Request,
        response: Response | None,
        code: str,
        sent: int,
        seconds: float,
        response_seconds: float,
    ) -> None:
        """Add the lines of an answered request, if its bucket has a log."""
        bucket = request.bucket_row or request.named_bucket
        if bucket is not None and MARK in bucket.settings:
            self._add_line(bucket, record.format_line(request, bucket, response, code, sent, seconds, response_seconds))
        for secondary in request.secondary_records:
            self._add_line(secondary.bucket, record.secondary_line(request, secondary, response, seconds))

    def _add_line(self, bucket: Bucket, line: str) -> None:
        if self._size + len(line) > MAX_PENDING:
            self._lost_lines += 1
            return
        self._size += len(line)
        self._pending.setdefault(bucket.id, _BucketLines(bucket.name, [])).lines.append(line)

    async def run(self) -> None:
        """Write the buffered lines periodically until cancelled, then the rest."""
        try:
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                await self._try_flush()
        finally:
            try:
                async with asyncio.timeout(LAST_FLUSH_SECONDS):
                    await self._try_flush()
            except TimeoutError:
                logger.warning("access logs: the last lines are lost")

    async def _try_flush(self) -> None:
        try:
            await self.flush()
        except DomainError as error:
            logger.warning("access logs: %s, to be tried again", type(error).__name__)
        except Exception:
            logger.exception("access logs: to be tried again")
        if self._lost_lines:
            logger.warning("access logs: %d lines are lost, because too many wait", self._lost_lines)
            self._lost_lines = 0

    async def flush(self) -> None:
        """Write the buffered lines. Raises DomainError, and then keeps them buffered."""
        if not self._pending:
            return
        pending, size = self._pending, self._size
        self._pending, self._size = {}, 0
        try:
            await self._index.add_log_lines(
                [(number, bucket_lines.name, "".join(bucket_lines.lines)) for number, bucket_lines in pending.items()]
            )
        except BaseException:
            for number, bucket_lines in self._pending.items():
                pending.setdefault(number, _BucketLines(bucket_lines.name, [])).lines.extend(bucket_lines.lines)
            self._pending, self._size = pending, self._size + size
            raise
