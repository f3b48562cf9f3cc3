"""Signs of life: who is silent, and from when on the requests of all gateways began."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.index.postgres.heartbeat import CUT_LIMITS, ORPHANED_LIMITS, Heartbeat
from tests.support.environment import sized

LIMIT = 5.0


class World:
    """Some writers with a clock of their own each, and the rows that they share."""

    def __init__(self, count: int) -> None:
        self.time = 1000.0
        self.rows: dict[int, Beat] = {}
        self.away: set[int] = set()
        """Those that do not reach the index."""
        self.lost: list[int] = []
        self.running: dict[int, list[float]] = {number: [] for number in range(1, count + 1)}
        """When the requests began that run."""
        self.hearts = {number: self._heart(number) for number in self.running}

    def _heart(self, number: int) -> Heartbeat:
        skew = 10_000_000 * number

        def clock() -> int:
            return round(self.time * 1000) + skew

        async def beat(sign: int, settled: int) -> list[Beat]:
            if number in self.away:
                raise StoreUnavailable
            if number in self.rows:
                self.rows[number] = self.rows[number]._replace(number=sign, settled=settled)
            return list(self.rows.values())

        self.rows[number] = Beat(number, "live", 0, 0)

        def cut(began: int) -> None:
            self.running[number] = [one for one in self.running[number] if round(one * 1000) + skew > began]

        heart = Heartbeat(number, beat, LIMIT, lambda: self.lost.append(number), cut, clock, lambda: self.time)
        heart.oldest = lambda: round(min(self.running[number], default=self.time) * 1000) + skew
        return heart

    def horizon(self, number: int) -> float:
        """What the heart of a writer says, in the time of all."""
        return (self.hearts[number].horizon() - 10_000_000 * number) / 1000

    async def round(self, *numbers: int) -> None:
        """A sign of each, a moment apart, and a second."""
        for number in numbers or self.hearts:
            await self.hearts[number].once()
            self.time += 0.01
        self.time += 1.0


async def test_requests_of_others_hold_the_horizon_back() -> None:
    world = World(3)
    world.running[2] = [world.time]
    for _ in range(10):
        await world.round()
    assert world.horizon(1) < world.running[2][0]
    world.running[2].clear()
    ended = world.time
    for _ in range(8):
        await world.round()
    assert ended < world.horizon(1) < world.time


async def test_a_writer_that_gives_no_sign_holds_it_back_until_it_is_dead() -> None:
    world = World(2)
    for _ in range(6):
        await world.round()
    stopped = world.horizon(1)
    for _ in range(6):
        await world.round(1)
    assert world.horizon(1) < stopped + 5
    assert world.hearts[1].is_silent(2)
    world.rows[2] = world.rows[2]._replace(state="dead")
    before = world.time
    while world.time < before + ORPHANED_LIMITS * LIMIT:
        assert world.hearts[1].is_orphaned(2)
        assert world.horizon(1) < stopped + 5, "its requests may still read"
        await world.round(1)
    for _ in range(6):
        await world.round(1)
    assert not world.hearts[1].is_orphaned(2)
    assert world.horizon(1) > before
    await world.hearts[2].once()
    assert world.lost == [2]


class SlowWorld(World):
    """Signs take a while to be committed, and some whose writer was told of no outcome are committed later."""

    def __init__(self, count: int, rng: random.Random) -> None:
        self.rng = rng
        self.locks = {number: asyncio.Lock() for number in range(1, count + 1)}
        self.late: set[asyncio.Task[None]] = set()
        super().__init__(count)

    async def change(self, number: int, sign: int, settled: int) -> None:
        async with self.locks[number]:
            for _ in range(self.rng.choice((0, 3, 12))):
                await asyncio.sleep(0)
            self.rows[number] = self.rows[number]._replace(number=sign, settled=settled)

    def _heart(self, number: int) -> Heartbeat:
        heart = super()._heart(number)

        async def beat(sign: int, settled: int) -> list[Beat]:
            changing = asyncio.create_task(self.change(number, sign, settled))
            if self.rng.random() < 0.1:
                self.late.add(changing)
                changing.add_done_callback(self.late.discard)
                raise StoreUnavailable
            await changing
            rows = list(self.rows.values())
            await asyncio.sleep(0)
            return rows

        heart._beat = beat
        return heart


async def test_no_request_older_than_the_horizon_ever_runs() -> None:
    """Slow signs, lost ones and requests in any order: what the horizon promises holds for every writer."""
    rng = random.Random(11)
    moved = 0
    for _ in range(sized(ci=60, soak=3000)):
        world = SlowWorld(3, rng)
        beating: dict[int, asyncio.Task[None]] = {}
        for _ in range(400):
            world.time += rng.random()
            number = rng.choice(list(world.hearts))
            act = rng.random()
            if act < 0.8:
                if number not in beating or beating[number].done():
                    beating[number] = asyncio.create_task(once(world.hearts[number]))
            elif act < 0.9:
                world.running[number].append(world.time)
            elif world.running[number]:
                world.running[number].pop(rng.randrange(len(world.running[number])))
            await asyncio.sleep(0)
            oldest = min((min(some) for some in world.running.values() if some), default=world.time)
            for one in world.hearts:
                assert world.horizon(one) <= oldest + 0.002
                moved += world.hearts[one].horizon() > 0
        await asyncio.gather(*beating.values(), *world.late)
    assert moved


async def test_no_request_of_a_dead_writer_outlives_the_hold() -> None:
    """A writer loses the index and reads on; late observers come and go, and the dead writer's row goes as well."""
    rng = random.Random(7)
    for _ in range(sized(ci=60, soak=3000)):
        world = World(4)
        seen = rng.choice((1, 2))
        for _ in range(rng.randrange(2, 8)):
            world.running[3].append(world.time)
            await world.round(1, 2, 3)
        world.away.add(3)
        del world.rows[4]
        late = world.time + rng.random() * 12 * LIMIT
        cut_at = 0.0
        while world.time < late + 10 * LIMIT:
            world.time += rng.random() * 1.5
            if 4 not in world.rows and world.time > late:
                world.hearts[4] = world._heart(4)
            for number in (1, 2, 4):
                if number in world.rows and rng.random() < 0.8:
                    await world.hearts[number].once()
            if 3 in world.rows and world.rows[3].state == "live" and world.hearts[seen].is_silent(3):
                world.rows[3] = world.rows[3]._replace(state="dead")
            if 3 in world.rows and world.rows[3].state == "dead" and not world.hearts[seen].is_orphaned(3):
                del world.rows[3]
            if world.time > cut_at:
                world.hearts[3].cut_orphans()
                cut_at = world.time + rng.random() * LIMIT
            oldest = min(world.running[3], default=world.time)
            assert all(world.horizon(one) <= oldest + 0.002 for one in (1, 2, 4))
        assert not world.running[3]
        assert 3 not in world.rows
        assert all(world.horizon(one) > late for one in (1, 2, 4))


async def test_a_writer_that_reaches_the_index_cuts_nothing() -> None:
    world = World(2)
    world.running[1] = [world.time]
    for _ in range(100):
        await world.round()
        assert not world.hearts[1].cut_orphans()
    assert world.running[1]
    world.away.add(1)
    world.running[1].append(world.time)
    lost_at = world.time
    while world.running[1]:
        world.time += 1
        world.running[1].append(world.time)
        if world.hearts[1].cut_orphans():
            world.running[1] = [one for one in world.running[1] if one <= world.time - LIMIT]
    assert CUT_LIMITS * LIMIT - 2 <= world.time - lost_at <= CUT_LIMITS * LIMIT + 2


async def once(heart: Heartbeat) -> None:
    with suppress(StoreUnavailable):
        await heart.once()


async def test_time_begins_anew_when_nobody_looked() -> None:
    world = World(2)
    await world.round()
    world.time += 100  # this process was stopped, or the index was away
    assert not world.hearts[1].is_silent(2)
    await world.round(1)
    assert not world.hearts[1].is_silent(2)
    for _ in range(5):
        await world.round(1)
    assert world.hearts[1].is_silent(2)
    assert not world.hearts[1].is_silent(1)
    assert not world.hearts[1].is_silent(77), "never seen"


async def test_a_sign_of_unknown_outcome_settles_nothing() -> None:
    """It may be committed after the next one began."""
    world = World(2)
    await world.round()
    heart = world.hearts[2]
    world.away.add(2)
    with pytest.raises(StoreUnavailable):
        await heart.once()
    world.away.clear()
    for _ in range(3):
        await world.round(2)
        assert heart._settled != 3
        assert 3 not in [sign for sign, _ in heart._started_beats]
    assert heart._settled == 4
