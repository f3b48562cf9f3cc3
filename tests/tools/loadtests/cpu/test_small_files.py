"""A source tree put and read."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from sluice_s3.loadtests.common import targets
from sluice_s3.loadtests.cpu import small_files
from sluice_s3.loadtests.mounts.workloads import linux_tree

TREE = linux_tree(0.002)
READS = small_files.Reads(50, 50)
KEYS = targets.Keys("GK0123456789", "secret-of-the-test")


@pytest.mark.parametrize("files", [500, 100_000])
def test_a_fifth_of_the_files_has_most_reads(files: int) -> None:
    tree = linux_tree(0.02)
    reads = small_files.chosen_reads(tree, small_files.Reads(5000, files))
    counts = sorted(Counter(name for name, _ in reads).values(), reverse=True)
    wanted = min(files, len(tree.files))
    assert 0.7 * wanted < len(counts) <= wanted
    assert 0.75 < sum(counts[: wanted // 5]) / 5000 < 0.9


@pytest.mark.parametrize("threads", [1, 4])
def test_straight_on_a_directory(tmp_path: Path, threads: int) -> None:
    found = small_files.straight(tmp_path, TREE, threads, READS, sync=True)
    assert (found.files, found.bytes) == (len(TREE.files), TREE.total)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.c")) == TREE.total
    assert min(found.wrote, found.cold, found.warm) > 0
    with pytest.raises(FileExistsError):
        small_files.straight(tmp_path, TREE, threads, READS._replace(total=0), sync=False)


def test_through_a_gateway(tmp_path: Path) -> None:
    target = targets.with_driver(targets.parse_target("sluice", "full", {}), "fuse")
    data = tmp_path / "data"
    data.mkdir()
    with targets.Running(target, KEYS, tmp_path, 0, data) as running:
        found = small_files.through(running, TREE, 8, READS)
        assert len(list(running.calls.keys(small_files.BUCKET))) == len(TREE.files)
        assert list(data.glob("*/data/data/*/*.pack")), "the data are where they were asked for"
    assert found.name == "sluice-full"
    assert min(found.wrote, found.cold, found.warm) > 0


def test_only_sluice_has_drivers() -> None:
    other = targets.Target("peer", command=f"{sys.executable} {{data}}")
    assert targets.with_driver(other, "efs") == other
    ours = targets.parse_target("sluice", "full", {})
    assert targets.with_driver(ours, "local") == ours
    assert targets.with_driver(ours, "efs").driver == "efs"


def test_only_sluice_has_workers() -> None:
    other = targets.Target("peer", command="peer --workers 1")
    assert targets.with_workers(other, 4) == other
    ours = targets.parse_target("sluice", "full", {})
    assert "--workers 4" in targets.with_workers(ours, 4).command
