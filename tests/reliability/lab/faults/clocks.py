"""Wall clocks that jump, by libfaketime: one gateway's of several, ahead and back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from sluice_s3.app.index.object_lock.retention_clock import TOLERANCE_MS
from tests.reliability.lab.faults.registry import Scene, fault
from tests.reliability.lab.setups import Setup
from tests.support.environment import PYTHONPATH

FAKED = Path(__file__).parent / "faked"
MOST_SECONDS = 800
"""Clients sign with the true time, of which fifteen minutes are believed."""


def library() -> Path | None:
    """The library that deceives about the time, None when it is not installed."""
    found = sorted(Path("/usr").glob("lib*/*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


def can_fake(setup: Setup) -> bool:
    """Whether it is installed."""
    return shutil.which("faketime") is not None and library() is not None


def _jump(name: str, sign: int) -> None:
    @fault(name, on=can_fake)
    def jump(scene: Scene) -> Iterator[None]:
        gateway = scene.rng.choice(scene.site.gateways)
        seconds = sign * scene.rng.randint(2, MOST_SECONDS)
        offset = scene.site.directory / "time"
        offset.write_text("+0\n")
        env, command = gateway.env, gateway.command
        gateway.stop()
        gateway.env = {
            **env,
            "LD_PRELOAD": str(library()),
            "PYTHONPATH": f"{FAKED}:{PYTHONPATH}",
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        # by `env`: a process that is forked off another one loads no library
        gateway.command = ("env", sys.executable, "-m", "sluice_s3.app.cli")
        scene.site.start()
        yield
        scene.ledger.clocks_agree = False
        if 0 < seconds * 1000 <= TOLERANCE_MS:
            scene.ledger.due = {}  # the gateway believes the clock, which its rules then follow
        offset.write_text(f"{seconds:+d}\n")
        scene.clients.wait(2.0)
        yield
        offset.write_text("+0\n")
        yield
        gateway.env, gateway.command = env, command
        gateway.stop()
        scene.site.start()


_jump("clock-ahead", 1)
_jump("clock-behind", -1)
