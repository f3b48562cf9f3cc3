"""The slow mount, the measure of one file an object on it, and a store whose data lie there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jobs.fsck import fsck
from app.settings import Settings
from app.store import objects, reading
from app.store.reading import Slices
from benchmarks import files
from benchmarks.slow_mount import MountFailed, Times, slow_mount
from storage_drivers.base import FileSlice
from tests.environment import lack
from tests.store.site import opened, prepare, put, settings_for

TIMES = Times(*(0.5 for _ in range(9)))


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every operation takes half a millisecond."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine has no FUSE for us")
    pytest.importorskip("mfusepy", exc_type=OSError, reason="libfuse is not installed")
    backing, mountpoint = tmp_path_factory.mktemp("backing"), tmp_path_factory.mktemp("mount")
    try:
        with slow_mount(backing, mountpoint, TIMES) as mounted:
            yield mounted
    except MountFailed as error:
        lack(f"cannot mount: {error}")
    assert not os.path.ismount(mountpoint)


def test_it_passes_everything_through(mount: Path) -> None:
    made = mount / "made"
    made.mkdir(0o700)
    body = os.urandom(300_000)
    with open(made / "file", "xb") as file:
        file.write(body)
        os.fsync(file.fileno())
    with pytest.raises(FileExistsError):
        open(made / "file", "xb").close()
    assert (made / "file").read_bytes() == body
    assert (made / "file").stat().st_size == len(body)
    with open(made / "file", "rb") as file:
        assert os.pread(file.fileno(), 1000, 200_000) == body[200_000:201_000]
    os.truncate(made / "file", 5)
    (made / "file").rename(made / "other")
    assert os.listdir(made) == ["other"]
    assert (made / "other").read_bytes() == body[:5]
    with pytest.raises(OSError):
        os.getxattr(made / "other", "user.none")
    (made / "other").unlink()
    made.rmdir()
    assert not made.exists()
    assert os.statvfs(mount).f_blocks > 0


@pytest.mark.parametrize("directories", [0, 1])
def test_one_file_an_object(mount: Path, directories: int) -> None:
    directory = mount / f"measured-{directories}"
    directory.mkdir()
    found = files.run(files.Plan(directory, 4, 4096, 0.2, True, True, directories))
    sizes = [path.stat().st_size for path in directory.glob("*/*")]
    assert sizes == [4096] * found.objects
    assert found.objects >= 4
    assert found.latency_ms["p50"] <= found.latency_ms["p99"] <= found.latency_ms["max"]
    assert len(list(directory.iterdir())) == (directories or 4)


@pytest.fixture
def settings(mount: Path, tmp_path: Path) -> Settings:
    made = settings_for(mount / "store", index=f"sqlite:///{tmp_path}/index.db", durability="full")
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
                answer = await reading.body(store, version, 0, len(body), {})
                assert await whole(answer) == body
            await store.close_packs()
            assert (await fsck(store, repair=False)).clean


async def whole(answer: bytes | Slices) -> bytes:
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
