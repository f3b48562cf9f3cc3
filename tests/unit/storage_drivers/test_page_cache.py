"""The page cache holds what was written or read, and no hole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.page_cache import PAGE_BYTES, is_cached

PAGES = 8


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.truncate(fd, PAGES * PAGE_BYTES)
    os.pwrite(fd, b"x" * (3 * PAGE_BYTES), 2 * PAGE_BYTES)
    if not is_cached(fd, 2 * PAGE_BYTES, 1):
        pytest.skip("cachestat(2) needs Linux 6.5")
    yield fd
    os.close(fd)


@pytest.mark.parametrize(
    ("offset", "length", "cached"),
    [
        (2 * PAGE_BYTES, 3 * PAGE_BYTES, True),
        (2 * PAGE_BYTES + 1, 3 * PAGE_BYTES - 2, True),
        (5 * PAGE_BYTES - 1, 1, True),
        (5 * PAGE_BYTES - 1, 2, False),
        (2 * PAGE_BYTES - 1, 2, False),
        (0, PAGES * PAGE_BYTES, False),
        (7 * PAGE_BYTES, 1, False),
        (0, 0, True),
    ],
)
def test_a_range_is_cached_when_each_of_its_pages_is(file: int, offset: int, length: int, cached: bool) -> None:
    assert is_cached(file, offset, length) is cached


def test_a_closed_descriptor_has_nothing_cached() -> None:
    fd = os.open("/", os.O_RDONLY)
    os.close(fd)
    assert not is_cached(fd, 0, 1)
