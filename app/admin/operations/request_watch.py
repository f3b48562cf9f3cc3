"""Reads the workers' tail of requests for everybody who watches it, while anybody does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sluice_s3.app.access.account import caller_of
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index

logger = logging.getLogger("sluice.admin")

READ_SECONDS = 0.2
"""Seconds between two readings of the workers' memory."""
MAX_WAITING = 1000
"""Requests that wait for one watcher. Older ones are dropped, and counted."""
PER_BATCH = 200
"""Requests of one event."""
MAX_KNOWN = 1000
KNOWN_SECONDS = 60.0
"""Seconds for which the holder of a key is remembered."""
LOOKUPS_PER_READ = 20

Request = dict[str, Any]


class Tail(Protocol):
    """The tail of requests of all processes, `app.server.shared_memory.request_tail.TailReader`."""

    def want(self) -> None:
        """Make the workers write for a while."""
        ...

    def stop(self) -> None:
        """Make the workers stop."""
        ...

    def read(self) -> tuple[list[Request], int]:
        """Return the new requests, and how many are lost."""
        ...


class RequestFilter(NamedTuple):
    """What a watcher wants to see; empty texts and 0 for all."""

    bucket: str = ""
    prefix: str = ""
    principal: str = ""
    """Part of an ARN or of an access key id, in lower case."""
    operation: str = ""
    status: str = ""
    """A status such as `404`, a class such as `5xx`, or `error` for 4xx and 5xx."""
    slower_than_ms: float = 0.0
    request: str = ""
    """A request id."""

    def matches(self, request: Request) -> bool:
        """Return whether a watcher wants a request."""
        return (
            (not self.bucket or request["bucket"] == self.bucket)
            and (not self.prefix or (request["key"] or "").startswith(self.prefix))
            and (not self.operation or request["operation"] == self.operation)
            and (not self.status or self._has_status(request["status"]))
            and (not self.request or request["request"] == self.request)
            and request["ms"] >= self.slower_than_ms
            and (not self.principal or self.principal in f"{request['principal']} {request['access_key']}".lower())
        )

    def _has_status(self, status: int) -> bool:
        if self.status == "error":
            return status >= 400
        return str(status)[0] == self.status[0] if self.status.endswith("xx") else str(status) == self.status


@dataclass(eq=False)
class Watcher:
    """Somebody who watches: the requests that wait for the next event."""

    wanted: RequestFilter
    waiting: deque[Request] = field(default_factory=lambda: deque(maxlen=MAX_WAITING))
    missed: int = 0
    """Requests that are not shown: overwritten before they were read, or too many for the watcher."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, requests: list[Request], lost: int) -> None:
        """Take what was read."""
        self.missed += lost
        for request in filter(self.wanted.matches, requests):
            self.missed += len(self.waiting) == MAX_WAITING
            self.waiting.append(request)
        if self.waiting or self.missed:
            self.ready.set()

    async def batches(self) -> AsyncGenerator[tuple[list[Request], int]]:
        """Yield requests as they come, and how many are not shown since the last ones."""
        while True:
            await self.ready.wait()
            batch = [self.waiting.popleft() for _ in range(min(PER_BATCH, len(self.waiting)))]
            missed, self.missed = self.missed, 0
            if not self.waiting:
                self.ready.clear()
            yield batch, missed


class RequestWatch:
    """The watchers of this process. `open_tail` may raise OSError."""

    def __init__(self, index: Index, open_tail: Callable[[], Tail]) -> None:
        self._index = index
        self._open_tail = open_tail
        self._tail: Tail | None = None
        self._watchers: set[Watcher] = set()
        self._reading: asyncio.Task[None] | None = None
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """ARNs by access keys, and until when they are remembered."""

    def watch(self, wanted: RequestFilter) -> Watcher:
        """Begin to watch, until `leave`. Raises OSError when there is no space for the shared memory."""
        if self._tail is None:
            self._tail = self._open_tail()
        watcher = Watcher(wanted)
        self._watchers.add(watcher)
        if self._reading is None:
            self._tail.read()  # what was written before is not new
            self._tail.want()
            self._reading = asyncio.create_task(self._read(self._tail))
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """End a watch; with the last one the workers write no more."""
        self._watchers.discard(watcher)
        if not self._watchers:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self._tail is not None:
            self._tail.stop()

    async def _read(self, tail: Tail) -> None:
        while True:
            await asyncio.sleep(READ_SECONDS)
            tail.want()
            requests, lost = tail.read()
            try:
                await self._name_callers(requests)
            except DomainError as error:
                logger.warning("live requests: %s", type(error).__name__)
            for request in requests:
                known = self._known.get(request["access_key"] or "")
                request["principal"] = known[1] if known is not None else ""
            requests.sort(key=lambda request: str(request["time"]))
            for watcher in self._watchers:
                watcher.give(requests, lost)

    async def _name_callers(self, requests: list[Request]) -> None:
        """Look up whom the access keys belong to, some at a time. Raises DomainError."""
        now = time.monotonic()
        keys = {request["access_key"] for request in requests if request["access_key"]}
        unknown = [key for key in keys if key not in self._known or self._known[key][0] < now]
        for key in unknown[:LOOKUPS_PER_READ]:
            found = await self._index.access_key(key)
            arn = ""
            if found is not None:
                holder = found.holder
                arn = caller_of(found.account_id).arn if holder is None else build_principal(holder).caller.arn
            self._known[key] = (now + KNOWN_SECONDS, arn)
            self._known.move_to_end(key)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
