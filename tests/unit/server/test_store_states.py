"""How stores are, told from process to process."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.server.shared_memory.store_states import StoreStates


def test_each_process_tells_all_others(tmp_path: Path) -> None:
    made = StoreStates(tmp_path, ["a", "b"], 3, create=True)
    StoreStates(tmp_path, ["a", "b"], 3).publish(0, "b", "up", 2, 1, 5 << 32)
    StoreStates(tmp_path, ["a", "b"], 3).publish(2, "b", "down", 0, 3, 0)
    assert made.find("a") == []
    assert made.find("b") == [("up", 2, 1, 5 << 32), ("down", 0, 3, 0)]
    made.clear(0)
    assert made.find("b") == [("down", 0, 3, 0)]
