"""The published experiments: each figure, and how it is measured on a mount."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import fmean

from sluice_s3.loadtests.mounts import workloads
from sluice_s3.loadtests.mounts.mount import Mount

KB, MB, GB = 1000, 1000**2, 1000**3
SECONDS = 2.0
_number = count()


@dataclass(frozen=True)
class Experiment:
    """One published figure and its measurement.

    `figure` is in `unit`: seconds and milliseconds are times, MB/s a rate. If only bounds were published, they are
    `least` and `most`. `measure` receives a fresh mount.
    """

    what: str
    unit: str
    measure: Callable[[Mount], float]
    figure: float = 0.0
    least: float = 0.0
    most: float = 0.0
    scaled: str = ""


def experiments(profile: str) -> list[Experiment]:
    """Return the experiments of a profile. Raises KeyError if it has none."""
    return list(EXPERIMENTS[profile]())


def _fresh(mount: Mount) -> Path:
    return mount.path / f"file{next(_number)}"


# 000: files of several sizes, written and read ten times


def _writes(size: int, times: int, scale: float, pause: float) -> Callable[[Mount], float]:
    def measure(mount: Mount) -> float:
        took = []
        for _ in range(times):
            file = _fresh(mount)
            took.append(workloads.write(file, size))
            file.unlink()
            time.sleep(pause)
        return fmean(took) * scale * 1000

    return measure


def _reads(size: int, cold: int, scale: float) -> Callable[[Mount], float]:
    def measure(mount: Mount) -> float:
        file = mount.backing / "read"
        with open(file, "wb") as made:
            made.truncate(size)
        workloads.read(mount.path / "read")
        took = []
        for number in range(10):
            if number < cold:
                workloads.forget(mount.path / "read")
            took.append(workloads.read(mount.path / "read"))
        file.unlink()
        return fmean(took) * scale * 1000

    return measure


def _000(writes: dict[int, float], reads: dict[int, float], cold: set[int], pause: float) -> Iterator[Experiment]:
    for size, figure in writes.items():
        scale = 5.0 if size == 10 * GB else 1.0
        times = 20 if size <= 10 * MB else max(1, 300 * MB // size)
        measure = _writes(int(size / scale), times, scale, pause)
        scaled = "2 GB, times 5" if scale > 1 else f"mean of {times}"
        yield Experiment(f"write {size / MB:g} MB", "ms", measure, figure, scaled=scaled)
    for size, figure in reads.items():
        scale = 10.0 if size == 10 * GB else 1.0
        measure = _reads(int(size / scale), 1 if size in cold else 0, scale)
        scaled = "1 of 10 cold" if size in cold else "1 GB, times 10; all warm" if scale > 1 else "all warm"
        yield Experiment(f"read {size / MB:g} MB", "ms", measure, figure, scaled=scaled)


def _ebs_000() -> Iterator[Experiment]:
    writes = {100 * KB: 0.57, MB: 2.08, 10 * MB: 18.15, 100 * MB: 585.14, GB: 7420.0, 10 * GB: 70660.0}
    reads = {100 * KB: 0.05, MB: 0.18, 10 * MB: 1.27, 100 * MB: 16.5, GB: 167.89, 10 * GB: 1570.0}
    return _000(writes, reads, set(), 0.2)


def _efs_000() -> Iterator[Experiment]:
    writes = {100 * KB: 34.47, MB: 57.43, 10 * MB: 180.58, 100 * MB: 390.87, GB: 3050.0, 10 * GB: 26540.0}
    reads = {100 * KB: 0.66, MB: 0.82, 10 * MB: 7.83, 100 * MB: 73.53, GB: 773.41, 10 * GB: 1560.0}
    return _000(writes, reads, {10 * MB, 100 * MB, GB}, 0.0)


# 001: a source tree unpacked, and read by 16


def _unpack(share: float) -> Callable[[Mount], float]:
    return lambda mount: workloads.unpack(workloads.linux_tree(share), mount.path) / share


def _read_tree(share: float, *, warm: bool = False) -> Callable[[Mount], float]:
    def measure(mount: Mount) -> float:
        tree = workloads.linux_tree(share)
        workloads.make_tree(tree, mount.backing)
        reads = int(10_000 * share)
        if warm:
            workloads.read_tree(tree, mount.path, reads)
        return workloads.read_tree(tree, mount.path, reads) / MB

    return measure


def _001(unpacked: float, share: float, read: dict[str, float]) -> Iterator[Experiment]:
    yield Experiment("unpack 54,000 files", "s", _unpack(share), unpacked, scaled=f"1/{1 / share:.0f} of the tree")
    for what, figure in read.items():
        measure = _read_tree(0.2, warm="warm" in what)
        yield Experiment(f"16 read 10,000 files{what}", "MB/s", measure, figure, scaled="1/5 of tree and reads")


# 003: ten files


def _003(figures: dict[int, float]) -> Iterator[Experiment]:
    for size, figure in figures.items():
        times = 3 if size == 100 * MB else 20
        measure = _writes(size, times, 10.0, 0.0)
        yield Experiment(f"write 10 files of {size / MB:g} MB", "ms", measure, figure, scaled=f"{times} of them")


# 004: threads


def _threads(threads: int, size: int, seconds: float = SECONDS) -> Callable[[Mount], float]:
    def measure(mount: Mount) -> float:
        def once(thread: int, index: int) -> int:
            file = mount.path / f"t{thread}"
            workloads.write(file.with_name(f"{file.name}-{index}"), size)
            return size

        found = workloads.together(threads, seconds, once)
        return found / MB

    return measure


def _large(threads: int) -> Callable[[Mount], float]:
    def measure(mount: Mount) -> float:
        # as long for each number of threads
        size = 256 * MB // threads
        started = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda thread: workloads.write(mount.path / f"t{thread}", size), range(threads)))
        return size * threads / MB / (time.perf_counter() - started)

    return measure


def _004() -> Iterator[Experiment]:
    for threads, figure in {1: 102.0, 2: 103.0, 3: 106.0, 4: 104.0}.items():
        yield Experiment(f"{threads} write 1 GB", "MB/s", _large(threads), figure, scaled="256 MB together")
    yield Experiment("1 writes 9 KB", "MB/s", _threads(1, 9 * KB), most=1.0)
    for size in (2, 5, 9):
        yield Experiment(f"1 writes {size} MB", "MB/s", _threads(1, size * MB), least=20.0, most=50.0)
    yield Experiment("1 writes 90 MB", "MB/s", _threads(1, 90 * MB), least=95.0, most=110.0)
    combined = {1: 23.0, 2: 43.0, 3: 61.0, 4: 77.0, 5: 86.0, 6: 93.0, 7: 105.0, 8: 104.0, 9: 105.0, 10: 103.0}
    for threads, figure in combined.items():
        yield Experiment(f"{threads} write 1 MB", "MB/s", _threads(threads, MB), figure)
    for threads, figure in {4: 55.0, 8: 80.0, 16: 84.0, 32: 84.0, 64: 79.0, 128: 81.0}.items():
        yield Experiment(f"{threads} write 500 KB", "MB/s", _threads(threads, 500 * KB), figure)


EXPERIMENTS: dict[str, Callable[[], Iterator[Experiment]]] = {
    "ebs-000": _ebs_000,
    "efs-000": _efs_000,
    "efs-001-bursting": lambda: _001(1444.0, 0.01, {"": 9.43}),
    "efs-001-provisioned": lambda: _001(1357.0, 0.01, {"": 10.14}),
    "objectivefs-001": lambda: _001(11.0, 0.05, {", cold": 49.3, ", warm disk cache": 229.31, ", warm": 1010.25}),
    "efs-003-elastic": lambda: _003({KB: 95.2, MB: 366.2, 100 * MB: 12161.0}),
    "efs-003-bursting": lambda: _003({KB: 100.6, MB: 369.8, 100 * MB: 17081.0}),
    "efs-004": _004,
}
