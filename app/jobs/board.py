"""The board of jobs: what each job does, and what people want of it.

Both are notes in the index, so that any gateway can show and change them, and that they survive restarts. The leader of
a job writes its status when it changes much, and never while nothing happens; it reads the wishes when the index's
generation changes. A paused job stops where it would wait for other work (`pacing.GATE`), and does not begin again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import orjson

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.meta.rows import JOB_CONTROL, JOB_STATUS
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.jobs.pacing import GATE

logger = logging.getLogger("sluice.jobs")

Job = Callable[[], Awaitable[object]]

LOOK_SECONDS = 1.0
"""Seconds between two looks at what has changed, and at the wishes of a paused job."""
QUIET_SECONDS = 15.0
"""Seconds between two notes of a job that goes on as before."""
LONG_SECONDS = 0.25
"""Seconds from which a run counts as one that did something."""
REQUEST_MS = 60_000
"""Milliseconds for which a wish to run now is honoured by a leader that has just begun."""
UNFORESEEN = "An unforeseen error; the gateway's log has it."


@dataclass
class JobState:
    """A job of this process."""

    again: Callable[[], None] | None = None
    """Makes its next run do everything, whether it is due or not."""
    running: bool = False
    paused: bool = False
    began: int = 0
    """Milliseconds since the epoch: the begin of the present run, or of the last one that did something."""
    ended: int = 0
    seconds: float = 0.0
    error: str = ""
    asked: int | None = None
    """The newest wish to run that was seen."""
    written: bytes = b""
    urgent: bool = False
    written_at: float = field(default=float("-inf"))

    def render(self, incarnation: int) -> bytes:
        """Return the note of it."""
        long = self.running and now_ms() - self.began >= LOOK_SECONDS * 1000
        state = "paused" if self.paused else "running" if long else "idle"
        fields = {"began": self.began, "ended": self.ended, "seconds": round(self.seconds, 3), "error": self.error}
        return orjson.dumps({"state": state, **fields, "writer": incarnation})


class JobBoard:
    """The jobs that this process leads, and the wishes for them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._jobs: dict[str, JobState] = {}
        self._seen_generation = -1
        self._paused: frozenset[str] = frozenset()
        self._asked: dict[str, int] = {}

    def add(self, name: str, again: Callable[[], None] | None = None) -> None:
        """Add a job; `again` makes its next run do everything at once."""
        self._jobs.setdefault(name, JobState()).again = again

    async def run(self, name: str, store: str, job: Job) -> None:
        """Run a job once, unless it is paused, and note how that went. Its errors are logged: it is tried again."""
        state = self._jobs.setdefault(name, JobState())
        await self._read_wishes()
        state.paused = name in self._paused
        if state.paused:
            return
        wanted = self._take_request(name, state)
        before = (state.began, state.ended, state.error)
        began, started = now_ms(), time.monotonic()
        state.began, state.running = began, True
        token = GATE.set(partial(self._wait_while_paused, name, state))
        try:
            result, error = await run_logged(store, job)
        finally:
            GATE.reset(token)
            state.running = False
        seconds = time.monotonic() - started
        if error != state.error or result or wanted or seconds >= LONG_SECONDS:
            state.ended, state.seconds, state.error = now_ms(), seconds, error
            state.urgent = state.urgent or wanted or error != before[2]
        else:
            state.began = before[0]

    def _take_request(self, name: str, state: JobState) -> bool:
        """Return whether somebody wants it to run now, and has not been heard yet."""
        asked, known = self._asked.get(name, 0), state.asked
        state.asked = asked
        if asked == known or (known is None and asked < now_ms() - REQUEST_MS) or state.again is None or not asked:
            return False
        state.again()
        return True

    async def _wait_while_paused(self, name: str, state: JobState) -> None:
        """Wait within a run, where it would wait for other work."""
        await self._read_wishes()
        while name in self._paused:
            state.paused = True
            await asyncio.sleep(LOOK_SECONDS)
            await self._read_wishes()
        state.paused = False

    async def _read_wishes(self) -> None:
        generation = self._index.generation
        if generation == self._seen_generation:
            return
        try:
            found = orjson.loads(await self._index.note(JOB_CONTROL) or "{}")
        except DomainError:
            return  # again at the next look
        self._paused, self._asked = frozenset(found.get("paused", ())), found.get("run", {})
        self._seen_generation = generation

    # the status

    async def publish(self) -> None:
        """Write the status of jobs that have changed, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name, state in list(self._jobs.items()):
                await self._publish(name, state)

    async def _publish(self, name: str, state: JobState) -> None:
        if not (state.began or state.paused or state.written):
            return  # it has never done anything: most have not
        note = state.render(self._index.incarnation)
        if note == state.written:
            return
        old = orjson.loads(state.written or b"{}")
        urgent = state.urgent or orjson.loads(note)["state"] != old.get("state")
        now = time.monotonic()
        if now < state.written_at + (LOOK_SECONDS if urgent else QUIET_SECONDS):
            return
        try:
            await self._index.set_note(f"{JOB_STATUS}{name}", note.decode())
        except DomainError as error:
            logger.warning("jobs: the status of %s cannot be written: %s", name, type(error).__name__)
            return
        state.written, state.urgent, state.written_at = note, False, now


async def run_logged(store: str, job: Job) -> tuple[object, str]:
    """Run a job once and log its error, since it is tried again. Returns its result, and what went wrong."""
    of = f" of store {store}" if store else ""
    try:
        return await job(), ""
    except DomainError as error:
        logger.warning("jobs%s: %s, to be tried again", of, type(error).__name__)
        return None, type(error).__name__
    except Exception:
        logger.exception("jobs%s failed, to be tried again", of)
        return None, UNFORESEEN
