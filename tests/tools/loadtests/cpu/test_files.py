"""The measure of one file an object on a slow mount, and a store whose data lie there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.reading import BodyStream
from sluice_s3.loadtests.cpu import raw_files
from sluice_s3.loadtests.mounts import mounted
from sluice_s3.storage_drivers.base import FileSlice
from tests.support.environment import need_fuse
from tests.support.settings import make_settings
from tests.unit.store.site import opened, prepare, put

MS = dict.fromkeys(("create", "sync", "remove", "lookup", "open", "read", "write", "close"), 0.5)


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every call takes half a millisecond."""
    need_fuse()
    backing, where = tmp_path_factory.mktemp("backing"), tmp_path_factory.mktemp("mount")
    with mounted(backing, where, ms=MS):
        yield where
    assert not os.path.ismount(where)


@pytest.mark.parametrize("directories", [0, 1])
def test_one_file_an_object(mount: Path, directories: int) -> None:
    directory = mount / f"measured-{directories}"
    directory.mkdir()
    found = raw_files.run(raw_files.Plan(directory, 4, 4096, 0.2, True, True, directories))
    sizes = [path.stat().st_size for path in directory.glob("*/*")]
    assert sizes == [4096] * found.objects
    assert found.objects >= 4
    assert found.latency_ms["p50"] <= found.latency_ms["p99"] <= found.latency_ms["max"]
    assert len(list(directory.iterdir())) == (directories or 4)


@pytest.fixture
def settings(mount: Path, tmp_path: Path) -> Settings:
    made = make_settings(mount / "store", index=f"sqlite:///{tmp_path}/index.db", durability="full")
    prepare(made)
    return made


async def test_a_store_with_its_index_elsewhere(settings: Settings) -> None:
    bodies = {"small": os.urandom(5000), "large": os.urandom(300_000)}
    for again in range(2):
        async with opened(settings) as store:
            store.open_packs()
            if not again:
                bucket = await store.index.create_bucket("mounted", "owner", "us-east-1", 10)
                for key, body in bodies.items():
                    await put(store, bucket, key, body)
            for key, body in bodies.items():
                version = await objects.find(store, bucket.id, key)
                answer = await reading.read_body(store, version, 0, len(body), {})
                assert await whole(answer) == body
            await store.close_packs()
            assert (await fsck(store, repair=False)).clean


async def whole(answer: bytes | BodyStream) -> bytes:
    """All bytes of an answer."""
    if isinstance(answer, bytes):
        return answer
    found = b""
    async for piece in answer:
        if isinstance(piece, FileSlice):
            found += os.pread(piece.fd, piece.count, piece.offset)
            piece.release()
        else:
            found += piece
    return found
