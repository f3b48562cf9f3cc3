"""A store knows which one it is, and what is not a store is never taken for an empty one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.identity import NAME, make_identity, read_identity
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, fail_nth


async def test_a_store_keeps_its_identity(make_driver: MakeDriver, root: Path) -> None:
    first = (await make_driver()).identity
    assert first is not None
    assert first == read_identity(root) == (await make_driver(create=False)).identity
    assert first.generation == 1


async def test_an_unmounted_path_is_no_store(make_driver: MakeDriver, root: Path) -> None:
    root.mkdir()
    with pytest.raises(StoreFailed):
        await make_driver(create=False)
    assert list(root.iterdir()) == []


async def test_blobs_without_identity_are_refused(make_driver: MakeDriver, driver: ObjectsDriver, root: Path) -> None:
    await driver.put(1, Pieces(b"x"))
    (root / NAME).unlink()
    with pytest.raises(StoreFailed):
        await make_driver()


async def test_a_missing_directory_is_refused(make_driver: MakeDriver, driver: ObjectsDriver, root: Path) -> None:
    (root / "data/7f").rmdir()
    with pytest.raises(StoreFailed, match="data/7f"):
        await make_driver()


@pytest.mark.parametrize("step", ["data", "root", "parent", "identity", "its name"])
async def test_a_making_that_was_interrupted_is_done_again(make_driver: MakeDriver, root: Path, step: str) -> None:
    above = sum(path.stat().st_dev == root.parent.stat().st_dev for path in root.resolve().parents)
    nth = {"data": 1, "root": 2, "parent": 3, "identity": 3 + above, "its name": 4 + above}[step]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sluice_s3.storage_drivers.fsutil.os.fsync", fail_nth(os.fsync, OSError(errno.EIO, "injected"), nth)
        )
        with pytest.raises(StoreFailed):
            await make_driver()
    if nth > 2 + above:  # the identity was written whole before its sync failed: this life goes on with it
        assert read_identity(root) is not None
    assert (await make_driver()).identity == read_identity(root)


@pytest.mark.parametrize("torn", [b"", b'{"store": "8c', b"\0" * 20])
async def test_an_unfinished_identity_is_made_again(make_driver: MakeDriver, root: Path, torn: bytes) -> None:
    root.mkdir()
    (root / NAME).write_bytes(torn)
    assert (await make_driver()).identity == read_identity(root)


@pytest.mark.parametrize(
    "foreign",
    [
        b"{}\n",
        b"[]\n",
        b"garbage\n",
        b'{"store": "no uuid", "generation": 1, "layout": "objects"}\n',
        b'{"store": "8c6f2ba4-5b5c-4a86-9e5b-1a2a3a4a5a6a", "generation": 1, "layout": "tree"}\n',
    ],
)
async def test_a_foreign_identity_is_refused(make_driver: MakeDriver, root: Path, foreign: bytes) -> None:
    root.mkdir()
    (root / NAME).write_bytes(foreign)
    with pytest.raises(StoreFailed):
        await make_driver()
    assert (root / NAME).read_bytes() == foreign


async def test_an_identity_is_never_replaced(driver: ObjectsDriver, root: Path) -> None:
    with pytest.raises(StoreFailed):
        make_identity(root)


async def test_everything_is_private(driver: ObjectsDriver, root: Path) -> None:
    await driver.put(1, Pieces(b"x"))
    for path in [root, *root.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
