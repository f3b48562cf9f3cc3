"""When a store is out of service, and when not, without a server and with a mount of our own making."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sluice_s3.app.store.availability import circuit_breaker
from sluice_s3.app.store.availability.circuit_breaker import CircuitBreaker
from sluice_s3.app.store.named_driver import NamedDriver
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import StoreFull, StoreSilent
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.local import LocalDriver
from tests.support.waiting import eventually_async

pytestmark = pytest.mark.slow

LIMIT = 0.2


class Mount:
    """What looks at the mount find."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.error: Exception | None = None


@pytest.fixture
def mount() -> Mount:
    return Mount()


@pytest.fixture
def make(tmp_path: Path, mount: Mount) -> Callable[[], LocalDriver]:
    class Driver(LocalDriver):
        def look(self, known: Identity, *, write: bool) -> None:
            mount.answers.wait(30)
            if mount.error is not None:
                raise mount.error
            super().look(known, write=write)

    return lambda: Driver(tmp_path / "store", durability=Durability.RELAXED, threads=2)


@pytest.fixture
async def place(make: Callable[[], LocalDriver]) -> AsyncIterator[NamedDriver]:
    made = NamedDriver(make())
    yield made
    await made.close()


async def until(made: CircuitBreaker, happened: Callable[[], bool]) -> None:
    """Look until it has happened."""

    async def has_happened() -> bool:
        if not happened():
            await made.look()
        return happened()

    await eventually_async(has_happened)


async def test_a_slow_call_alone_takes_nothing_out_of_service(
    place: NamedDriver, make: Callable[[], LocalDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(None)
    driver, go_on = place.driver, threading.Event()
    assert isinstance(driver, LocalDriver)
    slow = driver._run_in_thread(go_on.wait, 30)
    await until(made, lambda: made.state.stuck == 1)
    assert made.up
    monkeypatch.setattr(circuit_breaker, "LONGEST_CALL_FACTOR", 2)
    await until(made, lambda: not made.up)
    with pytest.raises(StoreSilent):
        slow.result()
    assert made.state.stuck == 1
    await until(made, lambda: made.up)
    assert place.driver is not driver
    assert (await place.usage()).total > 0
    go_on.set()
    await until(made, lambda: made.state.stuck == 0)


async def test_a_mount_that_does_not_answer(place: NamedDriver, make: Callable[[], LocalDriver], mount: Mount) -> None:
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(None)
    driver, go_on = place.driver, threading.Event()
    assert isinstance(driver, LocalDriver)
    mount.answers.clear()
    driver._run_in_thread(go_on.wait, 30)
    await until(made, lambda: not made.up)
    with pytest.raises(StoreSilent):
        await place.usage()
    for _ in range(3):
        await made.look()
    assert not made.up
    mount.answers.set()
    await until(made, lambda: made.up)
    assert (await place.usage()).total > 0
    go_on.set()


async def test_another_store_in_its_place(
    place: NamedDriver, make: Callable[[], LocalDriver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "FULL_CHECK_SECONDS", 0.0)
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(None)
    file = tmp_path / "store" / "store.json"
    before = file.read_bytes()
    file.write_bytes(before.replace(b'"generation": 1', b'"generation": 2'))
    await until(made, lambda: not made.up)
    file.unlink()
    for _ in range(5):
        await made.look()
        await asyncio.sleep(0.01)
    assert not made.up
    assert not file.exists()
    file.write_bytes(before)
    await until(made, lambda: made.up)


async def test_a_known_store_that_is_not_there_at_the_start(
    place: NamedDriver, make: Callable[[], LocalDriver], mount: Mount
) -> None:
    mount.answers.clear()
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(("00000000-0000-0000-0000-000000000001", 1))
    assert not made.up
    mount.answers.set()


async def test_a_full_mount_stays_in_service(place: NamedDriver, make: Callable[[], LocalDriver], mount: Mount) -> None:
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(None)
    driver = place.driver
    assert isinstance(driver, LocalDriver)
    mount.error = StoreFull()
    driver._threads.troubles += 1
    await until(made, lambda: made.state.condition == "full")
    assert made.up
    mount.error = None
    await until(made, lambda: made.state.condition == "up")
    assert place.driver is driver


async def test_what_hangs_is_not_left_behind_without_end(
    place: NamedDriver, make: Callable[[], LocalDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "LONGEST_CALL_FACTOR", 1)
    made = CircuitBreaker(place, make, LIMIT)
    await made.start(None)
    go_on = threading.Event()
    for _ in range(circuit_breaker.MOST_GIVEN_UP):
        driver = place.driver
        assert isinstance(driver, LocalDriver)
        driver._run_in_thread(go_on.wait, 30)
        await until(made, lambda: not made.up)
        await until(made, lambda: made.up)
    driver = place.driver
    assert isinstance(driver, LocalDriver)
    driver._run_in_thread(go_on.wait, 30)
    await until(made, lambda: not made.up)
    await until(made, lambda: "hang for ever" in made._reason)
    assert made.state.stuck == circuit_breaker.MOST_GIVEN_UP + 1
    go_on.set()
    await until(made, lambda: made.up)
