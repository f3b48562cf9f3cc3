"""The part of a process that plays users: it prepares, begins and measures when the coordinator says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gevent
from locust.env import Environment

from sluice_s3.loadtests.chosen import is_staged, scenario_of
from sluice_s3.loadtests.session import CLOSED, LOOK_SECONDS, Session, Window

logger = logging.getLogger(__name__)
PREPARED, BEGIN, END = "sluice-prepared", "sluice-begin", "sluice-end"
STAGE, STAGE_ENDED = "sluice-stage", "sluice-stage-ended"
"""Messages between the coordinator and the players."""


@dataclass(frozen=True)
class Stage:
    """A part of a test with a number of clients.

    `settle` and `seconds` are how long it is not, and then is, recorded.
    """

    name: str
    users: int
    settle: float
    seconds: float


class Player:
    """Follows the coordinator, in a process that plays users."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._preparation: gevent.Greenlet[..., None] | None = None

    def register(self) -> None:
        """Listen to the coordinator."""
        runner = self.environment.runner
        assert runner is not None
        runner.register_message(BEGIN, self._on_begin)
        runner.register_message(STAGE, self._on_stage)
        runner.register_message(END, self._on_end)

    def start_test(self) -> None:
        """Prepare what the scenario needs before its clock starts."""
        session = Session.start(self.environment)
        problem = session.check()
        prepare = getattr(scenario_of(self.environment), "prepare", None)
        if problem:
            session.give_up(problem)
        elif prepare is not None:
            self._preparation = gevent.spawn(self._prepare, session, prepare)
        elif self.environment.runner is not None:  # a script prepares what it needs itself
            self.environment.runner.send_message(PREPARED, {})

    def end_preparation(self) -> None:
        """Wait until the preparation has stopped, so that it makes nothing after the bucket's removal."""
        if self._preparation is not None:
            options: Any = self.environment.parsed_options
            self._preparation.join(options.patience)

    def _prepare(self, session: Session, prepare: Callable[[Session], str]) -> None:
        try:
            problem = prepare(session)
        except Exception as error:  # gevent would only print it, and the users wait forever
            logger.exception("the preparation failed")
            problem = f"{type(error).__name__}: {error}"
        if problem:
            session.give_up(problem)
        elif not session.over and self.environment.runner is not None:
            self.environment.runner.send_message(PREPARED, {})

    def _on_begin(self, **_: Any) -> None:
        session = Session.of(self.environment)
        if not hasattr(scenario_of(self.environment), "prepare"):
            return
        session.begin()
        if is_staged(self.environment):
            session.window = CLOSED
        elif session.seconds:
            gevent.spawn_later(session.options.warm_up + session.seconds, session.finish)

    def _on_end(self, **_: Any) -> None:
        session: Session | None = getattr(self.environment, "sluice", None)
        if session is not None:
            session.finish()

    def _on_stage(self, msg: Any, **_: Any) -> None:
        gevent.spawn(self._measure, Stage(**msg.data))

    def _measure(self, stage: Stage) -> None:
        """Record a stage, and wait for the operations that began in it, so that slow ones are not missing."""
        session = Session.of(self.environment)
        begin = time.perf_counter() + stage.settle
        window = session.window = Window(begin, begin + stage.seconds, stage.name, stage.users)
        gevent.sleep(max(0.0, window.end - time.perf_counter()))
        session.window = CLOSED
        deadline = time.perf_counter() + float(session.options.patience)
        while window.open and time.perf_counter() < deadline:
            gevent.sleep(LOOK_SECONDS)
        data = {"errors": window.errors, "moved": window.moved, "times": window.times.pairs()}
        if self.environment.runner is not None:
            self.environment.runner.send_message(STAGE_ENDED, data)
