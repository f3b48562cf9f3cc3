"""Resident memory of the workers of a gateway, from /proc."""

from __future__ import annotations

from pathlib import Path

from tests.support.gateway import Gateway


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)


class Memory:
    """Peaks since this was made, in bytes, one of each worker. It must be the same workers all the time."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._pids = sorted(gateway.children())
        for pid in self._pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): VmHWM begins anew
        self.before = [_status(pid, "VmRSS") for pid in self._pids]

    def peaks(self) -> list[int]:
        """VmHWM of every worker."""
        assert sorted(self._gateway.children()) == self._pids, "a worker died"
        return [_status(pid, "VmHWM") for pid in self._pids]

    def told(self) -> str:
        """Before and peak, in MB (10^6 bytes), for people."""
        pairs = zip(self.before, self.peaks(), strict=True)
        return ", ".join(f"{before / 1e6:.0f} → {peak / 1e6:.0f} MB" for before, peak in pairs)
