"""Named points at which a test kills the process, as a power cut would: see tests/crash."""

from __future__ import annotations

import os

_AT, _, _NTH = os.environ.get("SLUICE_CRASH_AT", "").partition(":")
_left = int(_NTH or 1)


def crash_point(name: str) -> None:
    """End the process at once if `SLUICE_CRASH_AT=name[:nth]` says so; otherwise nothing."""
    if _AT and name == _AT:
        _crash()


def _crash() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os._exit(137)
