"""For unit tests: their files are in memory, where a sync costs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.environment import SIZE

MEMORY = Path("/dev/shm")
MIN_FREE_BYTES = 2 << 30


@pytest.fixture(scope="session")
def memory_directory() -> Path | None:
    """A file system in memory; None where there is none with room, and in `make soak`, whose files are on the disk."""
    if SIZE == "soak" or not MEMORY.is_mount() or shutil.disk_usage(MEMORY).free < MIN_FREE_BYTES:
        return None
    return MEMORY


@pytest.fixture
def tmp_path(tmp_path: Path, memory_directory: Path | None, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory of the test's own, in memory unless the test is marked `disk`."""
    if memory_directory is None or request.node.get_closest_marker("disk") is not None:
        yield tmp_path
        return
    with TemporaryDirectory(prefix="sluice-test-", dir=memory_directory, ignore_cleanup_errors=True) as place:
        yield Path(place)
