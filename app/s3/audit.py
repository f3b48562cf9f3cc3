"""The audit trail of requests: changes of buckets, and operations of IAM, STS and MinIO's admin API.

A change that is made adds its event in its own transaction (`app.index.engine.audit_trail`). A refused one, and one
that changed no row, is noted here and written right after. Callers that no signature identifies are in the access log
alone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sluice_s3.app.access.account import caller_of
from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.audit.rows import SUCCESS, NewAuditEvent
from sluice_s3.app.index.engine.audit_trail import AuditTrail, audited
from sluice_s3.app.index.interface import Index
from sluice_s3.app.s3.wire.request import S3Request

logger = logging.getLogger("sluice.s3")

T = TypeVar("T")

FLUSH_SECONDS = 1.0
"""Seconds between two writes."""
MAX_PENDING = 1000
"""Events that may wait. Further ones are lost, and the server's log reports it."""
MAX_OF_KEY = 120
"""Events of one access key in a minute. Further changes have no states, and further refusals are lost: everybody with a
key can make them, and no events of others may go for them."""
MINUTE_SECONDS = 60.0
MAX_KEYS = 10_000
"""Access keys that are counted."""
LAST_FLUSH_SECONDS = 5.0
"""Seconds that a stopping worker has to write the rest."""


class AuditRecorder:
    """The events of one worker that no transaction wrote."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._pending: list[NewAuditEvent] = []
        self._lost = 0
        self._counts: dict[str, int] = {}
        self._counted_from = 0.0

    def is_busy(self, access_key: str) -> bool:
        """Count an event of a key, and return whether there are too many of it."""
        now = time.monotonic()
        if now - self._counted_from >= MINUTE_SECONDS or len(self._counts) >= MAX_KEYS:
            self._counts.clear()
            self._counted_from = now
        count = self._counts[access_key] = self._counts.get(access_key, 0) + 1
        return count > MAX_OF_KEY

    def add(self, trail: AuditTrail, outcome: str = SUCCESS) -> None:
        """Note a change that added no event itself, or the code of its refusal."""
        if len(self._pending) >= MAX_PENDING or (outcome != SUCCESS and self.is_busy(trail.access_key)):
            self._lost += 1
        else:
            self._pending.append(trail.event(outcome))

    async def run(self) -> None:
        """Write the noted events until cancelled, then the rest."""
        try:
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                await self._try_flush()
        finally:
            try:
                async with asyncio.timeout(LAST_FLUSH_SECONDS):
                    await self._try_flush()
            except TimeoutError:
                logger.warning("audit log: the last events are lost")

    async def _try_flush(self) -> None:
        try:
            await self.flush()
        except DomainError as error:
            logger.warning("audit log: %s, to be tried again", type(error).__name__)
        except Exception:
            logger.exception("audit log: to be tried again")
        if self._lost:
            logger.warning("audit log: %d events are lost, because too many wait", self._lost)
            self._lost = 0

    async def flush(self) -> None:
        """Write the noted events. Raises DomainError, and then keeps them."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        try:
            await self._index.add_audit_events(pending)
        except BaseException:
            self._pending = pending + self._pending
            raise


def trail_of(request: S3Request, source: str, action: str, resource: str = "") -> AuditTrail:
    """Return the trail of a request whose caller is known."""
    account_id, principal = request.account_id or "", request.principal
    if not resource and request.bucket is not None:
        resource = f"arn:aws:s3:::{request.bucket}"
    return AuditTrail(
        source=source,
        action=action,
        resource=resource,
        principal=(caller_of(account_id) if principal is None else principal.caller).arn if account_id else "",
        account_id=account_id,
        access_key=request.access_key or "",
        address=request.client,
        request_id=request.request_id,
    )


async def record_change(
    recorder: AuditRecorder, trail: AuditTrail, call: Callable[[], Awaitable[T]], code_of: Callable[[Exception], str]
) -> T:
    """Return what `call` returns, with its changes and its refusal in the audit log.

    `code_of` returns the outcome for an error, which is raised again.
    """
    await enter_task()  # only in a task a context variable is private
    trail.with_states = not recorder.is_busy(trail.access_key)
    with audited(trail):
        try:
            result = await call()
        except Exception as error:
            recorder.add(trail, code_of(error))
            raise
    if not trail.written:
        recorder.add(trail)
    return result
