"""Syncs of one directory that threads share."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.fsutil import CoalescedFsync, read_exactly, write_durably


class SlowSync:
    """A stand-in for fsync(2) that waits for a permit a call, and may be told to fail."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.permits = threading.Semaphore(0)
        self.calls = 0
        self.failures: list[OSError] = []

    def __call__(self, fd: int) -> None:
        self.calls += 1
        self.begun.release()
        assert self.permits.acquire(timeout=30)
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowSync:
    sync = SlowSync()
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", sync)
    return sync


@pytest.fixture
def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(10)


def queue_up(
    shared: CoalescedFsync, threads: ThreadPoolExecutor, slow: SlowSync
) -> tuple[Future[None], list[Future[None]]]:
    """One sync under way, and five that came after it began."""
    first = threads.submit(shared.sync)
    assert slow.begun.acquire(timeout=30)
    late = [threads.submit(shared.sync) for _ in range(5)]
    while shared._next.led is False:  # one of them leads the next round
        threading.Event().wait(0.001)
    return first, late


def test_latecomers_wait_for_the_next_sync_and_share_it(
    tmp_path: Path, threads: ThreadPoolExecutor, slow: SlowSync
) -> None:
    first, late = queue_up(CoalescedFsync(str(tmp_path)), threads, slow)
    slow.permits.release()
    first.result(30)
    assert slow.begun.acquire(timeout=30)
    assert not any(sync.done() for sync in late)
    slow.permits.release(5)
    for sync in late:
        sync.result(30)
    threads.shutdown()
    assert 2 <= slow.calls <= 6


def test_a_failed_sync_fails_those_it_was_for(tmp_path: Path, threads: ThreadPoolExecutor, slow: SlowSync) -> None:
    shared = CoalescedFsync(str(tmp_path))
    slow.failures = [OSError(errno.EIO, "injected")]
    first, late = queue_up(shared, threads, slow)
    slow.permits.release(7)
    with pytest.raises(OSError, match="injected"):
        first.result(30)
    for sync in late:
        sync.result(30)
    threads.shutdown()


def test_everyone_of_a_failed_round_fails(tmp_path: Path, threads: ThreadPoolExecutor, slow: SlowSync) -> None:
    shared = CoalescedFsync(str(tmp_path))
    shared._busy.acquire()  # hold the round open until all six are in it
    syncs = [threads.submit(shared.sync) for _ in range(6)]
    while threads._work_queue.qsize() or not shared._next.led:
        threading.Event().wait(0.001)
    slow.failures = [OSError(errno.ENOSPC, "injected")] * 6
    slow.permits.release(6)
    shared._busy.release()
    for sync in syncs:
        with pytest.raises(OSError, match="injected") as caught:
            sync.result(30)
        assert caught.value.errno == errno.ENOSPC
    threads.shutdown()


def test_write_durably_never_replaces(tmp_path: Path) -> None:
    write_durably(tmp_path / "f", b"one")
    with pytest.raises(FileExistsError):
        write_durably(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"one"


def test_read_exactly_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    assert read_exactly(fd, 1, 4) == b"2345"
    with pytest.raises(BlobDamaged):
        read_exactly(fd, 1, 5)
    os.close(fd)
