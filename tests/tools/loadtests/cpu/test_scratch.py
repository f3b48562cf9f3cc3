"""Directories of measurements are removed, also where a mount takes its time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sluice_s3.loadtests.common import scratch


def test_it_is_there_and_then_gone(tmp_path: Path) -> None:
    with scratch.scratch("made-", tmp_path) as directory:
        assert directory.parent == tmp_path
        (directory / "a").mkdir()
        (directory / "a" / "file").write_bytes(b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_mount_lets_go_of_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = 0
    rmdir = os.rmdir

    def late(path: str, *, dir_fd: int | None = None) -> None:
        nonlocal refused
        if refused < 3:
            refused += 1
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        rmdir(path, dir_fd=dir_fd)

    monkeypatch.setattr(scratch, "PAUSE", 0.001)
    monkeypatch.setattr(os, "rmdir", late)
    with scratch.scratch("made-", tmp_path) as directory:
        (directory / "a").mkdir()
    assert refused == 3
    assert list(tmp_path.iterdir()) == []


def test_what_never_goes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(path: str, *, dir_fd: int | None = None) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

    monkeypatch.setattr(scratch, "PATIENCE", 0.01)
    monkeypatch.setattr(scratch, "PAUSE", 0.001)
    with (
        monkeypatch.context() as patched,
        pytest.raises(OSError, match="not empty"),
        scratch.scratch("made-", tmp_path),
    ):
        patched.setattr(os, "rmdir", never)
