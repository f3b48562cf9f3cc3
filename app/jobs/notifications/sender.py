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
from sluice_s3.app.index.notifications.rows import (
    EXPIRED,
    REFUSED,
    Message,
    delivered_note,
    given_up_note,
    note_of,
)
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
        self.accepted = self.accepted_before = 0
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
        self._checked_at = -UNCONFIGURED_CHECK_SECONDS

    async def run_once(self) -> None:
        """Begin deliveries to each idle target. Raises no error of a target."""
        for delivery in self._serving:
            if delivery.task is None and time.monotonic() >= delivery.next:
                delivery.task = asyncio.create_task(self._serve(delivery))
        if time.monotonic() >= self._checked_at + UNCONFIGURED_CHECK_SECONDS and await self._delete_unconfigured():
            self._checked_at = time.monotonic()
        running = [delivery.task for delivery in self._serving if delivery.task is not None]
        if running:
            await asyncio.wait(running, timeout=ROUND_SECONDS)
        for delivery in self._serving:
            if delivery.task is not None and delivery.task.done():
                task, delivery.task = delivery.task, None
                if not task.cancelled() and (error := task.exception()) is not None:
                    logger.warning("notifications: %s, to be tried again", type(error).__name__)

    async def close(self) -> None:
        """Stop; the next leader sends what is left."""
        tasks = [delivery.task for delivery in self._serving if delivery.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for delivery in self._serving:
            delivery.task = None
            await self._disconnect(delivery)

    async def _delete_unconfigured(self) -> bool:
        """Delete messages of targets that are no longer configured, since rules may still name them.

        Returns whether all are deleted; the next round continues, since others wait for this one.
        """
        until = time.monotonic() + ROUND_SECONDS
        for waiting in await self._index.backlog():
            if waiting.target not in self._targets:
                while found := await self._index.messages(waiting.target, EVENTS_PER_BATCH):
                    if await self._delete_expired(waiting.target, found):
                        break
                    if time.monotonic() > until:
                        return False
        return True

    async def _delete_expired(self, target: str, found: Sequence[Message]) -> list[Message]:
        """Delete messages that are too old; return the others."""
        oldest = now_ms() - self._retention
        old = [message.id for message in found if message.at < oldest]
        if old:
            logger.error("notifications: %d messages to %s are given up: they are too old", len(old), target)
            await self._give_up(target, old, EXPIRED)
        return [message for message in found if message.at >= oldest]

    async def _give_up(self, target: str, ids: Sequence[int], reason: str) -> None:
        """Give messages up, and count them."""
        counts = orjson.loads(await self._index.note(given_up_note(target)) or "{}")
        counts[reason] = counts.get(reason, 0) + len(ids)
        await self._index.forget_messages(ids)
        await self._index.set_note(given_up_note(target), orjson.dumps(counts).decode())

    async def _serve(self, delivery: _Serving) -> None:
        """Send a target's messages until none is left or it accepts nothing.

        Messages of waiting keys are skipped.
        """
        delivery.blocked = delivery.keys.find_waiting()
        began = time.monotonic()
        while found := await self._find(delivery):
            remaining = await self._delete_expired(delivery.name, found)
            if not await self._send_all(delivery, remaining) or (
                delivery.blocked and time.monotonic() > began + PASS_SECONDS
            ):
                return
        delivery.keys.keep(delivery.blocked)  # the messages of the others are deleted, since they were too old
        if delivery.error:
            await self._note(delivery, delivery.keys.error)

    async def _find(self, delivery: _Serving) -> list[Message]:
        """Return the next messages to send to a target."""
        if not delivery.blocked:
            return await self._index.messages(delivery.name, EVENTS_PER_BATCH)
        began = time.monotonic()
        found = await self._index.messages_without(delivery.name, EVENTS_PAST_HELD, delivery.blocked)
        if not found and (elapsed := time.monotonic() - began) > LONG_LOOK_SECONDS:
            delivery.next = time.monotonic() + REST_FACTOR * elapsed
        return found

    async def _send_all(self, delivery: _Serving, found: Sequence[Message]) -> bool:
        """Send some messages; return whether the target can accept more now."""
        by_key = sorted(found, key=lambda message: (message.bucket_id, message.key, message.id))
        sent: list[Message] = []
        failed: dict[Key, tuple[Message, Exception]] = {}
        slots = asyncio.Semaphore(CONCURRENCY)

        async def send(key: Key, messages: Sequence[Message]) -> None:
            async with slots:
                for message in messages:
                    try:
                        await self._target(delivery).send(message)
                    except Exception as error:
                        failed[key] = message, error
                        return
                    sent.append(message)

        await asyncio.gather(*(send(key, list(messages)) for key, messages in groupby(by_key, key_of)))
        crash_point("notify.sent")
        delivery.accepted_before = delivery.accepted
        if sent:
            text = orjson.dumps({"at": now_ms(), "messages": len(sent)}).decode()
            await self._index.forget_messages([message.id for message in sent], (delivered_note(delivery.name), text))
            self._note_accepted(delivery, sent, failed)
        errors = [error for _, error in failed.values()]
        down = not sent and _is_down(errors)
        for key, (message, error) in failed.items():
            await self._hold(delivery, key, message, error, only_again=down and not isinstance(error, TargetError))
        if any(not isinstance(error, MessageRefused) for error in errors):
            await self._disconnect(delivery)
        down = down or (bool(errors) and len(delivery.keys.held) > MAX_HELD)
        if down:
            self._pause_target(delivery, errors[0])
        if found:
            await self._note(delivery, _render_error(errors[0]) if down else delivery.keys.error)
        return not down

    def _note_accepted(self, delivery: _Serving, sent: Sequence[Message], failed: Collection[Key]) -> None:
        delivery.accepted += len(sent)
        for message in sent:
            if key_of(message) not in failed:
                delivery.keys.held.pop(key_of(message), None)
        if delivery.failures:
            logger.info("notifications: %s takes messages again", delivery.name)
            if delivery.failures >= LONG_OUTAGE_FAILURES:
                delivery.keys.retry_now()
            delivery.failures = 0

    async def _hold(
        self, delivery: _Serving, key: Key, message: Message, error: Exception, *, only_again: bool
    ) -> None:
        """Let a key wait, or give its message up.

        With `only_again`, only if it already waits for that message.
        """
        keys, refused = delivery.keys, isinstance(error, MessageRefused)
        delivery.blocked.add(key)
        held = keys.held.get(key)
        if held is None or held.message_id != message.id:
            if only_again:
                return
            held = keys.held[key] = HeldKey(message.id, delivery.accepted_before)
            if len(keys.held) == 1:
                logger.warning("notifications: %s does not take a message: %s", delivery.name, _render_error(error))
        held.fail(_render_error(error), refused=refused)
        # while the target accepts nothing, the target may be at fault
        if refused and held.refusals >= self._refusals and delivery.accepted > held.accepted_before:
            details = (message.id, message.bucket_id, key[1][:200], delivery.name)
            logger.error("notifications: message %d (bucket %d, key %r) to %s is given up: %s", *details, held.error)
            await self._give_up(delivery.name, [message.id], REFUSED)
            del keys.held[key]

    def _target(self, delivery: _Serving) -> Target:
        if delivery.target is None:
            delivery.target = self._make(self._targets[delivery.name])
        return delivery.target

    def _pause_target(self, delivery: _Serving, error: Exception) -> None:
        delivery.next = time.monotonic() + min(PAUSE * 2**delivery.failures, LONGEST)
        delivery.failures = min(delivery.failures + 1, 20)
        if delivery.failures == 1:
            logger.warning("notifications: %s does not take messages: %s", delivery.name, _render_error(error))

    async def _note(self, delivery: _Serving, error: str) -> None:
        """Note the target's state if it changed."""
        if error != delivery.error:
            delivery.error = error
            text = orjson.dumps({"error": error, "at": now_ms()}).decode() if error else ""
            if text or await self._index.note(note_of(delivery.name)):
                await self._index.set_note(note_of(delivery.name), text)

    async def _disconnect(self, delivery: _Serving) -> None:
        target, delivery.target = delivery.target, None
        if target is not None:
            try:
                await target.close()
            except Exception as error:
                logger.info("notifications: %s: %s", delivery.name, type(error).__name__)


def _is_down(errors: Sequence[Exception]) -> bool:
    """Return whether the failures are the target's: no answer, or several keys failed alike."""
    others = [error for error in errors if not isinstance(error, MessageRefused)]
    return len(others) > 1 or any(not isinstance(error, TargetError) for error in others)


def _render_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
