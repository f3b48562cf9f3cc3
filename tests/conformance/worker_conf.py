"""A pytest plugin for the run of the suite: accounts of its own for every worker, and the choice of tests."""

from __future__ import annotations

import os
from typing import Any


def pytest_configure() -> None:
    """`S3TEST_CONF` names the file of the first worker; the others lie beside it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    path = os.environ["S3TEST_CONF"]
    os.environ["S3TEST_CONF"] = os.path.join(os.path.dirname(path), f"{worker}.conf")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep the tests that the file `CHOSEN_TESTS` names, one a line, if there is one."""
    path = os.environ.get("CHOSEN_TESTS")
    if path is None:
        return
    with open(path) as file:
        names = set(file.read().split("\n"))
    config.hook.pytest_deselected(items=[item for item in items if item.name not in names])
    items[:] = [item for item in items if item.name in names]
