"""Waits until a moment."""

from __future__ import annotations

import os
import time
from contextlib import closing

import gevent

from sluice_s3.loadtests.clients.precise_timer import PreciseTimer


def test_never_early_and_others_run_meanwhile() -> None:
    beats: list[float] = []

    def beat() -> None:
        while True:
            beats.append(time.perf_counter())
            gevent.sleep(0.001)

    other = gevent.spawn(beat)
    with closing(PreciseTimer()) as alarm:
        for number in range(20):
            moment = time.perf_counter() + 0.003 + number / 10_000
            alarm.wait_until(moment)
            assert time.perf_counter() >= moment
    other.kill()
    assert len(beats) >= 20


def test_what_is_past_is_not_waited_for_but_others_have_their_turn() -> None:
    with closing(PreciseTimer()) as alarm:
        for moment in (0.0, -1.0, time.perf_counter()):
            other = gevent.spawn(bool)
            alarm.wait_until(moment)
            assert other.ready()
        alarm.wait_until(time.perf_counter() + 0.001)


def test_the_descriptor_is_given_back() -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        PreciseTimer().close()
    assert os.listdir("/proc/self/fd") == before
