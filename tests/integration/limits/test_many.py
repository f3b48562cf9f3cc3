"""Many transfers at once: each holds little, and together they hold no more than the settings say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice_s3.app.settings import Settings
from tests.integration.limits.memory import Memory
from tests.integration.limits.wire import MIB, Content, Wire
from tests.support.environment import sized
from tests.support.gateway import Gateway

pytestmark = pytest.mark.xdist_group("limits")

TRANSFERS = 64
SIZE = sized(ci=8 * MIB, soak=100 * MIB)


def all_at_once(transfer: Callable[[int], None]) -> float:
    """Run all transfers, each in a thread; raises what one raises. Returns seconds."""
    barrier = threading.Barrier(TRANSFERS + 1)

    def run(number: int) -> None:
        barrier.wait(60)
        transfer(number)

    with ThreadPoolExecutor(TRANSFERS) as threads:
        futures = [threads.submit(run, number) for number in range(TRANSFERS)]
        barrier.wait(60)
        started = time.monotonic()
        for future in futures:
            future.result()
    return time.monotonic() - started


def test_64_transfers(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data") as gateway:
        with Wire(gateway.endpoint) as wire:
            assert wire.ask_signed("PUT", "/many").status == 200

        def put(number: int) -> None:
            with Wire(gateway.endpoint) as wire:
                wire.put(f"/many/{number}", Content(SIZE, number))

        def get(number: int) -> None:
            with Wire(gateway.endpoint) as wire:
                wire.get(f"/many/{number}", Content(SIZE, number))

        for name, transfer in (("PUT", put), ("GET", get)):
            memory = Memory(gateway)
            seconds = all_at_once(transfer)
            rate = TRANSFERS * SIZE / MIB / seconds
            print(f"\n{TRANSFERS} {name} of {SIZE / MIB:.0f} MiB: {seconds:.1f} s, {rate:.0f} MiB/s, {memory.told()}")
            # requests hold no more than the setting, connections neither before they refuse new bodies
            for before, peak in zip(memory.before, memory.peaks(), strict=True):
                assert peak - before < 2 * Settings.model_fields["max_body_memory"].default, memory.told()
