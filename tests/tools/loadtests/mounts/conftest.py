from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.mounts import Mount, mounted
from tests.support.environment import need_fuse

Make = Callable[..., Mount]


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Mounts that the tests of a module share, one for each choice of options."""
    need_fuse()
    with ExitStack() as stack:
        made: dict[str, Mount] = {}

        def one(**more: Any) -> Mount:
            key = repr(sorted(more.items()))
            if key not in made:
                backing, where = tmp_path_factory.mktemp("backing"), tmp_path_factory.mktemp("mount")
                made[key] = stack.enter_context(mounted(backing, where, **more))
            return made[key]

        yield one


@pytest.fixture
def share(mounts: Make) -> Iterator[Make]:
    """One of the module's mounts, empty and without faults; the test has to leave it running."""
    used: list[Mount] = []

    def one(**more: Any) -> Mount:
        used.append(mounts(**more))
        return used[-1]

    yield one
    for mount in used:
        mount.clear()
        for path in mount.path.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        root = os.open(mount.path, os.O_RDONLY)
        os.fsync(root)
        os.close(root)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes mounts; they end with the test."""
    need_fuse()
    with ExitStack() as stack:
        count = 0

        def one(**more: Any) -> Mount:
            nonlocal count
            count += 1
            backing, where = tmp_path / f"backing{count}", tmp_path / f"mount{count}"
            backing.mkdir()
            where.mkdir()
            return stack.enter_context(mounted(backing, where, **more))

        yield one
