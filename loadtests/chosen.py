"""Which scenario was chosen, its shape, and how long it lasts."""

from __future__ import annotations

import logging
from typing import Any

from locust.env import Environment

logger = logging.getLogger(__name__)


def scenario_of(environment: Environment) -> Any:
    """Return the class of the scenario that was chosen; None if there is none of ours."""
    return next((one for one in environment.user_classes if getattr(one, "exclusive", False)), None)


def is_timed(environment: Environment) -> bool:
    """Return whether all chosen scenarios last as long as `--duration` says."""
    return all(getattr(one, "timed", False) for one in environment.user_classes)


def is_staged(environment: Environment) -> bool:
    """Return whether a shape says what is measured when."""
    return getattr(environment.shape_class, "staged", False)


def take_run_time(environment: Environment) -> None:
    """Use `--run-time` as the duration if none is set.

    Locust would count the preparation into it.
    """
    options: Any = environment.parsed_options
    begins_alone = options.headless or options.autostart
    if begins_alone and options.run_time and not options.duration and is_timed(environment):
        options.duration, options.run_time = float(options.run_time), None
        logger.info("measures for %g s after preparation and warm-up (--run-time as --duration)", options.duration)


def choose_shape(environment: Environment) -> None:
    """Have the chosen scenario's own shape, and no shape of another scenario's file.

    Locust takes the first shape of all files.
    """
    found = getattr(scenario_of(environment), "shape", None)
    if found is not None:
        if type(environment.shape_class) is not found and (environment.shape_class is None or is_staged(environment)):
            environment.shape_class = found()
    elif is_staged(environment):
        environment.shape_class = None
    if is_staged(environment):
        shape: Any = environment.shape_class
        shape.runner = environment.runner
        options: Any = environment.parsed_options
        options.num_users = options.num_users or shape.usual_users


def several(environment: Environment) -> str:
    """Return an error if several scenarios were chosen, else an empty string."""
    names = [one.__name__ for one in environment.user_classes if getattr(one, "exclusive", False)]
    return f"one scenario at a time: name one of {', '.join(sorted(names))}" if len(names) > 1 else ""


def shape_missing(environment: Environment) -> str:
    """Return an error if the scenario has a shape and the web page was given none, else an empty string."""
    wanted = getattr(scenario_of(environment), "shape", None)
    if wanted is None or environment.shape_class is not None:
        return ""
    return f"{scenario_of(environment).__name__} needs its shape: choose {wanted.__name__} beside it"
