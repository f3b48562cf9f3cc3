"""For all tests."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx._transports.default
import pytest
import typer.main
from hypothesis import HealthCheck, settings

from tests.support.environment import CI, SIZE, sized

UNMEASURED = "reliability"
"""Tests that start a gateway each: measuring coverage doubles what a start costs, and one that is killed tells none."""

# A busy machine is no finding: no example has a deadline. CI draws the same examples each time, `make soak` new ones.
settings.register_profile(
    "ci", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=CI
)
settings.register_profile("soak", settings.get_profile("ci"), max_examples=1000, derandomize=False)
settings.load_profile(SIZE)

# Typer builds the parsers of all our commands for each call of `CliRunner.invoke`: here only for the first one
typer.main.get_command = cache(typer.main.get_command)
# httpx reads all certificates of the world for each client, and for each `httpx.get`: 20 ms, mostly of no use here
httpx._transports.default.create_ssl_context = cache(httpx._transports.default.create_ssl_context)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Let the garbage collector pass by what collection makes, which stays: it is a quarter of what that costs.

    Tests that call it themselves, and the end of the run, are spared half a million objects each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep soak tests to `make soak`; tests that mount filesystems share one worker."""
    for item in items:
        if item.get_closest_marker("soak") is not None and SIZE != "soak":
            item.add_marker(pytest.mark.skip(reason="only at the size of `make soak`"))
        if item.get_closest_marker("power") is not None:
            item.add_marker(pytest.mark.xdist_group("power"))


@pytest.fixture(scope="session")
def size() -> Callable[[Any, Any], Any]:
    """`size(ci, soak)` gives one of the two."""
    return sized


@pytest.fixture(scope="module", autouse=True)
def _measured(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether processes of tests tell their coverage: those that many tests share do."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(Path(__file__).parent).parts[0] == UNMEASURED:
            patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield
