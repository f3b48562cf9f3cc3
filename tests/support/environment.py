"""What this machine can run and how much of it is wanted: SLUICE_TEST_SIZE=ci (default) or soak; CI=true in CI."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
PYTHONPATH = f"{ROOT / 'build/checkout'}:{ROOT}"
"""For processes of tests: the packages as `make` links them come before an installed Sluice."""
"""The checkout."""

SIZE = os.environ.get("SLUICE_TEST_SIZE", "ci")
if SIZE not in ("ci", "soak"):
    raise ValueError("SLUICE_TEST_SIZE must be ci or soak")
CI = os.environ.get("CI", "").lower() in ("1", "true")


def sized(ci: T, soak: T) -> T:
    """The first value at the size of `make test`, the second at that of `make soak`."""
    return soak if SIZE == "soak" else ci


def lack(reason: str) -> NoReturn:
    """Skip the test, but fail it in CI, where a test that never runs would go unnoticed."""
    if CI:
        pytest.fail(reason)
    pytest.skip(reason)


def need(*programs: str) -> None:
    """The programs must be installed; `.ci/packages` lists where they come from."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        lack(f"not installed: {', '.join(missing)}")


def need_root() -> None:
    """The test mounts filesystems. Also in CI it is skipped where that is not allowed to us."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("this machine has no loop devices")


def need_fuse() -> None:
    """The test mounts by `loadtests.mounts`."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        lack("this machine has no /dev/fuse for us")
    if ctypes.util.find_library("fuse3") is None and ctypes.util.find_library("fuse") is None:
        lack("libfuse is not installed")
    if importlib.util.find_spec("mfusepy") is None:
        lack("mfusepy is not installed")
