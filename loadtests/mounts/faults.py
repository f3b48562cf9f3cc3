"""Faults: which calls of a mount fail, are cut short, are late or hang."""

from __future__ import annotations

import errno
import fnmatch
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

MAKING = ("create", "mkdir", "symlink", "link", "mknod")
CHANGING = (*MAKING, "write", "truncate", "fallocate", "rename", "unlink", "rmdir", "chmod", "chown", "utimens")
GROUPS = {
    "sync": ("fsync",),
    "close": ("flush",),
    "make": MAKING,
    "space": (*MAKING, "write", "fallocate"),
    "change": CHANGING,
}
"""Names for groups of calls.

`space` is what a full disk refuses, `change` what a read-only one refuses. Opening a file for writing is an `open`.
"""

ACTS = ("short", "hang", "late")
CALLS = {
    *("getattr", "readdir", "statfs", "readlink", "open", "read", "fsync", "fsyncdir", "flush"),
    *("getxattr", "setxattr", "listxattr", "removexattr", *CHANGING),
}


@dataclass(frozen=True)
class Fault:
    """A fault of the `nth` matching call and those after it, `times` in all.

    With `times` None it lasts until it is cleared.

    `call` is a name of FUSE's (`close` is `flush`), several with commas, a group or `*`. `path` is a shell pattern for
    the path below the mount point, which begins with a slash; `*` also matches slashes. `act` is the name of an errno,
    or `short` (a write or read of `part` of the bytes), `hang` (until it is released or cleared) or `late` (`seconds`
    more). With `after` the call is done first and its answer then lost: a rename that took place and failed. The call
    `fsync` does not include that of a directory, which is `fsyncdir`.
    """

    call: str
    act: str
    path: str = "*"
    nth: int = 1
    times: int | None = 1
    part: float = 0.5
    seconds: float = 1.0
    after: bool = False

    def __post_init__(self) -> None:
        unknown = self.calls() - CALLS
        if unknown:
            raise ValueError(f"no such call: {', '.join(sorted(unknown))}")
        if self.act not in ACTS and not isinstance(getattr(errno, self.act, None), int):
            raise ValueError(f"{self.act!r} is neither an errno nor one of {', '.join(ACTS)}")
        if self.nth < 1 or (self.times is not None and self.times < 1) or not 0 <= self.part < 1:
            raise ValueError("nth and times are at least 1, part is below 1")

    def calls(self) -> set[str]:
        """Return the names of the FUSE calls that the fault matches."""
        named = [name.strip() for name in self.call.split(",")]
        if "*" in named:
            return set(CALLS)
        return {one for name in named for one in GROUPS.get(name, (name,))}

    def as_json(self) -> dict[str, Any]:
        """Return the fault as JSON; `Fault(**value)` restores it."""
        return asdict(self)


@dataclass
class Armed:
    """A fault with its counts so far."""

    fault: Fault
    calls: set[str]
    seen: int = 0
    struck: int = 0
    released: threading.Event = field(default_factory=threading.Event)


class Faults:
    """The faults of a running mount, and how often each call came. Thread-safe."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.waiting = 0
        self._lock = threading.Lock()
        self._next = 1
        self._armed: dict[int, Armed] = {}
        for fault in faults:
            self.set(fault)

    def set(self, fault: Fault) -> int:
        """Arm a fault. Returns the number that identifies it."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._armed = {**self._armed, number: Armed(fault, fault.calls())}
            return number

    def clear(self, number: int | None = None) -> None:
        """Clear one fault, or all. Calls that hang by it go on."""
        with self._lock:
            gone = [one for key, one in self._armed.items() if number in (None, key)]
            self._armed = {key: one for key, one in self._armed.items() if number not in (None, key)}
        for one in gone:
            one.released.set()

    def release(self, number: int | None = None) -> None:
        """Let the calls go on that hang now; later calls hang again."""
        with self._lock:
            found = [one for key, one in self._armed.items() if number in (None, key)]
            events = [one.released for one in found]
            for one in found:
                one.released = threading.Event()
        for event in events:
            event.set()

    def struck(self) -> dict[int, int]:
        """Return how often each armed fault struck."""
        return {number: one.struck for number, one in self._armed.items()}

    def find(self, call: str, path: str | None) -> Armed | None:
        """Find the fault that strikes this call, if any. Counts the call."""
        self.counts[call] += 1
        if not self._armed:
            return None
        with self._lock:
            for one in self._armed.values():
                if call not in one.calls or not fnmatch.fnmatchcase(path or "", one.fault.path):
                    continue
                one.seen += 1
                late = one.seen - one.fault.nth
                if late >= 0 and (one.fault.times is None or late < one.fault.times):
                    one.struck += 1
                    return one
        return None

    def strike(self, armed: Armed, path: str | None) -> float | None:
        """Raise OSError, hang or wait.

        Returns the part of the bytes that may be moved, if it is less than all.
        """
        fault = armed.fault
        if fault.act == "short":
            return fault.part
        if fault.act == "late":
            time.sleep(fault.seconds)
        elif fault.act == "hang":
            event = armed.released
            with self._lock:
                self.waiting += 1
            event.wait()
            with self._lock:
                self.waiting -= 1
        else:
            raise OSError(getattr(errno, fault.act), fault.act, path)
        return None
