"""Named points at which a test ends the process like a crash: see tests/reliability/crash."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

_AT, _, _NTH = os.environ.get("SLUICE_CRASH_AT", "").partition(":")
_FILE = os.environ.get("SLUICE_CRASH_FILE", "")
_ARMED = bool(_AT or _FILE)
_left = int(_NTH or 1)


class Named(Protocol):
    """A job with arguments, by which a test selects it."""

    arguments: tuple[Any, ...]


def crash_point(name: str, jobs: Sequence[Named] = ()) -> None:
    """End the process if a test armed this point; else do nothing.

    `SLUICE_CRASH_AT=name[:nth]` ends every process that passes the point for the nth time. `SLUICE_CRASH_FILE=path`
    ends the process while the file has this name, so that a running gateway can be armed. A second line, such as a key,
    spares calls without it in the arguments of their `jobs`, since background jobs pass the same points.
    """
    if _ARMED:
        _crash(name, jobs)


def _crash(name: str, jobs: Sequence[Named]) -> None:
    global _left
    if name == _AT:
        _left -= 1
        if _left == 0:
            os._exit(137)
    if _FILE:
        try:
            with open(_FILE) as file:
                armed = file.read()
        except OSError:  # it is not there, or this process can open no file more
            return
        point, _, word = armed.partition("\n")
        if name == point and (not word or any(word in repr(job.arguments) for job in jobs)):
            os._exit(137)
