"""Sets Locust's exit code when a test measured nothing: Locust alone exits with 0."""

from __future__ import annotations

import logging
from typing import Any

from locust import events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

logger = logging.getLogger(__name__)
MEASURED = "sluice-measured"
NOTHING_MEASURED = 4
"""Locust's exit code when a test ended before its first request was recorded."""


def note_measured(environment: Environment) -> None:
    """Note that the test has measured something, here and at the master."""
    environment.sluice_measured = True  # type: ignore[attr-defined]
    if isinstance(environment.runner, WorkerRunner):
        environment.runner.send_message(MEASURED)


@events.init.add_listener  # type: ignore[untyped-decorator]
def _on_init(environment: Environment, **_: Any) -> None:
    def on_measured(**_: Any) -> None:
        note_measured(environment)

    if isinstance(environment.runner, MasterRunner):
        environment.runner.register_message(MEASURED, on_measured)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _on_test_start(environment: Environment, **_: Any) -> None:
    environment.sluice_measured = False  # type: ignore[attr-defined]
    if environment.process_exit_code == NOTHING_MEASURED:  # left by the test before, with the web page
        environment.process_exit_code = None


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def _on_test_stop(environment: Environment, **_: Any) -> None:
    _check(environment)


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _on_quitting(environment: Environment, **_: Any) -> None:
    _check(environment)  # after a signal Locust chooses the exit code before it stops the test


def _check(environment: Environment) -> None:
    """Warn and set the exit code if a test began but nothing was measured."""
    if isinstance(environment.runner, WorkerRunner) or getattr(environment, "sluice_measured", True):
        return
    if environment.process_exit_code is not None:
        return
    environment.process_exit_code = NOTHING_MEASURED
    logger.error(
        "nothing was measured: the test ended before its first recorded request. "
        "Preparation and warm-up come before it; --duration counts from after them"
    )
