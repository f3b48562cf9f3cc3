"""The commands, and the experiments that a calibration runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.loadtests.mounts import PROFILES, unmount
from sluice_s3.loadtests.mounts.__main__ import cli
from sluice_s3.loadtests.mounts.calibration import Outcome, calibrate
from sluice_s3.loadtests.mounts.experiments import EXPERIMENTS, Experiment, experiments
from sluice_s3.loadtests.mounts.mount import ROOT
from sluice_s3.loadtests.mounts.workloads import linux_tree
from tests.support.environment import need_fuse
from tests.support.waiting import eventually


def run(*words: str) -> str:
    """What the command printed."""
    result = CliRunner().invoke(cli, [*words])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_mount_and_tell(tmp_path: Path) -> None:
    need_fuse()
    backing, where, control = tmp_path / "backing", tmp_path / "where", tmp_path / "control"
    backing.mkdir()
    where.mkdir()
    command = [
        sys.executable,
        "-m",
        "sluice_s3.loadtests.mounts",
        "mount",
        str(backing),
        str(where),
        "--control",
        str(control),
    ]
    command += ["--profile", "efs-003-bursting", "--ms", "create=0", "--tracked"]
    command += ["--fault", json.dumps({"call": "mkdir", "act": "EROFS"})]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        eventually(lambda: os.path.ismount(where) or process.poll() is not None, "it is mounted", 20)
        assert process.poll() is None, process.communicate()[0]
        with pytest.raises(OSError, match="Read-only"):
            (where / "made").mkdir()
        number = run("tell", str(control), "fault", json.dumps({"fault": {"call": "open", "act": "ESTALE", "nth": 9}}))
        assert json.loads(run("tell", str(control), "struck"))[number] == 0
        assert run("tell", str(control), "credits", '{"bytes": 5}') == "5.0"
        (where / "file").write_bytes(b"gone")
        assert json.loads(run("tell", str(control), "counts"))["create"] == 1
        assert run("tell", str(control), "crash") == "1"
        assert os.listdir(backing) == []
        refused = CliRunner().invoke(cli, ["tell", str(control), "nothing"])
        assert refused.exit_code == 1
    finally:
        unmount(where)
        process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.parametrize("wrong", [["--profile", "efs"], ["--personality", "x"], ["--ms", "x=1"], ["--fault", "{"]])
def test_mount_refuses(tmp_path: Path, wrong: list[str]) -> None:
    refused = CliRunner().invoke(cli, ["mount", str(tmp_path), str(tmp_path), *wrong])
    assert refused.exit_code == 1


def test_calibration_measures_a_figure_and_the_floor() -> None:
    need_fuse()
    found = list(calibrate(["efs-003-elastic"], "0.001 MB"))
    assert [(one.profile, one.experiment.figure) for one in found] == [("efs-003-elastic", 95.2)]
    # a sleep is never too short, and nothing else is asserted of times
    assert found[0].measured > 85
    assert found[0].floor > 0


def test_verdicts() -> None:
    def verdict(unit: str, measured: float, floor: float, **figures: float) -> str:
        return Outcome("x", Experiment("what", unit, lambda mount: 0.0, **figures), measured, floor).verdict

    assert verdict("ms", 11, 3, figure=10) == "near"
    assert verdict("ms", 13, 3, figure=10) == "off"
    assert verdict("ms", 10, 4, figure=10) == "floor"
    assert verdict("MB/s", 9, 31, figure=10) == "near"
    assert verdict("MB/s", 9, 29, figure=10) == "floor"
    assert verdict("MB/s", 0.7, 9, most=1) == "near"
    assert verdict("MB/s", 1.3, 9, most=1) == "off"
    assert verdict("MB/s", 15, 200, least=20, most=50) == "off"


def test_every_profile_has_its_figures() -> None:
    assert set(EXPERIMENTS) == set(PROFILES) - {"none"}
    for profile in EXPERIMENTS:
        assert all(one.figure or one.most for one in experiments(profile))


def test_a_tree_is_that_of_the_publication() -> None:
    tree = linux_tree(0.1)
    assert (len(tree.files), len(tree.directories)) == (5400, 366)
    assert tree.total == pytest.approx(72_600_000, rel=0.02)
    assert max(size for _, size in tree.files) <= 2_000_000
    made: set[str] = set()
    for directory in tree.directories:
        assert os.path.dirname(directory) in {"", *made}
        made.add(directory)
    assert {os.path.dirname(name) for name, _ in tree.files} <= made
    assert linux_tree(0.1) == tree
