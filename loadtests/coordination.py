"""What the processes of a test do together: prepare, begin, measure stages, end.

One process says what happens next: the only one, or Locust's master. It has the `Coordinator`. The others, or the same
one, play users: each has a `Player`. Locust carries the messages between them, in one process as well.
"""

from __future__ import annotations

import functools
import logging
import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, cast

import gevent
from locust import argument_parser, events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from sluice_s3.loadtests.chosen import (
    choose_shape,
    is_staged,
    is_timed,
    scenario_of,
    several,
    shape_missing,
    take_run_time,
)
from sluice_s3.loadtests.latencies import Latencies
from sluice_s3.loadtests.player import BEGIN, END, PREPARED, STAGE, STAGE_ENDED, Player, Stage
from sluice_s3.loadtests.session import FINISHED, GAVE_UP, LOOK_SECONDS, PROGRESS, Session, write_notes
from sluice_s3.loadtests.status_row import show_status

logger = logging.getLogger(__name__)
STOP_SECONDS = 60.0
"""Seconds for users that are in a request when a test ends."""
PAGE_STOP_SECONDS = 20.0
"""The same with a web page.

Locust's workers are away from their master for as long after each test. After MASTER_HEARTBEAT_TIMEOUT (60 s) they
presume it dead and end.
"""
SAY_SECONDS = 2.0
"""Seconds between two lines on the progress."""


@dataclass(frozen=True)
class StageResult:
    """What all processes measured in a stage."""

    stage: Stage
    errors: int = 0
    moved: int = 0
    times: Latencies = field(default_factory=Latencies)

    @property
    def rate(self) -> float:
        """Successful operations a second."""
        return self.times.count / self.stage.seconds

    @property
    def p99(self) -> float:
        """The 99th percentile in seconds; infinite if nothing succeeded."""
        return self.times.percentile(0.99) if self.times.count else math.inf


class Coordinator:
    """Leads one test after another. `of` returns the one of an environment."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.names: list[str] = []
        """The processes that play users in this test."""
        self.begun = False
        self.status = ""
        """What is done before the measurement; empty during it."""
        self._progress: dict[str, dict[str, Any]] = {}
        self._prepared: set[str] = set()
        self._finished: dict[str, dict[str, Any]] = {}
        self._ended_stages: dict[str, dict[str, Any]] = {}
        self._said = 0.0
        self._stopping = False
        self._conductor: gevent.Greenlet | None = None

    @staticmethod
    def of(environment: Environment) -> Coordinator:
        """Return the coordinator of an environment."""
        found = environment.sluice_coordinator  # type: ignore[attr-defined]
        assert isinstance(found, Coordinator)
        return found

    def register(self) -> None:
        """Listen to the processes that play users."""
        runner = self.environment.runner
        assert runner is not None
        for name, listener in (
            (PROGRESS, self._on_progress),
            (PREPARED, self._on_prepared),
            (FINISHED, self._on_finished),
            (STAGE_ENDED, self._on_stage_ended),
        ):
            runner.register_message(name, listener)

    def start_test(self) -> None:
        """Begin a test: note who takes part, and wait for their preparation."""
        self.end_test()
        runner, options = self.environment.runner, cast(Any, self.environment.parsed_options)
        assert runner is not None
        if isinstance(runner, MasterRunner):
            self.names = [one.id for one in (*runner.clients.ready, *runner.clients.running, *runner.clients.spawning)]
        else:
            self.names = [runner.client_id]  # type: ignore[attr-defined]
        options.node_names = self.names
        options.test_token = secrets.token_hex(8)
        options.measured_seconds = self._take_page_time()
        self.status, self._stopping = "preparing", False
        self._progress, self._prepared, self._finished = {}, set(), {}
        self._conductor = gevent.spawn(self._conduct)

    def stop_players(self) -> None:
        """Have all processes end their operations, and wait for that: then the bucket may be removed."""
        self._stopping = True
        self._send(END, {})
        deadline = time.monotonic() + STOP_SECONDS
        while not self._alive() <= self._finished.keys() and time.monotonic() < deadline:
            gevent.sleep(LOOK_SECONDS)

    def end_test(self) -> None:
        """Stop waiting."""
        self.status, self.begun = "", False
        if self._conductor is not None:
            self._conductor.kill(block=False)
            self._conductor = None

    def measure(self, stage: Stage) -> StageResult:
        """Have all processes record a stage, and return what they measured."""
        self._ended_stages = {}
        self._send(STAGE, {"name": stage.name, "users": stage.users, "settle": stage.settle, "seconds": stage.seconds})
        while not self._alive() <= self._ended_stages.keys():
            gevent.sleep(LOOK_SECONDS)
        times = Latencies()
        for data in self._ended_stages.values():
            times.merge(Latencies(data["times"]))
        errors, moved = (sum(one[name] for one in self._ended_stages.values()) for name in ("errors", "moved"))
        return StageResult(stage, errors, moved, times)

    def _take_page_time(self) -> float:
        """Return the seconds to measure that the web page's form has as run time, instead of Locust's own limit."""
        options: Any = self.environment.parsed_options
        page = self.environment.web_ui
        if page is None or not options.run_time or options.duration or not is_timed(self.environment):
            return 0.0
        cancel = getattr(page, "_cancel_run_time_timer", None)
        if cancel is None:  # another version of Locust: then it stays a limit
            return 0.0
        cancel()
        return float(options.run_time)

    def _conduct(self) -> None:
        while not self._alive() <= self._prepared:
            gevent.sleep(LOOK_SECONDS)
        self.status, self.begun = "", True
        self._send(BEGIN, {})

    def _alive(self) -> set[str]:
        runner = self.environment.runner
        if not isinstance(runner, MasterRunner):
            return set(self.names)
        # one that only missed heartbeats, on a busy machine, comes back; Locust drops it after a minute
        return {name for name in self.names if name in runner.clients}

    def _send(self, name: str, data: dict[str, Any]) -> None:
        runner = self.environment.runner
        assert runner is not None
        runner.send_message(name, data)

    def _on_progress(self, msg: Any, **_: Any) -> None:
        self._progress[self._name(msg)] = msg.data
        done, total = (sum(one[key] for one in self._progress.values()) for key in ("done", "total"))
        text = f"preparing {done:,} of {total:,} {msg.data['what']}"
        self.status = "" if done == total else text
        if done == total or time.monotonic() > self._said + SAY_SECONDS:
            self._said = time.monotonic()
            logger.info("%s", text)

    def _on_prepared(self, msg: Any, **_: Any) -> None:
        self._prepared.add(self._name(msg))

    def _on_stage_ended(self, msg: Any, **_: Any) -> None:
        self._ended_stages[self._name(msg)] = msg.data

    def _on_finished(self, msg: Any, **_: Any) -> None:
        runner = self.environment.runner
        assert runner is not None
        self._finished[self._name(msg)] = msg.data
        problem = msg.data["problem"]
        if problem and isinstance(runner, MasterRunner):
            logger.error("gave up: %s", problem)
        if problem:
            self.environment.process_exit_code = GAVE_UP
        if not self._stopping and (problem or self._alive() <= self._finished.keys()):
            self._stopping = True
            self._show_omission()
            self._end()

    def _end(self) -> None:
        runner = self.environment.runner
        if is_staged(self.environment):
            # Locust ends a test with a shape by itself, and would not wait for the bucket's removal if we did
            self.environment.shape_class.end()  # type: ignore[union-attr]
        elif runner is not None:
            gevent.spawn(runner.quit if self.environment.web_ui is None else runner.stop)

    def _show_omission(self) -> None:
        """Say what a closed loop hides: the times there would have been at an even rate, the one it reached."""
        options: Any = self.environment.parsed_options
        times, seconds = Latencies(), max(one["seconds"] for one in self._finished.values())
        for data in self._finished.values():
            times.merge(Latencies(data["times"]))
        closed = getattr(scenario_of(self.environment), "closed_loop", False) and not options.throughput
        if not closed or not times.count or not seconds:
            return
        rate = times.count / seconds
        p99 = times.percentile(0.99)
        # added operations wait less than what held them up: their many short waits must not lower the percentile
        even = max(p99, times.without_omission(self._users() / rate).percentile(0.99))
        write_notes(options, {"closed_loop": {"rate": rate, "p99": p99, "p99_even": even}})
        logger.info(
            "a closed loop: p99 %.2f ms, but %.2f ms if operations had been due at an even %.1f/s (%s)",
            *(p99 * 1000, even * 1000, rate, "--throughput and open_loop measure that"),
        )

    def _users(self) -> int:
        runner, options = self.environment.runner, cast(Any, self.environment.parsed_options)
        return max(1, int(options.num_users or (runner.target_user_count if runner else 1)))

    def _name(self, msg: Any) -> str:
        return self.names[0] if msg.node_id == "local" else str(msg.node_id)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _on_init(environment: Environment, **_: Any) -> None:
    options: Any = environment.parsed_options
    if isinstance(environment.runner, WorkerRunner):
        # Locust makes its parser once for each option that the master sends: on a busy machine heartbeats are missed
        argument_parser.default_args_dict = functools.cache(argument_parser.default_args_dict)
    else:
        if several(environment) and not options.class_picker:
            logger.error(several(environment))
            raise SystemExit(GAVE_UP)
        take_run_time(environment)
        environment.sluice_coordinator = Coordinator(environment)  # type: ignore[attr-defined]
        environment.sluice_coordinator.register()  # type: ignore[attr-defined]
        show_status(environment, lambda: Coordinator.of(environment).status)
    if not options.class_picker:
        choose_shape(environment)
    if not isinstance(environment.runner, MasterRunner):
        environment.sluice_player = Player(environment)  # type: ignore[attr-defined]
        environment.sluice_player.register()  # type: ignore[attr-defined]
    environment.stop_timeout = environment.stop_timeout or (
        STOP_SECONDS if environment.web_ui is None else PAGE_STOP_SECONDS
    )


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _on_test_start(environment: Environment, **_: Any) -> None:
    runner = environment.runner
    coordinator: Coordinator | None = getattr(environment, "sluice_coordinator", None)
    if coordinator is not None:
        problem = several(environment) or shape_missing(environment)
        if problem and runner is not None:
            logger.error("%s", problem)  # chosen in the web page, which stays
            gevent.spawn(runner.stop)
            return
        coordinator.start_test()
    player: Player | None = getattr(environment, "sluice_player", None)
    if player is not None:
        player.start_test()


@events.test_stopping.add_listener  # type: ignore[untyped-decorator]
def _on_test_stopping(environment: Environment, **_: Any) -> None:
    found: Session | None = getattr(environment, "sluice", None)
    if found is not None:
        found.over = True
        found.ready.set()
    if isinstance(environment.runner, MasterRunner):
        Coordinator.of(environment).stop_players()


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def _on_test_stop(environment: Environment, **_: Any) -> None:
    coordinator: Coordinator | None = getattr(environment, "sluice_coordinator", None)
    if coordinator is not None:
        coordinator.end_test()
    player: Player | None = getattr(environment, "sluice_player", None)
    if player is not None:
        player.end_preparation()
    found: Session | None = getattr(environment, "sluice", None)
    if found is not None:
        found.close()
    options: Any = environment.parsed_options
    _quit_alone(environment)
    if isinstance(environment.runner, WorkerRunner) or options.keep:
        return
    session = found or Session(environment)
    if session.check() or not getattr(options, "test_token", ""):
        return  # then nothing was made
    problem = session.connect().sweep()
    if problem:
        logger.warning("the %s not removed: %s", "objects are" if options.prefix else "bucket is", problem)


def _quit_alone(environment: Environment) -> None:
    """End a master without a page whose last worker went missing: Locust would wait forever."""
    if isinstance(environment.runner, MasterRunner) and environment.web_ui is None:
        gevent.spawn(environment.runner.quit)
