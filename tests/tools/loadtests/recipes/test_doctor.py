"""`sluice bench doctor`: what a recipe needs, and what is said of a mount."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.main import cli
from sluice_s3.loadtests.recipes import RECIPES, checks
from sluice_s3.storage_drivers.mountinfo import Mount
from tests.support.environment import ROOT

PAGES = ROOT / "docs" / "load-testing"
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command on a machine with all programs, and on a mount with these options; returns code and findings."""

    def run(recipe: str, *options: str, kind: str = "", settings: str = "rw") -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(checks.shutil, "which", lambda name, **_: f"/usr/bin/{name}")
        monkeypatch.setattr(checks, "_knows", lambda _: (True, ""))
        monkeypatch.setattr(checks, "_rclone_version", lambda: checks.Finding("version", True))
        monkeypatch.setattr(checks.os, "access", lambda *_: True)
        if kind:
            mount = Mount(kind, "server:/", str(tmp_path), "rw,noatime", settings)
            for module in ("loadtests.recipes.checks", "storage_drivers.probing.probe"):
                monkeypatch.setattr(f"sluice_s3.{module}.mount_of", lambda _: mount)
            options = (*options, "--path", str(tmp_path))
        done = CliRunner().invoke(cli, ["bench", "doctor", recipe, *options, "--json"])
        found = json.loads(done.output)["findings"] if done.exit_code in (0, 8) else []
        return done.exit_code, {one["what"]: one for one in found}

    return run


EFS = "rw,vers=4.1,rsize=1048576,wsize=1048576,noresvport,hard,timeo=600"


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_on_a_machine_that_has_everything(examine: Run, recipe: str) -> None:
    code, found = examine(recipe)
    assert (code, [what for what, one in found.items() if one["good"] is False]) == (0, [])


def test_a_mount_as_it_should_be(examine: Run) -> None:
    code, found = examine("efs", kind="nfs4", settings=EFS)
    assert code == 0
    assert found["mounted with vers=4.1"]["good"] is True
    assert found["a durable store may be here"]["good"] is True


@pytest.mark.parametrize(
    ("recipe", "kind", "settings", "bad"),
    [
        ("efs", "nfs4", EFS.replace("hard", "soft"), {"mounted with hard", "mounted without soft"}),
        ("efs", "nfs4", EFS.replace("rsize=1048576", "rsize=4096"), {"mounted with rsize=1048576"}),
        ("efs", "nfs4", EFS.replace(",noresvport", ""), {"mounted with noresvport"}),
        ("nfs", "nfs4", "hard,nocto", {"mounted without nocto"}),
        ("ebs", "ext4", "rw,nobarrier", {"mounted without nobarrier"}),
        ("ebs", "ext4", "rw,barrier=0", {"mounted without barrier=0"}),
        ("fsx-lustre", "lustre", "rw", {"mounted with flock"}),
        ("cephfs", "ceph", "rw,recover_session=clean", {"mounted without recover_session=clean"}),
        ("s3fs", "fuse.s3fs", "rw", set()),
        ("rclone", "fuse.rclone", "rw", {"a durable store may be here"}),
    ],
)
def test_what_speaks_against_a_mount(examine: Run, recipe: str, kind: str, settings: str, bad: set[str]) -> None:
    code, found = examine(recipe, kind=kind, settings=settings)
    assert {what for what, one in found.items() if one["good"] is False} == bad
    assert code == (8 if bad else 0)
    assert all(found[what]["detail"] for what in bad), "each says why"


def test_a_path_without_its_mount(examine: Run, tmp_path: Path) -> None:
    code, found = examine("efs", "--path", str(tmp_path))
    wrong = found[f"{tmp_path} is Amazon EFS"]
    assert (code, wrong["good"], "is it mounted?" in wrong["detail"]) == (8, False, True)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_answers_and_one_that_does_not(examine: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert examine("nfs", "--server", f"127.0.0.1:{port}")[1][f"127.0.0.1 answers at port {port}"]["good"] is True
        assert examine("nfs", "--server", f"127.0.0.1:{port + 65_536}")[0] == 8
    code, found = examine("nfs", "--server", f"127.0.0.1:{port}")
    assert (code, found[f"127.0.0.1 answers at port {port}"]["good"]) == (8, False)
    assert examine("nfs", "--server", "." * 300)[0] == 8
    assert examine("s3fs", "--server", "127.0.0.1")[1]["127.0.0.1 answers"]["good"] is None


def test_keys_that_others_may_read(examine: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".passwd-s3fs"
    what = f"{file} is for its owner only"
    assert examine("s3fs")[1][what]["good"] is None
    file.touch()
    file.chmod(0o644)
    assert examine("s3fs")[1][what] == {"what": what, "good": False, "detail": "its mode is 644"}
    file.chmod(0o600)
    assert examine("s3fs")[1][what]["good"] is True


@pytest.mark.parametrize(
    ("printed", "good"), [("rclone v1.60.1-DEV\n", False), ("rclone v1.76.0\n", True), ("what?", None), ("", None)]
)
def test_an_rclone_that_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, good: bool | None
) -> None:
    program = tmp_path / "rclone"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{printed}\nE\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert checks._rclone_version().good is good


def test_what_the_kernel_does_not_know(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "filesystems"
    known.write_text("nodev\tsysfs\n\text4\nnodev\tnfs4\n")
    monkeypatch.setattr(checks, "FILESYSTEMS", known)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checks, "SBIN", ())
    assert checks._knows("nfs4") == (True, "")
    assert checks._knows("ext4") == (True, "")
    assert checks._knows("lustre")[0] is False


def test_wrong_words(tmp_path: Path) -> None:
    for words in (("floppy",), ("efs", "--path", str(tmp_path / "missing"))):
        assert CliRunner().invoke(cli, ["bench", "doctor", *words]).exit_code == 2


def test_a_table_keeps_its_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    done = CliRunner().invoke(cli, ["bench", "doctor", "ebs"])
    assert (done.exit_code, "[loadtest]" in done.output) == (8, True)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_has_its_page(recipe: str) -> None:
    assert any(f"sluice bench doctor {recipe} " in page.read_text() for page in PAGES.glob("*.md"))
