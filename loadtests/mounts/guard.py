"""Stands before every operation: counts it, and lets faults strike."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from typing import Any

from loadtests.mounts.faults import CALLS, Faults
from loadtests.mounts.passthrough import is_hidden
from loadtests.mounts.personalities import Plain
from loadtests.mounts.unsynced import Undo

SYNCS = ("fsync", "flush")


def guard(operations: Plain, faults: Faults, undo: Undo | None) -> None:
    """Have the operations ask the faults first. What the personality lacks is taken away, which libfuse answers."""
    for call in CALLS:
        if call in operations.lacks:
            setattr(operations, call, None)
            continue
        method = getattr(operations, call, None)
        if method is not None:
            setattr(operations, call, _guarded(call, method, operations, faults, undo))
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


def _shortened(call: str, part: float, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a read or write of that part, but of a byte at least."""
    first, *rest = arguments
    if call == "write":
        return (first[: max(1, int(len(first) * part))], *rest)
    if call == "read":
        return (max(1, int(first * part)), *rest)
    return arguments
