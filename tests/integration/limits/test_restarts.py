"""A rolling restart under load: no client notices."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.integration.limits.load import Load
from tests.integration.limits.wire import Wire
from tests.support.environment import sized
from tests.support.gateway import Gateway
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("limits")

RESTARTS = sized(ci=3, soak=20)
SECONDS = 120.0
"""Until all processes are others; a generous bound for a busy machine."""


def restart(gateway: Gateway) -> None:
    """Return once no worker of before is left."""
    before = set(gateway.children())
    gateway.hup()

    def replaced() -> bool:
        now = set(gateway.children())
        return len(now) == gateway.workers and not before & now

    eventually(replaced, f"other workers than {before}", SECONDS)


def test_no_request_fails(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data") as gateway:
        with Wire(gateway.endpoint) as wire:
            assert wire.ask_signed("PUT", "/restarted").status == 200
        started = time.monotonic()
        with Load(gateway, "restarted", kept=4, fresh=2, large=1) as load:
            load.wait_for(50)
            for _ in range(RESTARTS):
                restart(gateway)
                load.wait_for(50)
        assert load.failures == []
        print(
            f"\n{RESTARTS} rolling restarts in {time.monotonic() - started:.0f} s: {load.requests} requests on "
            f"{load.connections} connections, {len(load.failures)} failed"
        )
