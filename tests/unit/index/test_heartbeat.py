"""Signs of life: who is silent, and from when on the requests of all gateways began."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.index.postgres.heartbeat import Heartbeat
from tests.support.environment import sized

LIMIT = 5.0


class World:
    """Some writers with a clock of their own each, and the rows that they share."""

    def __init__(self, count: int) -> None:
        self.time = 1000.0
        self.rows: dict[int, Beat] = {}
        self.away = False
        self.lost: list[int] = []
        self.running: dict[int, list[float]] = {number: [] for number in range(1, count + 1)}
        """When the requests began that run."""
        self.hearts = {number: self._heart(number) for number in self.running}

    def _heart(self, number: int) -> Heartbeat:
        skew = 10_000_000 * number

        def clock() -> int:
            return round(self.time * 1000) + skew

        async def beat(sign: int, settled: int) -> list[Beat]:
            if self.away:
                raise StoreUnavailable
            if number in self.rows:
                self.rows[number] = self.rows[number]._replace(number=sign, settled=settled)
            return list(self.rows.values())

        self.rows[number] = Beat(number, "live", 0, 0)
        heart = Heartbeat(number, beat, LIMIT, lambda: self.lost.append(number), clock, lambda: self.time)
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
    for _ in range(6):
        await world.round(1)
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
    world.away = True
    with pytest.raises(StoreUnavailable):
        await heart.once()
    world.away = False
    for _ in range(3):
        await world.round(2)
        assert heart._settled != 3
        assert 3 not in [sign for sign, _ in heart._started_beats]
    assert heart._settled == 4
