"""Gateways that a run starts: where their index lies, and what is said of one that does not start."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sluice_s3.loadtests.common.s3_calls import READY_SECONDS, S3CallError
from sluice_s3.loadtests.common.targets import Keys, Running
from sluice_s3.loadtests.common.targets import Target as Launched
from sluice_s3.loadtests.compare.plan import Plan
from sluice_s3.loadtests.compare.stores import Store
from sluice_s3.loadtests.compare.targets import Target, start_target
from sluice_s3.loadtests.mounts.mount import mounted
from tests.support.environment import need_fuse
from tests.support.gateway import ACCESS_KEY, SECRET_KEY

KEYS = Keys(ACCESS_KEY, SECRET_KEY)


def test_index_is_beside_a_mount_whose_driver_is_local(tmp_path: Path) -> None:
    """A store of the settings may have the driver `local` on FUSE; SQLite's index cannot lie there."""
    need_fuse()
    backing, where, parent = (tmp_path / name for name in ("backing", "mount", "parent"))
    for directory in (backing, where, parent):
        directory.mkdir()
    target = Target("there", "gateway", Store("there", "path", where, "local"))
    with mounted(backing, where), start_target(target, Plan(1, {}), KEYS, parent, tmp_path / "log") as there:
        assert there.driver == "local"
        assert list(parent.rglob("index.db"))
        assert list(where.rglob("store.json"))
    assert not list(parent.iterdir())
    assert not list(backing.iterdir())


def test_gateway_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    """What it printed is said at once, not when it should have been ready."""
    broken = Running(Launched("broken", command="sh -c 'echo no index >&2; exit 3'"), KEYS, tmp_path, None)
    began = time.monotonic()
    with pytest.raises(S3CallError, match="no index"), broken:
        pass
    assert time.monotonic() - began < READY_SECONDS / 2
