"""A small read and a small sync of a store, timed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.storage_drivers.errors import DriverError, ReadOnlyStore
from sluice_s3.storage_drivers.health import time_calls
from tests.unit.storage_drivers.conftest import MakeDriver


async def test_a_store_is_timed_and_left_as_it_was(make_driver: MakeDriver, root: Path) -> None:
    await make_driver()
    before = sorted(root.rglob("*"))
    read, sync, refusal = time_calls(root)
    assert read > 0
    assert sync is not None
    assert sync > 0
    assert refusal is None
    assert sorted(root.rglob("*")) == before


async def test_a_store_that_cannot_be_written_is_read(
    make_driver: MakeDriver, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_driver()
    real = os.open

    def read_only(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "read-only")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", read_only)
    read, sync, refusal = time_calls(root)
    assert read > 0
    assert sync is None
    assert isinstance(refusal, ReadOnlyStore)


def test_an_unmounted_path_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DriverError):
        time_calls(tmp_path)
    assert list(tmp_path.iterdir()) == []
