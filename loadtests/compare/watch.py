"""Watches a trial: signals to end, processes that must live, space that others need."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare.targets import RunningTarget
from sluice_s3.loadtests.compare.trial import Interrupted
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.probing.probe import measure

SPARE = 1.1
"""Free space that must be left beyond the estimated bytes of a turn."""
SYNC_SECONDS = 120.0
LEAST_FREE_BYTES, LEAST_FREE_SHARE = 128 * 1024 * 1024, 0.02
"""With less space left, whichever is less, what is measured is given up."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def inspect_store(entry: dict[str, Any], there: RunningTarget, size: int) -> None:
    """Probe a store before its first turn, note what it is in its `entry`, and check its free space.

    `size` is the estimate of the bytes that a turn writes. Raises OSError.
    """
    if there.path is None:
        return
    total, _, free = shutil.disk_usage(there.path)
    needed = int(size * SPARE)
    if free < needed:
        raise OSError(f"no space: about {needed / 1e6:,.0f} MB are written, {free / 1e6:,.0f} MB are free")
    entry |= {"server": there.server, "driver": there.driver or entry["driver"]}
    entry.setdefault("space", {"total": total, "free": free})
    if entry.get("probe") is None and entry["kind"] == "gateway":
        with suppress(OSError):
            entry["probe"] = measure(there.path).to_json()
    mount = mount_of(there.path)
    entry["mount"] = mount._asdict() | {"driver": mount.driver}


def broken(there: RunningTarget) -> Callable[[], str]:
    """Return a check that reports when a required process, or the space, is gone."""

    def look() -> str:
        for what, pid in (("gateway", there.gateway_pid), ("mount's process", there.mount_pid)):
            if pid and not _runs(pid):
                return f"the {what} ended"
        if there.path is not None and _is_full(there.path):
            return "its file system is almost full"
        return ""

    return look


def _is_full(path: Path) -> bool:
    """Return whether others who use the same file system would soon find no space."""
    try:
        space = shutil.disk_usage(path)
    except OSError:
        return False
    return space.free < min(LEAST_FREE_BYTES, space.total * LEAST_FREE_SHARE)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def sync(path: Path | None) -> None:
    """Sync, so that earlier writes do not disturb the next cell."""
    if path is not None:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["sync", "-f", str(path)], check=False, timeout=SYNC_SECONDS)


@contextmanager
def ending_by_signal() -> Iterator[Callable[[], None]]:
    """Return a function that raises Interrupted after a signal to end.

    It is called only where nothing is half created. A second signal raises at once.
    """
    signals: list[str] = []

    def handle(number: int, _: object) -> None:
        signals.append(f"interrupted by {signal.Signals(number).name}")
        if len(signals) == 2:
            raise Interrupted(signals[0])

    def check() -> None:
        if len(signals) == 1:
            raise Interrupted(signals[0])

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
