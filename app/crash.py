"""Named points at which a test ends the process at once, as a crash would: see tests/crash."""

from __future__ import annotations

import os

_AT, _, _NTH = os.environ.get("SLUICE_CRASH_AT", "").partition(":")
_FILE = os.environ.get("SLUICE_CRASH_FILE", "")
_ARMED = bool(_AT or _FILE)
_left = int(_NTH or 1)


def crash_point(name: str) -> None:
    """Does nothing unless a test armed it.

    `SLUICE_CRASH_AT=name[:nth]` ends every process that comes by for the nth time; `SLUICE_CRASH_FILE=path` ends the
    process while the file says this name, so that a running gateway can be armed.
    """
    if _ARMED:
        _crash(name)


def _crash(name: str) -> None:
    global _left
    if name == _AT:
        _left -= 1
        if _left == 0:
            os._exit(137)
    if _FILE:
        try:
            with open(_FILE) as file:
                armed = file.read()
        except FileNotFoundError:
            return
        if name == armed:
            os._exit(137)
