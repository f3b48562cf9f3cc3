"""What features cost an operation."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.cpu.features import FEATURES, OPERATIONS, Cost, measure, table


def test_every_feature_is_measured(tmp_path: Path) -> None:
    keys = Keys("GK0123456789", "secret-of-the-test")
    found = measure(tmp_path, keys, None, count=30, size=1024, rounds=2)
    assert set(found) == {f"{name} {operation}" for name in FEATURES for operation in OPERATIONS}
    assert all(len(costs) == 2 for costs in found.values())
    assert list(tmp_path.iterdir()) == []


def test_the_table_sets_each_against_the_plain_one() -> None:
    costs = {f"{name} {operation}": [Cost(100, None)] for name in FEATURES for operation in OPERATIONS}
    costs["policy GET"] = [Cost(90, 290.0), Cost(130, 310.0), Cost(120, 330.0)]
    costs["plain GET"] = [Cost(100, 300.0)]
    console = Console(width=170)
    with console.capture() as shown:
        console.print(table(costs))
    assert "120 (310): +20 µs, +10 k" in shown.get()
    assert "100: +0 µs" in shown.get()
