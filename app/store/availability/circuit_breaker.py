"""The circuit breaker, which takes a store out of service while its mount fails.

A mount fails when it hangs or is gone. Requests pay nothing for this. About once a second the breaker checks which
blocking calls already ran at its last check, and whether any call failed. A call that runs too long or fails is a
reason to try the mount in a thread of its own: the trial reads the store's identity and writes a small file. Only the
outcome of that trial, or its hanging, opens the breaker.

A store out of service has another driver in its place, which refuses all calls. Calls under way fail at once. When the
mount recovers, a new driver starts on it. Hanging threads belong to the old driver and cannot be ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from sluice_s3.app.store.availability.unavailable_driver import UnavailableDriver
from sluice_s3.app.store.named_driver import NamedDriver
from sluice_s3.storage_drivers.base import Driver, PackRegistry
from sluice_s3.storage_drivers.errors import DriverError, ReadOnlyStore, StoreFull, StoreGone, StoreSilent, map_errors
from sluice_s3.storage_drivers.health import check_identity
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.mountinfo import mount_table_generation
from sluice_s3.storage_drivers.threads import BackgroundThread

logger = logging.getLogger("sluice.store")

CHECK_SECONDS = 1.0
"""Longest time between two checks, in seconds."""
FULL_CHECK_SECONDS = 10.0
"""Seconds between reads of the identity when nothing fails: the mount may have been replaced."""
LONGEST_CALL_FACTOR = 30
"""A call may take this many times the limit while the mount answers other calls: then only that call hangs."""
MOST_GIVEN_UP = 3
"""Drivers with hanging threads that are abandoned; beyond that the store stays out of service until threads return."""
MOST_TRIALS = 4
"""Threads that may hang while they try the mount. The next one starts when the last has hung for a while."""


Condition = Literal["up", "full", "read-only", "failing", "down"]


REFUSALS: dict[type[DriverError], Condition] = {StoreFull: "full", ReadOnlyStore: "read-only"}


class State(NamedTuple):
    """The state of a store in this process."""

    up: bool
    condition: Condition
    """`up`, `full`, `read-only` or `failing` (it refuses writes), or `down`."""
    running: int
    """Blocking calls under way."""
    stuck: int
    """Blocking calls that run longer than the limit, including those of abandoned drivers."""
    cached_bytes: int
    """Bytes of small objects in the driver's memory."""


class _Trial:
    """One trial of the mount, in a thread that nothing waits for."""

    def __init__(self, driver: Driver, identity: Identity, *, write: bool) -> None:
        self.since = time.monotonic()
        self.write = write
        self.done = False
        self.error: DriverError | None = None
        BackgroundThread(lambda: self._run(driver, identity))

    def _run(self, driver: Driver, identity: Identity) -> None:
        try:
            with map_errors():
                driver.look(identity, write=self.write)
        except DriverError as error:
            self.error = error
        except Exception as error:
            logger.exception("a look at a store failed")
            self.error = StoreGone(type(error).__name__)
        self.done = True


class PlainFiles(Protocol):
    """The plain files of a store of layout *tree*, beside its blobs.

    Its calls are never abandoned: a hanging call may still rename a file, so only its end is conclusive.
    """

    async def start(self) -> None:
        """Try the mount; repeated when the store returns to service. Raises DriverError."""
        ...

    def running(self) -> list[object]:
        """Return the blocking calls that run now."""
        ...

    def suspend(self, error: DriverError | None) -> None:
        """Refuse every further call with this error, or accept calls again when it is None."""
        ...


class CircuitBreaker:
    """The circuit breaker of one store.

    `make_driver` creates another driver for it. A call may take `limit` seconds. Used on the event loop only.
    """

    def __init__(self, driver: NamedDriver, make_driver: Callable[[], Driver], limit: float) -> None:
        self._driver = driver
        self._make_driver = make_driver
        self._limit = limit
        self._identity: Identity | None = None
        self._book: PackRegistry | None = None
        self._condition: Condition = "up"
        self._reason = ""
        self._seen: dict[object, float] = {}
        """Calls that ran at the last check, each with the earliest known time."""
        self._failures = 0
        self._checked = time.monotonic()
        self._mounts = mount_table_generation()
        self._trial: _Trial | None = None
        self._hanging: list[_Trial] = []
        self._abandoned: list[Driver] = []
        self._tree: PlainFiles | None = None
        self.refused: DriverError | None = None
        """The error that kept the store out of service at the start."""

    def watch_plain_files(self, tree: PlainFiles) -> None:
        """Include plain files that lie on the same mount."""
        self._tree = tree

    @property
    def up(self) -> bool:
        """Whether the store is in service."""
        return self._condition != "down"

    @property
    def reason(self) -> str:
        """Why the store is not `up`; empty when it is."""
        return self._reason if self._condition != "up" else ""

    @property
    def state(self) -> State:
        """The state at the last check."""
        now = time.monotonic()
        stuck = sum(now - since >= self._limit for since in self._seen.values())
        abandoned = sum(len(driver.running()) for driver in self._abandoned) + (
            0 if self.up else len(self._tree_calls())
        )
        return State(self.up, self._condition, len(self._seen), stuck + abandoned, self._driver.cached_bytes)

    # life
    async def start(self, identity: tuple[str, int] | None) -> None:
        """Start the driver.

        If the index knows the store but the store is missing, it is out of service until it appears. Raises DriverError
        for a store that the index does not know.
        """
        driver = self._driver.driver
        try:
            if identity is not None:
                self._identity = Identity(*identity)
                await self._first_look()
            await driver.start()
            if self._tree is not None:
                await self._tree.start()
            found = driver.identity
            if identity is not None:
                check_identity(found, Identity(*identity))
            self._identity = found
        except DriverError as error:
            if identity is None:
                raise
            self.refused = error
            self._open(str(error))

    async def _first_look(self) -> None:
        """Try the mount before the start, which must not wait for a mount that hangs.

        Raises StoreGone, or StoreSilent after the limit.
        """
        self._try(write=False)
        trial = self._trial
        assert trial is not None
        while not trial.done:
            if time.monotonic() >= trial.since + self._limit:
                raise StoreSilent("it does not answer")
            await asyncio.sleep(0.01)
        self._trial = None
        if isinstance(trial.error, StoreGone):
            raise trial.error

    def open_packs(self, book: PackRegistry) -> None:
        """Write packs, now and whenever the store returns to service."""
        self._book = book
        self._driver.open_packs(book)

    async def run(self, report: Callable[[str, str, int, int, int], None]) -> None:
        """Check until cancelled.

        Each check calls `report` with the name, the condition, the running and stuck calls, and the bytes in memory.
        """
        while True:
            state = self.state
            report(self._driver.name, state.condition, state.running, state.stuck, state.cached_bytes)
            await asyncio.sleep(min(CHECK_SECONDS, self._limit / 4))
            try:
                await self.look()
            except Exception:
                logger.exception("store %s: looking at it failed", self._driver.name)

    async def look(self) -> None:
        """Check once.

        It never waits for the mount, except while a driver starts on a mount that has just answered.
        """
        self._abandoned = [driver for driver in self._abandoned if driver.running()]
        self._hanging = [trial for trial in self._hanging if not trial.done]
        ended = None
        if self._trial is not None and self._trial.done:
            ended, self._trial = self._trial, None
        if self._condition == "down":
            await self._look_at_down(ended)
        else:
            self._look_at_up(ended)

    # in service
    def _look_at_up(self, ended: _Trial | None) -> None:
        if ended is not None:
            if isinstance(ended.error, StoreGone):
                self._open(str(ended.error))
                return
            if ended.write:
                self._note(ended.error)
        now = time.monotonic()
        driver = self._driver.driver
        self._seen = {call: self._seen.get(call, now) for call in (*driver.running(), *self._tree_calls())}
        oldest = now - min(self._seen.values(), default=now)
        failures, self._failures = driver.troubles - self._failures, driver.troubles
        if self._trial is not None:
            tried = now - self._trial.since
            if tried >= self._limit or (oldest >= self._limit and tried >= self._limit / 2):
                self._open("it does not answer")
                return
        if oldest >= LONGEST_CALL_FACTOR * self._limit:
            self._open(f"a call has not ended for {oldest:.0f} s")
            return
        suspect = failures > 0 or oldest >= self._limit / 2 or self._condition != "up"
        mounts = mount_table_generation()
        if self._trial is None and (suspect or mounts != self._mounts or now >= self._checked + FULL_CHECK_SECONDS):
            self._checked, self._mounts = now, mounts
            self._try(write=suspect)

    def _tree_calls(self) -> list[object]:
        return [] if self._tree is None else self._tree.running()

    def _note(self, error: DriverError | None) -> None:
        """Note whether the mount, which answers, accepts writes."""
        condition: Condition = "up"
        if error is not None:
            condition = REFUSALS.get(type(error), "failing")
        if condition != self._condition:
            self._condition = condition
            self._reason = "" if error is None else str(error)
            if error is None:
                logger.warning("store %s: it takes writes again", self._driver.name)
            else:
                logger.error("store %s: it takes no writes (%s): %s", self._driver.name, condition, error)

    # out of service
    def _open(self, reason: str) -> None:
        self._condition, self._reason = "down", reason
        logger.error("store %s: out of service: %s", self._driver.name, reason)
        driver = self._driver.driver
        self._driver.replace_driver(UnavailableDriver(driver, reason))
        driver.give_up(StoreSilent(reason))
        self._abandoned.append(driver)
        if self._tree is not None:
            self._tree.suspend(StoreSilent(reason))
        self._seen = {}

    async def _look_at_down(self, ended: _Trial | None) -> None:
        now = time.monotonic()
        if ended is not None:
            if not isinstance(ended.error, StoreGone) and len(self._abandoned) <= MOST_GIVEN_UP:
                await self._close()
                return
            if ended.error is not None:
                self._log_reason(str(ended.error))
            else:
                self._log_reason(
                    f"it answers, but {len(self._abandoned)} times its calls hang for ever: restart the gateway"
                )
        hangs = self._trial is not None and now - self._trial.since >= 2 * self._limit
        if self._trial is not None and hangs and len(self._hanging) + 1 < MOST_TRIALS:
            self._hanging.append(self._trial)
            self._trial = None
        if self._trial is None:
            self._try(write=True)

    async def _close(self) -> None:
        driver = self._make_driver()
        try:
            await driver.start()
            if self._tree is not None:
                self._tree.suspend(None)
                await self._tree.start()
            if self._identity is not None:
                check_identity(driver.identity, self._identity)
        except DriverError as error:
            self._log_reason(str(error))
            driver.give_up(StoreSilent("not started"))
            if self._tree is not None:
                self._tree.suspend(StoreSilent(str(error)))
            return
        if self._book is not None:
            driver.open_packs(self._book)
        self._driver.replace_driver(driver)
        self._condition, self._failures, self._checked = "up", 0, time.monotonic()
        logger.warning("store %s: in service again", self._driver.name)

    def _log_reason(self, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            logger.error("store %s: still out of service: %s", self._driver.name, reason)

    def _try(self, *, write: bool) -> None:
        if self._identity is not None:
            self._trial = _Trial(self._driver.driver, self._identity, write=write)
