"""What a profile makes calls wait for, by a clock of our own that only moves when somebody sleeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_s3.loadtests.mounts import PROFILES, Profile, bandwidth, latency_model
from sluice_s3.loadtests.mounts.bandwidth import Credits, Pipe
from sluice_s3.loadtests.mounts.latency_model import OWN_SECONDS, Costs, Stream
from sluice_s3.loadtests.mounts.profiles import KINDS, MB, profile_named

KB = 1000


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(bandwidth, "time", made)
    monkeypatch.setattr(latency_model, "time", made)
    return made


def write_file(site: Costs, clock: Clock, size: int) -> float:
    """Milliseconds that it takes to make, write and close it."""
    started, stream = clock.now, Stream()
    site.call("create", clock.now)
    for offset in range(0, size, 1 << 20):
        site.wrote(stream, min(1 << 20, size - offset), clock.now)
    site.closed(stream, clock.now)
    return (clock.now - started) * 1000


@pytest.mark.parametrize(
    ("profile", "size", "published"),
    [
        *(("ebs-000", 10_000 * KB, 18.15), ("ebs-000", 100_000 * KB, 585.14), ("ebs-000", 1_000_000 * KB, 7420.0)),
        *(("efs-000", 100 * KB, 34.47), ("efs-000", 1000 * KB, 57.43), ("efs-000", 10_000 * KB, 180.58)),
        *(("efs-000", 100_000 * KB, 390.87), ("efs-000", 1_000_000 * KB, 3050.0)),
        *(("efs-003-elastic", KB, 9.52), ("efs-003-elastic", 1000 * KB, 36.62), ("efs-003-elastic", 10**8, 1216.1)),
        *(("efs-003-bursting", KB, 10.06), ("efs-003-bursting", 1000 * KB, 36.98), ("efs-003-bursting", 10**8, 1708.1)),
        *(("efs-004", 1000 * KB, 1000 / 23), ("efs-004", 10**9, 10**6 / 102)),
    ],
)
def test_files_take_what_was_published(clock: Clock, profile: str, size: int, published: float) -> None:
    found = write_file(Costs(replace(PROFILES[profile], spread=0.0)), clock, size)
    assert found == pytest.approx(published, rel=0.15)


def test_a_call_takes_its_time_from_when_it_came(clock: Clock) -> None:
    site = Costs(Profile(calls={"open": 5.0}))
    started = clock.now
    clock.now += 0.002
    site.call("open", started)
    assert clock.now == pytest.approx(started + 0.005 - OWN_SECONDS)
    site.call("lookup", clock.now)
    assert clock.now == pytest.approx(started + 0.005 - OWN_SECONDS)


def test_on_nfs_writing_is_free_and_syncing_pays_once(clock: Clock) -> None:
    site, stream, started = Costs(PROFILES["efs-004"]), Stream(), clock.now
    site.wrote(stream, 100 * KB, clock.now)
    assert clock.now == started
    site.synced(stream, clock.now)
    paid = clock.now - started
    assert paid > 0.004
    site.synced(stream, clock.now)
    assert clock.now - started == paid
    site.wrote(stream, 100 * KB, clock.now)
    site.synced(stream, clock.now)
    assert clock.now - started == pytest.approx(2 * paid)


def test_the_mounts_own_time_counts_as_sending(clock: Clock) -> None:
    site, stream, started = Costs(PROFILES["efs-004"]), Stream(), clock.now
    clock.now += 0.003
    site.wrote(stream, 100 * KB, started)
    site.synced(stream, clock.now)
    other = Costs(PROFILES["efs-004"])
    with_copying, stream, started = clock.now - started, Stream(), clock.now
    other.wrote(stream, 100 * KB, started)
    other.synced(stream, clock.now)
    assert clock.now - started == pytest.approx(with_copying)


def test_what_is_written_during_a_sync_is_the_next_ones(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    site, stream = Costs(PROFILES["efs-004"]), Stream()
    site.wrote(stream, 100 * KB, clock.now)
    sleep, late = clock.sleep, [50 * KB]

    def sleep_and_write(seconds: float) -> None:
        sleep(seconds)
        if late:
            stream.written += late.pop()

    monkeypatch.setattr(clock, "sleep", sleep_and_write)
    site.synced(stream, clock.now)
    assert stream.written == 50 * KB


def test_who_writes_far_ahead_waits_while_writing(clock: Clock) -> None:
    profile = PROFILES["efs-004"]
    site, stream, started = Costs(profile), Stream(), clock.now
    site.wrote(stream, int(profile.ahead), clock.now)
    assert clock.now == started
    site.wrote(stream, 10 * 1000 * KB, clock.now)
    assert clock.now - started > 0.1


def test_a_local_disk_is_fast_until_its_memory_is_full(clock: Clock) -> None:
    site, stream = Costs(PROFILES["ebs-000"]), Stream()
    started = clock.now
    for _ in range(10):
        site.wrote(stream, 1000 * KB, clock.now)
    assert clock.now - started == pytest.approx(10 / 560, rel=0.01)
    site.synced(stream, clock.now)
    assert clock.now - started == pytest.approx(10 / 139 + 0.001, rel=0.05)


def test_reading_on_has_no_latency(clock: Clock) -> None:
    site, stream = Costs(Profile(calls={"read": 10.0}, read_rate=100 * MB)), Stream()
    started = clock.now
    for offset in range(0, 10_000 * KB, 100 * KB):
        site.was_read(stream, offset, 100 * KB, clock.now)
    assert clock.now - started == pytest.approx(0.110, rel=0.01)
    site.was_read(stream, 5_000 * KB, 100 * KB, clock.now)
    assert clock.now - started == pytest.approx(0.121, rel=0.01)


def test_a_pipe_is_shared(clock: Clock) -> None:
    pipe, started = Pipe(100 * MB), clock.now
    first, second = pipe.reserve(1000 * KB, started), pipe.reserve(1000 * KB, started)
    assert (first - started, second - started) == (pytest.approx(0.01), pytest.approx(0.02))
    assert pipe.free_at() == second
    assert pipe.reserve(1000 * KB, started + 1) == pytest.approx(started + 1.01)
    assert Pipe(0).move(10**9, started) == started


def test_credits(clock: Clock) -> None:
    pipe = Pipe(100 * MB, Credits(most=10 * MB, refill=1 * MB, baseline=1 * MB))
    started = clock.now
    done = pipe.move(10_000 * KB, started)
    assert done - started == pytest.approx(0.1, rel=0.1)
    clock.now = done
    assert pipe.move(100 * KB, done) - done > 0.05
    clock.now += 100
    assert pipe.reserve(1000 * KB, clock.now) - clock.now == pytest.approx(0.01)


def test_times_differ_by_the_spread_around_their_mean(clock: Clock) -> None:
    site, took = Costs(Profile(calls={"open": 10.0}, spread=0.2)), []
    for _ in range(500):
        started = clock.now
        site.call("open", started)
        took.append(clock.now - started)
    assert sum(took) / 500 == pytest.approx(0.01, rel=0.05)
    assert max(took) > 0.013


def test_profiles() -> None:
    assert {kind for profile in PROFILES.values() for kind in profile.calls} <= set(KINDS)
    for name, profile in PROFILES.items():
        points = profile.sending
        assert list(points) == sorted(points), name
        assert [took for _, took in points] == sorted(took for _, took in points), name
    with pytest.raises(ValueError, match="efs-004"):
        profile_named("efs")
    with pytest.raises(ValueError, match="create"):
        profile_named("none").changed({"made": 1})
    assert profile_named("none").changed({"create": 1}).calls == {"create": 1}
