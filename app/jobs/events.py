"""Sends the messages of the outbox to their targets: at least once, those of a key in their order.

One worker does so at a time. A target that takes nothing is left alone for a while that doubles, and holds up no other.
What is sent is forgotten a batch at a time, so that a worker that is killed has its last batch sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import orjson

from app.crash import crash_point
from app.feature_settings import NotifyTarget
from app.index.base import Index
from app.index.deliveries import Message, note_of
from app.index.steps import now_ms
from app.jobs.targets import Target, open_target

logger = logging.getLogger("sluice.jobs")

BATCH = 256
AT_ONCE = 16
"""Keys of one target that are served at once."""
PAUSE, LONGEST = 0.5, 60.0
"""Seconds that a target is left alone after it took nothing, at first and at most."""
PATIENCE = 0.8
"""Seconds that a round waits for those that are being served, before the turn is asked for again."""
FORGOTTEN = 600.0
"""Seconds between two looks for messages to targets that the settings name no more."""


class _Serving:
    """One target, and how it was of late."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: Target | None = None
        self.failures = 0
        self.error: str | None = None
        """What was noted last; None before the first time."""
        self.next = 0.0
        self.task: asyncio.Task[None] | None = None


class Events:
    """Serves all targets of the settings. `retention` is the seconds that a message is kept at most."""

    def __init__(
        self,
        index: Index,
        targets: Mapping[str, NotifyTarget],
        retention: float,
        make: Callable[[NotifyTarget], Target] = open_target,
    ) -> None:
        self._index = index
        self._targets = targets
        self._retention = int(retention * 1000)
        self._make = make
        self._serving = [_Serving(name) for name in targets]
        self._looked = -FORGOTTEN

    async def run_once(self) -> None:
        """Have each target served that is not being served. Raises nothing of theirs."""
        for one in self._serving:
            if one.task is None and time.monotonic() >= one.next:
                one.task = asyncio.create_task(self._serve(one))
        if time.monotonic() >= self._looked + FORGOTTEN and await self._give_up_forgotten():
            self._looked = time.monotonic()
        running = [one.task for one in self._serving if one.task is not None]
        if running:
            await asyncio.wait(running, timeout=PATIENCE)
        for one in self._serving:
            if one.task is not None and one.task.done():
                task, one.task = one.task, None
                if not task.cancelled() and (error := task.exception()) is not None:
                    logger.warning("notifications: %s, to be tried again", type(error).__name__)

    async def close(self) -> None:
        """Stop; what was not taken is sent by whoever has the turn next."""
        tasks = [one.task for one in self._serving if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._serving:
            one.task = None
            await self._disconnect(one)

    async def _give_up_forgotten(self) -> bool:
        """Rules may go on naming a target that is in the settings no more: what waits for it must not grow for ever.

        Whether that was all; the next round goes on, since others wait for this one.
        """
        until = time.monotonic() + PATIENCE
        for waiting in await self._index.backlog():
            if waiting.target not in self._targets:
                while found := await self._index.messages(waiting.target, BATCH):
                    if await self._give_up(waiting.target, found) < len(found):
                        break
                    if time.monotonic() > until:
                        return False
        return True

    async def _give_up(self, target: str, found: Sequence[Message]) -> int:
        """Forget those that are too old; how many these were."""
        old = [message.id for message in found if message.at < now_ms() - self._retention]
        if old:
            logger.error("notifications: %d messages to %s are given up: they are too old", len(old), target)
            await self._index.forget_messages(old)
        return len(old)

    async def _serve(self, one: _Serving) -> None:
        """Send what waits for a target until nothing does, or something is not taken."""
        while found := await self._index.messages(one.name, BATCH):
            if not await self._give_up(one.name, found) and not await self._send_all(one, found):
                return

    async def _send_all(self, one: _Serving, found: Sequence[Message]) -> bool:
        """Send a batch; whether all was taken."""
        sent: list[int] = []
        errors: list[str] = []
        places = asyncio.Semaphore(AT_ONCE)

        async def send(messages: Sequence[Message]) -> None:
            async with places:
                for message in messages:
                    try:
                        await self._target(one).send(message)
                    except Exception as error:
                        errors.append(f"{type(error).__name__}: {error}"[:500])
                        return
                    sent.append(message.id)

        by_key = sorted(found, key=lambda message: (message.bucket_id, message.key, message.id))
        keys = [list(group) for _, group in groupby(by_key, lambda message: (message.bucket_id, message.key))]
        await asyncio.gather(*map(send, keys))
        crash_point("notify.sent")
        if sent:
            await self._index.forget_messages(sent)
        await self._tell(one, errors[0] if errors else "")
        return not errors

    def _target(self, one: _Serving) -> Target:
        if one.target is None:
            one.target = self._make(self._targets[one.name])
        return one.target

    async def _tell(self, one: _Serving, error: str) -> None:
        """Note how it went, where it is another thing than last time."""
        if error:
            one.next = time.monotonic() + min(PAUSE * 2**one.failures, LONGEST)
            one.failures = min(one.failures + 1, 20)
            if one.failures == 1:
                logger.warning("notifications: %s does not take messages: %s", one.name, error)
            await self._disconnect(one)
        else:
            if one.failures:
                logger.info("notifications: %s takes messages again", one.name)
            one.failures = 0
        if error != one.error:
            one.error = error
            noted = orjson.dumps({"error": error, "at": now_ms()}).decode() if error else ""
            if noted or await self._index.note(note_of(one.name)):
                await self._index.set_note(note_of(one.name), noted)

    async def _disconnect(self, one: _Serving) -> None:
        target, one.target = one.target, None
        if target is not None:
            try:
                await target.close()
            except Exception as error:
                logger.info("notifications: %s: %s", one.name, type(error).__name__)
