"""The rates that processes share, and the limits of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_s3.app.s3.errors import SlowDown
from sluice_s3.app.s3.request_rates import RequestRateLimits
from sluice_s3.app.server.shared_memory import request_rates
from sluice_s3.app.server.shared_memory.request_rates import PROBES, RequestRates
from sluice_s3.app.settings import Settings
from tests.support.clock import StoppedClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(request_rates, "time", clock)
    return clock


def admitted(rates: RequestRates, caller: str, count: int, per_second: int = 10) -> int:
    return sum(rates.admit(caller, per_second) for _ in range(count))


def test_a_second_may_come_at_once_and_then_the_rate_holds(tmp_path: Path, clock: StoppedClock) -> None:
    rates = RequestRates(tmp_path / "rates", create=True)
    assert admitted(rates, "a", 30) == 10
    clock.now += 0.5
    assert admitted(rates, "a", 30) == 5
    clock.now += 60
    assert admitted(rates, "a", 30) == 10, "what was not used before does not add up"


def test_processes_count_together_and_callers_apart(tmp_path: Path, clock: StoppedClock) -> None:
    one = RequestRates(tmp_path / "rates", create=True)
    other = RequestRates(tmp_path / "rates")
    assert admitted(one, "a", 6) == 6
    assert admitted(other, "a", 30) == 4
    assert admitted(other, "b", 30) == 10


def test_a_slot_is_taken_again_and_a_full_house_is_shared(
    tmp_path: Path, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_rates, "SLOTS", 1)
    rates = RequestRates(tmp_path / "rates", create=True)
    for number in range(PROBES):
        assert admitted(rates, str(number), 11) == 10
    assert admitted(rates, "one too many", 1) == 0
    clock.now += 2
    assert admitted(rates, "one too many", 11) == 10


class Noted:
    """Rates that admit nobody and remember the callers."""

    def __init__(self) -> None:
        self.callers: list[str] = []

    def admit(self, caller: str, per_second: int) -> bool:
        self.callers.append(caller)
        return False


@pytest.mark.parametrize(
    ("client", "caller"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9%eth0", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("no:address", "no:address"),
    ],
)
def test_addresses_of_one_network_are_one_caller(client: str, caller: str) -> None:
    rates = Noted()
    limits = RequestRateLimits(Settings(anonymous_requests_per_second=1), rates)
    request: Any = SimpleNamespace(account_id=None, client=client)
    with pytest.raises(SlowDown):
        limits.check(request)
    assert rates.callers == [f"address {caller}"]


def test_another_start_forgets(tmp_path: Path) -> None:
    assert admitted(RequestRates(tmp_path / "rates", create=True), "a", 10, 1) == 1
    assert admitted(RequestRates(tmp_path / "rates", create=True), "a", 10, 1) == 1
