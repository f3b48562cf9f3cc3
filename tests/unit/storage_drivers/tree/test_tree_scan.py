"""Scans of a bucket."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.tree import SkippedCounts, TreeFiles, scanner
from tests.support.environment import sized
from tests.unit.storage_drivers.tree.tools import BUCKET, put, scanned

FILES = sized(2000, 100_000)


def fill(bucket: Path, count: int) -> dict[str, int]:
    """Files of others, 50 to a directory; their sizes by key."""
    sizes = {f"d{number // 500}/e{number // 50}/f{number}": number % 7 for number in range(count)}
    for key, size in sizes.items():
        path = bucket / key
        if key.endswith("0"):
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return sizes


@pytest.mark.timeout(1800)  # a hundred thousand files are made and removed at soak size
@pytest.mark.parametrize("width", [1, 4])
async def test_every_file_is_found_once(files: TreeFiles, width: int) -> None:
    sizes = fill(files.root / BUCKET, FILES)
    seen = SkippedCounts()
    batches = [batch async for batch in files.scan(BUCKET, seen, width)]
    found = [one for batch in batches for one in batch]
    assert {one.key: one.stamp.size for one in found} == sizes
    assert len(found) == len(sizes) == seen.files
    assert seen.directories == 1 + FILES // 500 + FILES // 50
    assert max(map(len, batches)) <= scanner.FILES_PER_BATCH
    assert all([await files.find(one.path) == one.stamp for one in found[:: FILES // 20]])


async def test_what_can_be_no_key_is_counted(files: TreeFiles) -> None:
    bucket = files.root / BUCKET
    await put(files, "a")
    for name in (b"\xff", b".sluice-other", b".nfs000000000000a1b200000001", b".fuse_hidden0000000300000001"):
        (bucket / os.fsdecode(name)).write_bytes(b"")
    (bucket / ".sluice-keys").mkdir()
    (bucket / ".sluice-keys/%zz").write_bytes(b"")
    deep = bucket / "/".join(["n" * 200] * 6)
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    seen = SkippedCounts()
    assert [one.key async for batch in files.scan(BUCKET, seen) for one in batch] == ["a"]
    assert (seen.files, seen.not_keys, seen.not_files) == (1, 6, 0)


async def test_what_vanishes_is_left_out(files: TreeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "FILES_PER_BATCH", 1)
    sizes = fill(files.root / BUCKET, 1000)
    keys = set()
    async for batch in files.scan(BUCKET, width=1):
        if not keys:
            here = Path(batch[0].key).parts[0]
            for other in (files.root / BUCKET).iterdir():
                if other.name != here:
                    shutil.rmtree(other)
        keys |= {one.key for one in batch}
    assert keys == {key for key in sizes if key.startswith(here)}


async def test_a_scan_that_is_left_closes_what_it_opened(files: TreeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "FILES_PER_BATCH", 1)
    fill(files.root / BUCKET, 100)
    before = len(os.listdir("/proc/self/fd"))
    scan = files.scan(BUCKET, width=3)
    assert len(await anext(scan)) == 1
    await scan.aclose()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_key_at_two_paths_is_found_twice(files: TreeFiles) -> None:
    (files.root / BUCKET / "a").mkdir()
    await put(files, "a")
    (files.root / BUCKET / "a").rmdir()
    (files.root / BUCKET / "a").write_bytes(b"other")
    found = await scanned(files)
    assert [one.key for one in found] == ["a", "a"]
    assert {one.path for one in found} == {f"{BUCKET}/a", files.escaped_path(BUCKET, "a")}


async def test_a_bucket_without_its_directory(files: TreeFiles) -> None:
    with pytest.raises(StoreFailed, match="bucket nowhere"):
        await scanned(files, "nowhere")
