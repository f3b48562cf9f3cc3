"""A rolling restart under load: no client notices."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.environment import sized
from tests.gateway import Gateway
from tests.limits.load import Load
from tests.limits.wire import Wire

pytestmark = pytest.mark.xdist_group("limits")

RESTARTS = sized(ci=3, soak=20)
SECONDS = 120.0
"""Until all processes are others; a generous bound for a busy machine."""


def restart(gateway: Gateway) -> None:
    """Return once no worker of before is left."""
    before = set(gateway.children())
    gateway.hup()
    deadline = time.monotonic() + SECONDS
    while len(now := set(gateway.children())) != gateway.workers or before & now:
        assert time.monotonic() < deadline, f"{before} became {now}"
        time.sleep(0.05)


def test_no_request_fails(tmp_path: Path) -> None:
    with Gateway(tmp_path / "data") as gateway:
        with Wire(gateway.endpoint) as wire:
            assert wire.ask("PUT", "/restarted").status == 200
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
