"""The sender of outbox messages: at least once, those of a key in order.

One worker at a time sends. A target that accepts nothing waits for a doubling pause, and delays no other. Sent messages
are deleted a batch at a time, so after a kill the last batch is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby

import orjson

from sluice_s3.app.crash import crash_point
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.outbox_rows import EXPIRED, REFUSED, Message, given_up_note, note_of
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.jobs.notifications.held_keys import HeldKey, HeldKeys, Key, key_of
from sluice_s3.app.jobs.notifications.targets import MessageRefused, Target, TargetError, open_target
from sluice_s3.app.settings import NotifyTarget

logger = logging.getLogger("sluice.jobs")

EVENTS_PER_BATCH = 256
EVENTS_PAST_HELD = 4 * EVENTS_PER_BATCH
"""While keys wait, this many of their messages are read each time and skipped."""
LONG_LOOK_SECONDS, REST_FACTOR = 0.2, 10
"""After a slower query that finds nothing to send, the target waits this many times as long."""
CONCURRENCY = 16
"""Keys of one target that are sent concurrently."""
PAUSE, LONGEST = 0.5, 30.0
"""Seconds that a target waits after it accepted nothing, at first and at most."""
MAX_HELD = 4096
"""Waiting keys of one target before the target itself waits."""
LONG_OUTAGE_FAILURES = 4
"""After this many failures, keys that waited for a target that was down are due once it accepts a message."""
PASS_SECONDS = 10.0
"""Seconds after which a pass ends although messages keep coming: a key may be due."""
ROUND_SECONDS = 0.8
"""Seconds that a round waits for its deliveries before leadership is checked again."""
UNCONFIGURED_CHECK_SECONDS = 600.0
"""Seconds between two checks for messages to targets that are no longer configured."""


class _Serving:
    """One target, and its recent state."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: Target | None = None
        self.failures = 0
        self.error: str | None = None
        """The last error noted; None before the first."""
        self.next = 0.0
        self.taken = self.taken_before = 0
        """Messages that it has accepted from this process, and had before the last batch."""
        self.keys = HeldKeys()
        self.blocked: set[Key] = set()
        """Keys of which this pass sends nothing, or nothing more."""
        self.task: asyncio.Task[None] | None = None


class NotificationSender:
    """The sender for all configured targets.

    `retention` is the most seconds that a message is stored, `refusals` the attempts with a rejected one.
    """

    def __init__(
        self,
        index: Index,
        targets: Mapping[str, NotifyTarget],
        retention: float,
        make: Callable[[NotifyTarget], Target] = open_target,
        *,
        refusals: int = 10,
    ) -> None:
        self._index = index
        self._targets = targets
        self._retention = int(retention * 1000)
        self._refusals = refusals
        self._make = make
        self._serving = [_Serving(name) for name in targets]
        self._looked = -UNCONFIGURED_CHECK_SECONDS

    async def run_once(self) -> None:
        """Begin deliveries to each idle target. Raises no error of a target."""
        for one in self._serving:
            if one.task is None and time.monotonic() >= one.next:
                one.task = asyncio.create_task(self._serve(one))
        if time.monotonic() >= self._looked + UNCONFIGURED_CHECK_SECONDS and await self._give_up_forgotten():
            self._looked = time.monotonic()
        running = [one.task for one in self._serving if one.task is not None]
        if running:
            await asyncio.wait(running, timeout=ROUND_SECONDS)
        for one in self._serving:
            if one.task is not None and one.task.done():
                task, one.task = one.task, None
                if not task.cancelled() and (error := task.exception()) is not None:
                    logger.warning("notifications: %s, to be tried again", type(error).__name__)

    async def close(self) -> None:
        """Stop; the next leader sends what is left."""
        tasks = [one.task for one in self._serving if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._serving:
            one.task = None
            await self._disconnect(one)

    async def _give_up_forgotten(self) -> bool:
        """Delete messages of targets that are no longer configured, since rules may still name them.

        Returns whether all are deleted; the next round continues, since others wait for this one.
        """
        until = time.monotonic() + ROUND_SECONDS
        for waiting in await self._index.backlog():
            if waiting.target not in self._targets:
                while found := await self._index.messages(waiting.target, EVENTS_PER_BATCH):
                    if await self._give_up_old(waiting.target, found):
                        break
                    if time.monotonic() > until:
                        return False
        return True

    async def _give_up_old(self, target: str, found: Sequence[Message]) -> list[Message]:
        """Delete messages that are too old; return the others."""
        oldest = now_ms() - self._retention
        old = [message.id for message in found if message.at < oldest]
        if old:
            logger.error("notifications: %d messages to %s are given up: they are too old", len(old), target)
            await self._forget(target, old, EXPIRED)
        return [message for message in found if message.at >= oldest]

    async def _forget(self, target: str, ids: Sequence[int], reason: str) -> None:
        """Give messages up, and count them."""
        counted = orjson.loads(await self._index.note(given_up_note(target)) or "{}")
        counted[reason] = counted.get(reason, 0) + len(ids)
        await self._index.forget_messages(ids)
        await self._index.set_note(given_up_note(target), orjson.dumps(counted).decode())

    async def _serve(self, one: _Serving) -> None:
        """Send a target's messages until none is left or it accepts nothing.

        Messages of waiting keys are skipped.
        """
        one.blocked = one.keys.waiting()
        began = time.monotonic()
        while found := await self._find(one):
            left = await self._give_up_old(one.name, found)
            if not await self._send_all(one, left) or (one.blocked and time.monotonic() > began + PASS_SECONDS):
                return
        one.keys.keep(one.blocked)  # the messages of the others are deleted, since they were too old
        if one.error:
            await self._note(one, one.keys.error)

    async def _find(self, one: _Serving) -> list[Message]:
        """Return the next messages to send to a target."""
        if not one.blocked:
            return await self._index.messages(one.name, EVENTS_PER_BATCH)
        began = time.monotonic()
        found = await self._index.messages_without(one.name, EVENTS_PAST_HELD, one.blocked)
        if not found and (took := time.monotonic() - began) > LONG_LOOK_SECONDS:
            one.next = time.monotonic() + REST_FACTOR * took
        return found

    async def _send_all(self, one: _Serving, found: Sequence[Message]) -> bool:
        """Send some messages; return whether the target can accept more now."""
        by_key = sorted(found, key=lambda message: (message.bucket_id, message.key, message.id))
        sent: list[Message] = []
        failed: dict[Key, tuple[Message, Exception]] = {}
        places = asyncio.Semaphore(CONCURRENCY)

        async def send(key: Key, messages: Sequence[Message]) -> None:
            async with places:
                for message in messages:
                    try:
                        await self._target(one).send(message)
                    except Exception as error:
                        failed[key] = message, error
                        return
                    sent.append(message)

        await asyncio.gather(*(send(key, list(messages)) for key, messages in groupby(by_key, key_of)))
        crash_point("notify.sent")
        one.taken_before = one.taken
        if sent:
            await self._index.forget_messages([message.id for message in sent])
            self._note_taken(one, sent, failed)
        errors = [error for _, error in failed.values()]
        down = not sent and _says_down(errors)
        for key, (message, error) in failed.items():
            await self._hold(one, key, message, error, only_again=down and not isinstance(error, TargetError))
        if any(not isinstance(error, MessageRefused) for error in errors):
            await self._disconnect(one)
        down = down or (bool(errors) and len(one.keys.held) > MAX_HELD)
        if down:
            self._leave_alone(one, errors[0])
        if found:
            await self._note(one, _shown(errors[0]) if down else one.keys.error)
        return not down

    def _note_taken(self, one: _Serving, sent: Sequence[Message], failed: Collection[Key]) -> None:
        one.taken += len(sent)
        for message in sent:
            if key_of(message) not in failed:
                one.keys.held.pop(key_of(message), None)
        if one.failures:
            logger.info("notifications: %s takes messages again", one.name)
            if one.failures >= LONG_OUTAGE_FAILURES:
                one.keys.hurry()
            one.failures = 0

    async def _hold(self, one: _Serving, key: Key, message: Message, error: Exception, *, only_again: bool) -> None:
        """Let a key wait, or give its message up.

        With `only_again`, only if it already waits for that message.
        """
        keys, refused = one.keys, isinstance(error, MessageRefused)
        one.blocked.add(key)
        held = keys.held.get(key)
        if held is None or held.message_id != message.id:
            if only_again:
                return
            held = keys.held[key] = HeldKey(message.id, one.taken_before)
            if len(keys.held) == 1:
                logger.warning("notifications: %s does not take a message: %s", one.name, _shown(error))
        held.fail(_shown(error), refused=refused)
        # while the target accepts nothing, the target may be at fault
        if refused and held.refusals >= self._refusals and one.taken > held.taken_before:
            place = (message.id, message.bucket_id, key[1][:200], one.name)
            logger.error("notifications: message %d (bucket %d, key %r) to %s is given up: %s", *place, held.error)
            await self._forget(one.name, [message.id], REFUSED)
            del keys.held[key]

    def _target(self, one: _Serving) -> Target:
        if one.target is None:
            one.target = self._make(self._targets[one.name])
        return one.target

    def _leave_alone(self, one: _Serving, error: Exception) -> None:
        one.next = time.monotonic() + min(PAUSE * 2**one.failures, LONGEST)
        one.failures = min(one.failures + 1, 20)
        if one.failures == 1:
            logger.warning("notifications: %s does not take messages: %s", one.name, _shown(error))

    async def _note(self, one: _Serving, error: str) -> None:
        """Note the target's state if it changed."""
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


def _says_down(errors: Sequence[Exception]) -> bool:
    """Return whether the failures are the target's: no answer, or several keys failed alike."""
    others = [error for error in errors if not isinstance(error, MessageRefused)]
    return len(others) > 1 or any(not isinstance(error, TargetError) for error in others)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
