"""The page cache is emptied, and the device's reads say whether it was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare import cold
from sluice_s3.loadtests.compare.cold import Coldness, Evictor, evict
from sluice_s3.loadtests.compare.resources import ResourceSample
from sluice_s3.loadtests.compare.targets import RunningTarget
from sluice_s3.loadtests.request_log import Recorder, TrialId, merge
from sluice_s3.storage_drivers import mountinfo
from tests.support.waiting import eventually


def is_cached(file: Path) -> bool:
    """Whether the first page can be read without waiting. Skips where the file system does not say."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.preadv(descriptor, [bytearray(4096)], 0, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip("this file system does not say what is cached")
        raise
    finally:
        os.close(descriptor)
    return True


def synced(file: Path, size: int = 100_000) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        out.write(os.urandom(size))
        out.flush()
        os.fsync(out.fileno())
    return file


def test_files_are_forgotten(tmp_path: Path) -> None:
    file = synced(tmp_path / "deep" / "one")
    other = synced(tmp_path / "other")
    os.mkfifo(tmp_path / "deep" / "pipe")
    if mountinfo.mount_of(tmp_path).kind in mountinfo.IN_MEMORY:
        pytest.skip("memory is no cache")

    # The kernel keeps a page that something else holds for a moment, and other tests empty the whole cache.
    def is_only_this_forgotten() -> bool:
        for one in (file, other):
            one.read_bytes()
        was_cached = is_cached(file)
        evict([tmp_path / "deep", tmp_path / "none"])
        return was_cached and not is_cached(file) and is_cached(other)

    eventually(is_only_this_forgotten, "the file is forgotten, the other not", 30)


def rows(directory: Path, *bodies: int) -> Path:
    recorder = Recorder(directory / "parts", TrialId("r", "a", "mixed"))
    for moved in bodies:
        recorder.add("GET", moved, 0.0, 0.01, moved=moved)
        recorder.add("PUT", 5 * moved, 0.0, 0.01, moved=5 * moved)
    recorder.close()
    merge(directory / "parts", directory / "rows.csv.gz")
    return directory / "rows.csv.gz"


def test_what_the_device_read_is_set_against_what_was_received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = [1000]
    monkeypatch.setattr(cold, "can_drop", lambda: False)
    monkeypatch.setattr(cold, "device_of", lambda _: 7)
    monkeypatch.setattr(cold, "sectors_of", lambda _: (read[0], 0))
    evictor = Evictor([tmp_path, tmp_path])
    eventually(lambda: evictor._times > 1, "it was emptied", 10)
    read[0] += 4500
    found = evictor.end(rows(tmp_path, 2000, 3000))
    assert (found.by, found.device, found.received, found.share) == ("posix_fadvise", 4500, 5000, 0.9)
    assert not evictor._thread.is_alive()
    read[0] += 10**9
    assert Coldness("x", 1, 10**9, 5000).share == 1.0, "others read too"


def test_what_others_read_of_the_device_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = [1000]
    monkeypatch.setattr(cold, "device_of", lambda _: 7)
    monkeypatch.setattr(cold, "sectors_of", lambda _: (10**12, 0))
    monkeypatch.setattr(cold, "sample_processes", lambda _: ResourceSample(None, None, read[0], 0))
    evictor = cold.evictor_of(RunningTarget(path=tmp_path, gateway_pid=5, mount_pid=6))
    read[0] += 100
    assert evictor.end(rows(tmp_path, 1000)).device == 200, "of the gateway, and of what serves its mount"


def test_without_a_device_and_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "device_of", lambda _: 0)
    found = Evictor([tmp_path]).end(None)
    assert (found.device, found.received, found.share) == (None, 0, None)


def cell(target: str, device: int | None, received: int) -> dict[str, object]:
    return {"target": target, "notes": {"cold": Coldness("drop_caches", 9, device, received).as_json()}}


def test_what_is_said_of_it() -> None:
    cells = [
        cell("a", 90, 100), cell("a", 100, 100), cell("b", 10, 100), cell("nfs", None, 100), cell("w", 5, 0),
        {"target": "old", "notes": {}},
    ]  # fmt: skip
    assert cold.describe(cells) == [
        "a: reads were cold: the device gave 95% of what was read, emptied by drop_caches",
        "b: reads were not cold: the device gave 10% of what was read, emptied by drop_caches",
        "nfs: the cache was emptied by drop_caches; no block device is below it to verify that",
    ]
