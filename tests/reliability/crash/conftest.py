"""What of the crash tests runs on a Postgres index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.environment import SIZE

OF_THE_INDEX = ("index.", "sweep.", "store.committed", "tree.committed")
"""Crash points where it matters which engine the index has: around its commits, and where a sweep reads it."""
NOT_OF_THE_INDEX = {"test_inventory", "test_logging", "test_notifications", "test_postgres", "test_power_cut"}
"""Modules that choose the engine by themselves, or cut what the index does not lie on."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what SQLite has told already, but at the size of soak."""
    if postgres.CHOSEN != "postgres" or SIZE == "soak":
        return
    here = Path(__file__).parent
    left = {item for item in items if item.path.parent == here and not _is_of_the_index(item)}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]


def _is_of_the_index(item: pytest.Item) -> bool:
    if item.path.stem in NOT_OF_THE_INDEX:
        return False
    call = getattr(item, "callspec", None)
    point = None if call is None else call.params.get("point")
    return point is None or str(point).startswith(OF_THE_INDEX)
