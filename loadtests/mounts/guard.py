"""Runs around every operation: counts it, lets faults strike, and makes it slower."""

from __future__ import annotations

import errno
import functools
import time
from collections.abc import Callable
from typing import Any

from sluice_s3.loadtests.mounts.bandwidth import wait_until
from sluice_s3.loadtests.mounts.faults import CALLS, Faults
from sluice_s3.loadtests.mounts.passthrough import is_hidden
from sluice_s3.loadtests.mounts.power_loss import Undo
from sluice_s3.loadtests.mounts.quirks import Plain

SYNCS = ("fsync", "flush")


def guard(operations: Plain, faults: Faults, undo: Undo | None, slower: float = 1.0) -> None:
    """Have the operations check the faults first.

    Operations that the personality lacks are removed; libfuse answers those. Each takes `slower` times as long as it
    would.
    """
    for call in CALLS:
        if call in operations.lacks:
            setattr(operations, call, None)
            continue
        method = getattr(operations, call, None)
        if method is not None:
            setattr(operations, call, _guarded(call, _slowed(method, slower), operations, faults, undo))
    by_index = getattr(operations, "readdir_with_offset", None)
    if by_index is not None:
        operations.readdir = None  # type: ignore[method-assign,assignment]
        guarded = _guarded("readdir", by_index, operations, faults, undo)
        operations.readdir_with_offset = guarded  # type: ignore[attr-defined]


def _guarded(
    call: str, method: Callable[..., Any], operations: Plain, faults: Faults, undo: Undo | None
) -> Callable[..., Any]:
    @functools.wraps(method)
    def guarded(path: str, *arguments: Any) -> Any:
        if undo is not None and undo.crashed:
            raise OSError(errno.EIO, "crashed", path)
        if call == "unlink" and is_hidden(path):
            return method(path)  # counted when it got that name
        armed = faults.find("unlink" if call == "rename" and is_hidden(arguments[0]) else call, path)
        if armed is None:
            return method(path, *arguments)
        fault = armed.fault
        if fault.after:
            answer = method(path, *arguments)
            try:
                faults.strike(armed, path)
            except OSError:
                if call in ("create", "open"):
                    operations.release(path, answer)
                raise
            return answer
        try:
            part = faults.strike(armed, path)
        except OSError:
            if undo is not None and call in SYNCS:
                undo.failed(arguments[-1])
            raise
        if part is not None:
            arguments = _shortened(call, part, arguments)
        return method(path, *arguments)

    return guarded


def _slowed(method: Callable[..., Any], slower: float) -> Callable[..., Any]:
    if slower == 1:
        return method

    @functools.wraps(method)
    def slowed(*arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return method(*arguments)
        finally:
            wait_until(started + (time.perf_counter() - started) * slower)

    return slowed


def _shortened(call: str, part: float, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Shorten a read or write to that part, but at least a byte."""
    first, *rest = arguments
    if call == "write":
        return (first[: max(1, int(len(first) * part))], *rest)
    if call == "read":
        return (max(1, int(first * part)), *rest)
    return arguments
