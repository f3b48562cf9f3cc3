"""Where a load test is, from the events that `sluice bench --json` prints."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from pydantic import ValidationError

from sluice_s3.app.admin.load_tests.models import FiguresOut, ProgressOut

MAX_MESSAGES = 50
MAX_MESSAGE = 500
MAX_LINE_BYTES = 64 * 1024
MAX_POINTS = 600
"""Points of the course that a page gets when it opens: a second each."""
PAUSE_SECONDS = 0.5
"""A page gets no more than a state in so long."""


class Progress:
    """The state of one load test, and who waits for its changes."""

    def __init__(self, load_test: str, repeats: int, total: int, seconds: float) -> None:
        self.state = ProgressOut(
            id=load_test, state="running", phase="starting", repeats=repeats, total=total, left=seconds
        )
        self.headline: list[str] = []
        self.verdict = ""
        """The state that the run itself said at its end."""
        self.reason = ""
        """Why that state is not `complete`."""
        self.messages: deque[str] = deque(maxlen=MAX_MESSAGES)
        self.points: deque[dict[str, Any]] = deque(maxlen=MAX_POINTS)
        self._began = time.monotonic()
        self._left_at = self._began
        self._changed = asyncio.Event()

    def take(self, line: bytes) -> None:
        """Take one line that the run printed; what is no event is a message."""
        try:
            event = json.loads(line[:MAX_LINE_BYTES])
            kind = event.pop("event")
            self._take(kind, event)
        except (ValueError, TypeError, KeyError, AttributeError, ValidationError):
            self._say(line.decode(errors="replace"))
        self.notify()

    def _take(self, kind: str, event: dict[str, Any]) -> None:
        state = self.state
        if "left_s" in event:
            state.left, self._left_at = float(event["left_s"]), time.monotonic()
        if kind == "start":
            state.what, state.live = str(event["what"]), None
            state.target, state.scenario = str(event.get("target", "")), str(event.get("scenario", ""))
            state.repeat = int(event.get("repeat", 0)) or state.repeat
            self._enter("preparing")
        elif kind == "live":
            figures = FiguresOut.model_validate(event, extra="ignore")
            if figures.requests or state.live:
                self._enter("measuring")
                state.live = figures
                at = round(time.monotonic() - self._began, 1)
                self.points.append({"at": at, "target": state.target, **figures.model_dump()})
        elif kind == "cell":
            state.done, state.live = state.done + 1, None
            words = f"{event['what']}: {int(event['rows']):,} requests, {int(event['errors']):,} errors"
            self._say(words + (f", {event['state']}: {event['reason']}" if event["reason"] else ""))
            self._enter("preparing")
        elif kind == "measured":
            state.total = state.done
            self._enter("judging")
        elif kind == "verdict":
            self.verdict, state.repeats = str(event["state"]), int(event["repeats"])
            self.reason = " ".join(str(event["reason"]).split())[:MAX_MESSAGE]
            self.headline = [str(one)[:MAX_MESSAGE] for one in event["headline"][:MAX_MESSAGES]]
        elif kind == "line":
            self._say(str(event["text"]))

    def _enter(self, phase: Any) -> None:
        if self.state.phase != "ending":  # that one stays until the end
            self.state.phase = phase

    def _say(self, text: str) -> None:
        text = " ".join(text.split())[:MAX_MESSAGE]
        if text:
            self.messages.append(text)

    def look(self) -> ProgressOut:
        """Return the state of now."""
        now = time.monotonic()
        running = self.state.state == "running"
        left = max(0.0, self.state.left - (now - self._left_at)) if running else 0.0
        elapsed = now - self._began if running else self.state.elapsed
        update = {"left": round(left, 1), "elapsed": round(elapsed, 1), "messages": list(self.messages)}
        return self.state.model_copy(update=update)

    def end(self, state: Any) -> None:
        """Note that it ended."""
        self.state.elapsed = time.monotonic() - self._began
        self.state.state, self.state.phase, self.state.live = state, "ended", None
        self.notify()

    def notify(self) -> None:
        """Wake those who wait for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def states(self) -> AsyncIterator[ProgressOut]:
        """Yield the state of now, then each change, the last one when it ended."""
        while True:
            changed, state = self._changed, self.look()
            yield state
            if state.phase == "ended":
                return
            await asyncio.sleep(PAUSE_SECONDS)
            if not changed.is_set():
                await changed.wait()
