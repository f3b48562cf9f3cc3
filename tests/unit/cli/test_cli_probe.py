"""`sluice probe` as a person and as a script use it."""

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.main import cli
from sluice_s3.storage_drivers.probing import trials as probe_trials
from sluice_s3.storage_drivers.probing.probe import run_with_timeout
from sluice_s3.storage_drivers.probing.trials import Capability


def test_a_table(tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["probe", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "fsync of a directory" in told.output
    assert "durability full: yes" in told.output
    assert list(tmp_path.iterdir()) == []


def test_json(tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["probe", str(tmp_path), "--json"])
    assert json.loads(told.output)["trials"]["exclusive create"]["works"] is True


def test_a_mount_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(probe_trials.CHECKS, Capability.READ_BACK, lambda _: (False, "other bytes"))
    told = CliRunner().invoke(cli, ["probe", str(tmp_path), "--json"])
    assert told.exit_code == 8
    assert json.loads(told.output)["refused"]["relaxed"].startswith("unfit (integrity)")


def test_a_mount_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.probing.probe.run_with_timeout", lambda *args: run_with_timeout(*args, timeout=0.3)
    )
    monkeypatch.setitem(probe_trials.CHECKS, Capability.FSYNC_FILE, lambda _: (go_on.wait(30), ""))
    told = CliRunner().invoke(cli, ["probe", str(tmp_path)])
    go_on.set()
    assert told.exit_code == 1
    assert "has not answered" in told.output


def test_a_mount_that_cannot_be_tried_names_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As squashfuse, which answers ENOSYS."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("sluice_s3.storage_drivers.probing.scratch.os.mkdir", refuse)
    told = CliRunner().invoke(cli, ["probe", str(tmp_path)])
    assert (told.exit_code, "(mkdir): Function not implemented" in told.output) == (1, True)


def test_no_directory(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["probe", str(tmp_path / "missing")]).exit_code == 1
