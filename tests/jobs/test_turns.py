"""Turns by leases: one at a time, taken over, left when the store is out of reach; an old one commits nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.errors import LeaseLost
from app.index import leased
from app.jobs import runner
from app.jobs.garbage import Garbage
from app.jobs.runner import Jobs, StoreJobs
from app.jobs.turns import LeaseTurns
from app.settings import Settings
from app.store.store import Store
from tests.store.site import opened, prepare, settings_for


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(runner, "PERIOD", 0.01)
    made = settings_for(tmp_path)
    prepare(made)
    return made


class Round(Garbage):
    """Notes who ran, instead of collecting."""

    def __init__(self, name: str, store: Store, rounds: list[str]) -> None:
        super().__init__(store, lambda: 0, lambda: 0, 0)
        self._name = name
        self._rounds = rounds

    async def run_once(self) -> int:
        self._rounds.append(self._name)
        return 0


def gateway(name: str, store: Store, rounds: list[str], made: list[str]) -> Jobs:
    """The jobs of one gateway."""

    def make(one: Store) -> StoreJobs:
        made.append(name)
        return StoreJobs(one, Round(name, one, rounds))

    return Jobs(LeaseTurns(store.index), store, lambda _: False, make)


async def until(true: Any) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_at_a_time_and_the_next(settings: Settings) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await until(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())
        await asyncio.sleep(0.3)
        assert set(rounds) == {"first"}
        await end(first)
        await until(lambda: "second" in rounds)
        assert "first" not in rounds[rounds.index("second") :]
        await end(second)


async def test_taken_over_from_a_holder_that_was_declared_dead(settings: Settings) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await until(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())
        await second_store.index.declare_dead(first_store.index.incarnation)
        await until(lambda: "second" in rounds)
        last = rounds.index("second")
        await until(lambda: len(rounds) > last + 20)
        assert set(rounds[last + 5 :]) == {"second"}, "the other found out that it is not its turn any more"
        await end(first, second)


async def test_a_store_out_of_reach_is_left_to_others(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[str] = []
    made: list[str] = []
    async with opened(settings) as first_store, opened(settings) as second_store:
        first = asyncio.create_task(gateway("first", first_store, rounds, made).run())
        await until(lambda: rounds)
        second = asyncio.create_task(gateway("second", second_store, rounds, made).run())

        class Down:
            up = False

        monkeypatch.setattr(first_store, "breaker", Down())
        await until(lambda: "second" in rounds)
        monkeypatch.setattr(first_store, "breaker", None)
        await asyncio.sleep(0.2)
        assert rounds[-1] == "second"
        assert made.count("first") == 2, "what it kept in memory is made anew"
        await end(first, second)


async def test_what_was_begun_in_an_old_turn_commits_nothing(settings: Settings) -> None:
    """As the engine for several gateways runs it: the check is in the transaction."""
    async with opened(settings) as store:
        index: Any = store.index
        turn = LeaseTurns(index).turn("store:default")
        assert await turn.mine()
        plain = index._commit

        async def fenced(function: Any, *arguments: Any) -> Any:
            return await plain(leased.fenced(function), *arguments)

        index._commit = fenced
        with turn.using():
            await index.set_note("a", "1")
        await index.leave_lease(turn._lease)  # type: ignore[attr-defined]
        assert await LeaseTurns(index).turn("store:default").mine()
        with turn.using(), pytest.raises(LeaseLost):
            await index.set_note("a", "2")
        assert await index.note("a") == "1"
        assert not await turn.mine(), "and it knows"
