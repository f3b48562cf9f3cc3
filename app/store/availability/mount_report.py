"""What is known of a store's mount: what it is, and what the probe of the last start found."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.probing.probe import Probe


class MountReport(NamedTuple):
    """A mount as the last start of the store's driver in this process saw it."""

    kind: str
    """The kind of file system; empty where there is no mount."""
    device: str
    point: str
    options: str
    line: str
    """The findings in one line."""
    trials: tuple[tuple[str, bool | None, str], ...]
    """What was tried, whether it works (None: could not be tried), and details."""
    latencies: tuple[tuple[str, float, float], ...]
    """Calls, with the median and the longest of their seconds."""


def report_mount(store: Store) -> MountReport | None:
    """Return what is known; None while the store was never in service in this process. Touches no mount."""
    probe: Any = store.driver.probe
    if isinstance(probe, Probe):
        mount = probe.mount
        trials = tuple((one.ability.value, one.works, one.detail) for one in probe.trials)
        latencies = tuple((one.call, one.median, one.worst) for one in probe.latencies)
        return MountReport(mount.kind, mount.source, mount.point, mount.options, probe.line, trials, latencies)
    if probe is None:
        return None
    return MountReport("", "", "", "", probe.line, tuple((name, False, "") for name in probe.lacks), ())
