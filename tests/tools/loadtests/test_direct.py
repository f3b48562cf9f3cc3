"""Plain files instead of a gateway."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.loadtests.clients.filesystem import DirectObjects


@pytest.mark.parametrize("synced", [True, False])
def test_put_get_stat_list_delete(tmp_path: Path, synced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    objects = DirectObjects(tmp_path / "bucket", synced=synced)
    assert objects.prepare() == ""
    put = objects.put("a/b/c", 3_000_000)
    assert (put.error, put.bytes) == ("", 3_000_000)
    assert (tmp_path / "bucket/a/b/c").stat().st_size == 3_000_000
    assert len(syncs) == 2 * synced
    get = objects.get("a/b/c", 3_000_000)
    assert (get.error, get.bytes) == ("", 3_000_000)
    assert get.ttfb is not None
    assert get.ttfb < get.total
    assert objects.stat("a/b/c").error == ""
    assert objects.list("a/b/", "a/b/a", 10).error == ""
    assert objects.delete("a/b/c").error == ""
    assert len(syncs) == 3 * synced
    assert objects.sweep() == ""
    assert objects.sweep() == ""
    assert os.listdir(tmp_path) == []


def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    objects = DirectObjects(tmp_path, synced=True)
    assert objects.put("x", 10).error == ""
    assert objects.get("x", 11).error.startswith("wrong length")
    gone = objects.get("none", 1)
    assert (gone.status, gone.ttfb, gone.error) == (0, None, "FileNotFoundError: No such file or directory")
    assert objects.put("x/y", 1).error
    assert objects.delete("none").error
    assert "Not a directory" in DirectObjects(tmp_path / "x" / "y", synced=True).prepare()


def test_what_was_there_before_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    objects = DirectObjects(tmp_path / "mine", synced=True)
    assert "was not made by a load test" in objects.prepare()
    assert "was not made by a load test" in objects.sweep()
    assert (tmp_path / "mine" / "file").read_text() == "mine"
