"""The laboratory at its smallest size, and a violation that is planted in what it looks at."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.reliability.lab.faults.registry import FAULTS, Fault, Scene
from tests.reliability.lab.setups import SETUPS
from tests.reliability.lab.table import Row
from tests.reliability.lab.trial import faults_of, run_trial
from tests.support.environment import need, need_root, sized

pytestmark = [pytest.mark.crash, pytest.mark.power]
SEED = 1
BEFORE, HOLD = 25, 0.2
CHOSEN = {
    "sqlite-local": ("kill-all", "power-cut", "index-restored"),
    "postgres-local": ("kill-gateway", "net-one-way", "postgres-killed"),
}
"""What of the laboratory is in `make test`: the rest is `make lab`."""


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory, where there is room: disks of these tests are files that are written to in earnest."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    made = Path(tempfile.mkdtemp(prefix="sluice-lab-", dir=memory if roomy else None))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def run(setup: str, faults: tuple[str, ...], directory: Path) -> list[Row]:
    need_root()
    need("mkfs.ext4", "mount", "umount")
    return run_trial(SETUPS[setup], SEED, faults, directory, lambda row: None, before=BEFORE, hold=HOLD)


@pytest.mark.timeout(sized(600, 7200))
@pytest.mark.parametrize("setup", CHOSEN)
def test_nothing_is_lost_wrong_or_a_ghost(setup: str, directory: Path) -> None:
    faults = sized(CHOSEN[setup], tuple(faults_of(SETUPS[setup])))
    rows = run(setup, faults, directory)
    assert {row.fault for row in rows} == {*faults, "end"}
    assert [(row.fault, row.findings) for row in rows if row.findings] == []
    assert all(row.operations >= BEFORE for row in rows if row.fault != "end")


def _vanish(scene: Scene) -> Iterator[None]:
    """A row goes from the index behind the gateway's back: an acknowledged object is lost."""
    yield
    yield
    yield  # the clients have ended: nobody writes the key again before it is looked at
    with closing(sqlite3.connect(scene.site.index / "sluice.db")) as index, index:
        index.execute(
            "DELETE FROM versions WHERE rowid IN (SELECT v.rowid FROM versions v JOIN buckets b ON b.id = v.bucket_id"
            " WHERE b.name = 'plain' AND v.key LIKE 'vanish/%' LIMIT 1)"
        )


def _break(scene: Scene) -> Iterator[None]:
    """The site does not come back."""
    yield
    raise RuntimeError


def test_what_vanishes_is_found_on_another_site_than_one_that_broke(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAULTS, "vanish", Fault("vanish", _vanish, lambda setup: True))
    monkeypatch.setitem(FAULTS, "break", Fault("break", _break, lambda setup: True))
    broken, vanished, _ = run("sqlite-local", ("vanish", "break"), directory)
    assert (broken.fault, broken.count("wrong")) == ("break", 1)
    assert vanished.count("lost") >= 1
    assert vanished.replay() == "make lab SEED=1 SETUP=sqlite-local FAULT=vanish"


def test_a_set_up_that_cannot_be_built_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "1").touch()
    reported: list[Row] = []
    rows = run_trial(SETUPS["sqlite-local"], SEED, ("none",), tmp_path, reported.append, before=BEFORE, hold=HOLD)
    assert [row.count("wrong") for row in rows] == [1]
    assert reported == rows
