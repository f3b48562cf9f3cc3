"""Gauges of the stores that need a memory between scrapes."""

from __future__ import annotations

import pytest

from sluice_s3.app.admin import metrics
from sluice_s3.app.admin.metrics import JournalLags
from tests.support.clock import StoppedClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(metrics, "time", clock)
    return clock


def test_journals_that_stand_still_are_behind_by_the_oldest_change(clock: StoppedClock) -> None:
    lags = JournalLags()
    assert lags.seconds("s", 0, 0, 7) == 0
    clock.now += 100
    oldest = round((clock.now - 1) * 1000)
    assert lags.seconds("s", 3, oldest, 7) == pytest.approx(1)
    clock.now += 60
    assert lags.seconds("s", 9, oldest, 7) == pytest.approx(61)
    assert lags.seconds("other", 9, oldest, 7) == 0, "nobody has seen since when"
    assert lags.seconds("s", 0, 0, 9) == 0


def test_changes_with_an_old_time_are_not_behind_while_journals_get_on(clock: StoppedClock) -> None:
    lags = JournalLags()
    for watermark in range(10):
        assert lags.seconds("s", 5, 1000, watermark) == 0
        clock.now += 15
    assert lags.seconds("s", 5, 1000, 9) == pytest.approx(15)
    clock.now += 60
    assert lags.seconds("s", 5, 1000, 9) == pytest.approx(75), "and are once they do not"
