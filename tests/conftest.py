"""For all tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.environment import SIZE, sized


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
