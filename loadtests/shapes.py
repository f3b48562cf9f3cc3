"""Locust's load shapes that measure stages, each with its own number of clients."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import gevent
from locust import LoadTestShape

from sluice_s3.loadtests.coordination import Coordinator, StageResult
from sluice_s3.loadtests.player import Stage
from sluice_s3.loadtests.session import LOOK_SECONDS, write_notes

logger = logging.getLogger(__name__)
SPAWN_RATE = 100.0
"""Users a second; of more Locust warns."""
STAGE_SECONDS = 10.0
"""How long a stage is measured where no `--duration` is given."""


class StagedShape(LoadTestShape):
    """A shape whose stages begin when all their clients run, and end when all their operations have.

    Locust alone counts a stage's ramp and its first, slow requests as part of it.
    """

    abstract = True
    use_common_options = True
    staged = True
    usual_users = 64
    """`--users` where none is given."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._stage: Stage | None = None
        self._player: gevent.Greenlet | None = None

    @property
    def options(self) -> Any:
        """Locust's parsed options."""
        assert self.runner is not None
        return self.runner.environment.parsed_options

    @property
    def users(self) -> int:
        """The most clients."""
        return max(1, int(self.options.num_users or self.usual_users))

    @abstractmethod
    def next_stage(self, results: Sequence[StageResult]) -> Stage | None:
        """Return the stage after those with these results; None at the end."""

    def stage(self, name: str, users: int, settle: float) -> Stage:
        """Return a stage that is measured for `--duration` seconds."""
        return Stage(name, users, settle, float(self.options.duration or STAGE_SECONDS))

    def conclude(self, results: Sequence[StageResult]) -> dict[str, Any]:
        """Return what the report should know at the end, and print it."""
        return {}

    def reset_time(self) -> None:
        """Begin with the first stage (called by Locust when a test starts)."""
        super().reset_time()  # type: ignore[no-untyped-call]
        if self._player is not None:
            self._player.kill(block=False)
        self._stage = self._player = None

    def end(self) -> None:
        """End the test at the next tick."""
        if self._player is not None:
            self._player.kill(block=False)
        self._stage = None

    def tick(self) -> tuple[int, float] | None:
        """See `LoadTestShape`."""
        if self._player is None:
            self._stage = self.next_stage([])
            self._player = gevent.spawn(self._play)
        return None if self._stage is None else (self._stage.users, SPAWN_RATE)

    def _play(self) -> None:
        runner = self.runner
        assert runner is not None
        coordinator = Coordinator.of(runner.environment)
        results: list[StageResult] = []
        while self._stage is not None:
            while not coordinator.begun or not runner.target_user_count == runner.user_count == self._stage.users:
                gevent.sleep(LOOK_SECONDS)
            coordinator.status = f"measuring {self._stage.name}"
            result = coordinator.measure(self._stage)
            results.append(result)
            logger.info("%s", describe(result))
            next_stage = self.next_stage(results)
            if next_stage is None:
                break
            self._stage = next_stage
        write_notes(self.options, self.conclude(results))
        coordinator.stop_players()
        self._stage = None


def describe(result: StageResult) -> str:
    """Return a stage's result as a line of text."""
    failed = f", {result.errors:,} errors" if result.errors else ""
    times = f"p50 {result.times.percentile(0.5) * 1000:.2f} ms, p99 {result.p99 * 1000:.2f} ms"
    return f"{result.stage.name}: {result.stage.users} clients, {result.rate:,.1f}/s, {times}{failed}"
