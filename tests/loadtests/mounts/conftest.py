from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from loadtests.mounts import Mount, mounted
from tests.environment import need_fuse

Make = Callable[..., Mount]


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
