"""Counts the instructions that a process tree executes.

Unlike CPU time, they hardly depend on what else the machine does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct

from sluice_s3.loadtests.common import procfs

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
HARDWARE, INSTRUCTIONS, INHERIT, CLOSE_ON_EXEC = 0, 1, 1 << 1, 1 << 3
ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
"""`struct perf_event_attr` of its first version (include/linux/perf_event.h)."""


class Counter:
    """Counts the instructions of all threads of a tree, and of their children.

    It counts from its creation on, in user and kernel mode.

    If the machine has no such counter, or the kernel does not let us (`kernel.perf_event_paranoid`), `read` returns
    None.
    """

    def __init__(self, root: int) -> None:
        self._descriptors: list[int] = []
        try:
            for thread in _threads(root):
                with contextlib.suppress(ProcessLookupError):
                    self._descriptors.append(_open(thread))
        except OSError:
            self.close()

    def read(self) -> int | None:
        """Return the instructions so far."""
        if not self._descriptors:
            return None
        return sum(int.from_bytes(os.read(descriptor, 8), "little") for descriptor in self._descriptors)

    def close(self) -> None:
        """Stop counting."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()


def _threads(root: int) -> list[int]:
    found: list[int] = []
    for pid in procfs.tree(root):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, os.listdir(f"/proc/{pid}/task"))
    return found


def _open(thread: int) -> int:
    """Open the counters. Raises OSError."""
    number = PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        raise OSError(f"perf_event_open of {platform.machine()} is not known here")
    attributes = ATTRIBUTES.pack(HARDWARE, ATTRIBUTES.size, INSTRUCTIONS, 0, 0, 0, INHERIT, 0, 0, 0)
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(
        number, attributes, thread, -1, -1, ctypes.c_ulong(CLOSE_ON_EXEC)
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor
