"""The pace of jobs, with a clock and counters that a test sets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sluice_s3.app.jobs.pacing import (
    IDLE_LOAD,
    ITEMS_PER_STEP,
    LEAST_SHARE,
    LEAST_SPREAD_SECONDS,
    LONGEST_PAUSE,
    LONGEST_WAIT,
    SAMPLE_SECONDS,
    SPREAD_SECONDS,
    STALE_SECONDS,
    Pacer,
    RequestLoad,
    spread_seconds,
)


class Clock:
    """Time passes only in `sleep`, and where a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Requests:
    """The counters of a server."""

    def __init__(self) -> None:
        self.running = 0.0
        self.seconds = 0.0

    def __call__(self) -> tuple[float, float]:
        return self.running, self.seconds


def pacer(clock: Clock, *, busy: bool, rate: float = 0.0) -> Pacer:
    return Pacer(lambda: busy, rate, now=clock, sleep=clock.sleep)


def test_a_server_is_busy_until_it_is_known_to_be_idle() -> None:
    clock, requests = Clock(), Requests()
    load = RequestLoad(requests, clock)
    assert load.busy()
    clock.now += SAMPLE_SECONDS / 2
    assert load.busy(), "too early to know"
    clock.now += 1.5 * SAMPLE_SECONDS
    assert not load.busy()


@pytest.mark.parametrize("running", [0.0, 2.0])
def test_requests_make_it_busy(running: float) -> None:
    clock, requests = Clock(), Requests()
    load = RequestLoad(requests, clock)
    load.busy()
    for _ in range(3):
        clock.now += 1.5 * SAMPLE_SECONDS
        requests.running = running
        requests.seconds += 0.0 if running else 2 * IDLE_LOAD * SAMPLE_SECONDS
        assert load.busy()
    requests.running = 0.0
    clock.now += 1.5 * SAMPLE_SECONDS
    assert not load.busy()


def test_health_checks_are_no_load() -> None:
    clock, requests = Clock(), Requests()
    load = RequestLoad(requests, clock)
    load.busy()
    for _ in range(20):
        clock.now += 1.5 * SAMPLE_SECONDS
        requests.seconds += 0.0005
        assert not load.busy()


def test_an_old_sample_says_nothing() -> None:
    clock, requests = Clock(), Requests()
    load = RequestLoad(requests, clock)
    load.busy()
    clock.now += 1.0
    assert not load.busy()
    clock.now += STALE_SECONDS + 1
    assert load.busy()


async def test_without_requests_nothing_waits() -> None:
    clock = Clock()
    for seconds in (0.001, 1.0, 100.0):
        await pacer(clock, busy=False).wait(seconds)
    assert clock.slept == []


async def test_beside_requests_a_job_gets_its_least_share() -> None:
    clock = Clock()
    worked = 0.0
    paced = pacer(clock, busy=True)
    started = clock.now
    for seconds in (0.001, 0.004, 0.02):
        clock.now += seconds
        worked += seconds
        await paced.wait(seconds)
    assert worked / (clock.now - started) == pytest.approx(LEAST_SHARE)


async def test_the_share_grows_with_the_lag() -> None:
    shares = []
    for lag in (0.0, 200.0, 300.0, 600.0, 6000.0):
        clock = Clock()
        await Pacer(lambda: True, most_lag=600, now=clock, sleep=clock.sleep).wait(0.01, lag=lag)
        shares.append(0.01 / (0.01 + sum(clock.slept)))
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(LEAST_SHARE)
    assert shares[-2:] == [1.0, 1.0]


async def test_a_step_that_hung_is_not_followed_by_an_hour() -> None:
    clock = Clock()
    await pacer(clock, busy=True).wait(600.0)
    assert clock.slept == [LONGEST_WAIT]


@pytest.mark.parametrize("busy", [False, True])
async def test_the_rate_holds(busy: bool) -> None:
    clock = Clock()
    paced = pacer(clock, busy=busy, rate=1000)
    for count in (500, 100, 2000):
        await paced.wait(0.0001, count)
    assert clock.now - 100.0 == pytest.approx(2.6)
    clock.now += 60
    await paced.wait(0.0001, 500)
    assert clock.slept[-1] == pytest.approx(0.5), "what was not used is not saved up"


class Steps:
    """What a job does with its items: each takes some time."""

    def __init__(self, clock: Clock, cost: float) -> None:
        self.clock = clock
        self.cost = cost
        self.taken: list[list[int]] = []

    async def __call__(self, items: Sequence[int]) -> None:
        self.taken.append(list(items))
        self.clock.now += self.cost * len(items)


@pytest.mark.parametrize("slot", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("least", [1, 8])
async def test_items_are_spread_evenly(slot: float, least: int) -> None:
    clock = Clock()
    steps = Steps(clock, slot / 10)
    await pacer(clock, busy=True).spread(range(500), steps, lambda: slot, least)
    assert [item for items in steps.taken for item in items] == list(range(500))
    assert clock.now - 100.0 == pytest.approx(500 * min(slot, LONGEST_PAUSE / least + slot / 10), rel=0.05)
    assert max(map(len, steps.taken)) <= max(ITEMS_PER_STEP, least)


async def test_steps_that_take_longer_than_their_slots_do_not_wait() -> None:
    clock = Clock()
    steps = Steps(clock, 0.02)
    await pacer(clock, busy=True).spread(range(100), steps, lambda: 0.01)
    assert clock.slept == []


@pytest.mark.parametrize(("busy", "slot"), [(False, 0.5), (True, 0.0)])
async def test_without_requests_or_time_items_do_not_wait(busy: bool, slot: float) -> None:
    clock = Clock()
    steps = Steps(clock, 0.001)
    await pacer(clock, busy=busy).spread(range(100), steps, lambda: slot)
    assert clock.slept == []
    assert len(steps.taken) == -(-100 // ITEMS_PER_STEP), "and its steps are short"


async def test_requests_that_end_are_seen_after_a_pause() -> None:
    clock = Clock()
    paced = Pacer(lambda: clock.now < 105.0, now=clock, sleep=clock.sleep)
    await paced.spread(range(1000), Steps(clock, 0.001), lambda: 60.0)
    assert clock.now < 105.0 + LONGEST_PAUSE + 1.5


@pytest.mark.parametrize(("due", "seconds"), [(1, 10), (20_000, 10), (60_000, 30), (1_000_000, 60)])
def test_much_garbage_is_spread_over_more_time(due: int, seconds: float) -> None:
    assert spread_seconds(due) == seconds


@pytest.mark.parametrize("arrivals", [5.0, 200.0, 250.0])
@pytest.mark.parametrize("latency", [0.0, 0.03])
async def test_the_backlog_of_a_constant_load_is_bounded(arrivals: float, latency: float) -> None:
    """Over an hour, also on an event loop that takes long to get to a step."""
    clock = Clock()
    paced = pacer(clock, busy=True)
    done, backlogs = 0, []

    def due() -> int:
        return int((clock.now - 100.0) * arrivals)

    def slot() -> float:
        lag = (due() - done) / arrivals
        waiting = max(due() - done, 1)
        return min(spread_seconds(waiting) / waiting, max(SPREAD_SECONDS - lag, 0.0))

    async def step(items: Sequence[int]) -> None:
        clock.now += latency + 0.002 * len(items)

    while clock.now < 3700:
        if (batch := due() - done) == 0:
            clock.now += 0.1
            continue
        backlogs.append(batch)
        await paced.spread(range(done, done + min(batch, 100)), step, slot)
        done += min(batch, 100)
    most = 1.3 if latency else 1.1  # steps of a slow loop take longer than their slots
    assert max(backlogs) <= most * LEAST_SPREAD_SECONDS * arrivals + 100
    assert max(backlogs[len(backlogs) // 2 :]) <= 1.2 * max(backlogs[: len(backlogs) // 2]), "it does not grow"
