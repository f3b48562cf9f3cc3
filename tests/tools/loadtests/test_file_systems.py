"""File systems of other projects: mounted, killed, mounted again, and what is said where one cannot be had."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.compare.stores import parse_store, provision
from sluice_s3.loadtests.file_systems import PROGRAMS, Program, mounted_by
from sluice_s3.loadtests.file_systems.program import Place, Served
from sluice_s3.loadtests.mounts import MountFailed
from sluice_s3.loadtests.mounts.fuse_server import is_mounted
from tests.support.environment import ROOT, need, need_fuse


@pytest.fixture
def bindfs() -> Program:
    need_fuse()
    need("bindfs")
    return PROGRAMS["bindfs"]


def test_killed_and_mounted_again(bindfs: Program, tmp_path: Path) -> None:
    with mounted_by(bindfs, tmp_path) as mount:
        (mount.path / "file").write_text("kept")
        assert (mount.place.behind / "file").read_text() == "kept"
        assert Path(f"/proc/{mount.pid}/exe").resolve().name == "bindfs"
        mount.kill()
        assert mount.pid == 0
        with pytest.raises(OSError, match="not connected"):
            os.listdir(mount.path)
        mount.restart()
        assert (mount.path / "file").read_text() == "kept"
    assert not is_mounted(mount.path)
    assert os.listdir(mount.path) == []


def test_a_program_that_does_not_mount_says_why(tmp_path: Path) -> None:
    def refuse(_: Place) -> Served:
        return Served(("sh", "-c", "echo no such volume >&2; exit 3"))

    program = Program("broken", "nothing", ("sh",), "", refuse)
    with pytest.raises(MountFailed, match="broken did not mount: no such volume"), mounted_by(program, tmp_path):
        pass


def test_a_program_that_cannot_be_prepared_says_why(bindfs: Program, tmp_path: Path) -> None:
    from sluice_s3.loadtests.file_systems.behind import run

    program = dataclasses.replace(bindfs, prepare=lambda _: print(run("sh", "-c", "echo no space >&2; exit 1")))
    with pytest.raises(MountFailed, match="bindfs could not be made: no space"), mounted_by(program, tmp_path):
        pass


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert PROGRAMS["gocryptfs"].missing() == "not installed: gocryptfs (gocryptfs)"
    with pytest.raises(PlanError, match=r"store g: not installed: gocryptfs"):
        parse_store("g=gocryptfs")


def test_a_store_of_a_comparison_lies_on_it(bindfs: Program, tmp_path: Path) -> None:
    with provision(parse_store("mine=bindfs"), tmp_path) as place:
        assert is_mounted(place.path)
        assert (place.driver, place.pid > 0) == ("fuse", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_bucket_behind_a_mount(tmp_path: Path) -> None:
    """s3fs on a gateway of ours: what is closed is an object there."""
    need_fuse()
    need("s3fs")
    with mounted_by(PROGRAMS["s3fs"], tmp_path) as mount:
        (mount.path / "file").write_text("kept")
        mount.kill()
        mount.restart()
        assert (mount.path / "file").read_text() == "kept"


def test_each_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "load-testing" / "file-systems.md").read_text()
    assert [name for name in PROGRAMS if not re.search(rf"^\| {re.escape(name)} ", page, re.MULTILINE)] == []
