"""Counters and latency histograms of all processes of a server, in one mapped file.

Every process writes without a lock, and only in its own slot; a scrape sums the slots. A slot is never reset while the
server runs: the next process in it continues its counts.

The counted names determine the layout, and the file's name holds a hash of the layout. After a rolling restart, code
that counts other names finds no file of its layout and creates one: neither code reads the other's.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from hashlib import blake2s
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sluice_s3.app.access.iam import errors as iam_errors
from sluice_s3.app.s3 import errors
from sluice_s3.app.server.shared_memory.oldest_requests import map_shared_file
from sluice_s3.app.server.shared_memory.operation_names import OPERATIONS, UNKNOWN


def codes_of(base: type, module: ModuleType) -> set[str]:
    """Return the codes of a module's error classes: `code`, else the class name."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    codes = {one: getattr(one, "code", "") for one in found if one is not base}
    return {code if isinstance(code, str) and code else one.__name__ for one, code in codes.items()}


ERRORS = ((errors.S3Error, errors), (iam_errors.IamError, iam_errors))
PHASES = ("auth", "index", "open", "write", "sync", "commit", "read", "total")
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
CODES: tuple[str, ...] = ("Other", *sorted({code for base, found in ERRORS for code in codes_of(base, found)}))
"""Of these modules and their imports only. Other imports of a process must not change the layout."""
BOUNDS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Upper bounds of the histograms' buckets in seconds; one more bucket holds the rest."""

_BUCKETS = len(BOUNDS) + 1
_HISTOGRAM = _BUCKETS + 1
"""Words of a histogram: its buckets, and the sum of seconds."""
_STATUS = len(STATUS_CLASSES)
_OPERATION = _STATUS + 2 + len(PHASES) * _HISTOGRAM
"""Words of an operation: requests by status class, bytes in, bytes out, histograms."""
_GAUGES = 2
_PLACE_OF_JOBS = _GAUGES + len(CODES) + len(OPERATIONS) * _OPERATION
COMPACTION = ("moved", "freed")
LIFECYCLE = ("object", "older", "marker", "upload", "transition")
_PLACE_OF_RULES = _PLACE_OF_JOBS + len(COMPACTION)
_ALARMS = _PLACE_OF_RULES + len(LIFECYCLE)
_HELD = _ALARMS + 1
"""How often each operation blocked the event loop, then for how many seconds."""
_PLACE = _HELD + 2 * len(OPERATIONS)
_OPERATION_BASE = {name: _GAUGES + len(CODES) + number * _OPERATION for number, name in enumerate(OPERATIONS)}
_NUMBER = {name: number for number, name in enumerate(OPERATIONS)}
_CODE_AT = {name: _GAUGES + number for number, name in enumerate(CODES)}
_PHASE_AT = {name: _STATUS + 2 + number * _HISTOGRAM for number, name in enumerate(PHASES)}
CLASS_AT = {status: status // 100 - 1 for status in range(100, 600)}
_PLACES = {
    name: {"": base, **{phase: base + offset for phase, offset in _PHASE_AT.items()}}
    for name, base in _OPERATION_BASE.items()
}
"""The first word of an operation, and of each of its histograms."""
_SECONDS_AT = [places["total"] + _BUCKETS for places in _PLACES.values()]
_NAMES = (PHASES, STATUS_CLASSES, CODES, BOUNDS, OPERATIONS, COMPACTION, LIFECYCLE, _PLACE)
LAYOUT = blake2s(repr(_NAMES).encode(), digest_size=6).hexdigest()


class Activity(NamedTuple):
    """The requests of all processes."""

    running: float
    """Requests that are being answered, as of each process's last sweep."""
    seconds: float
    """Seconds that all answered requests took."""


class OperationCounts(NamedTuple):
    """What all processes counted of one operation."""

    statuses: tuple[float, ...]
    """Answers by status class: see `STATUS_CLASSES`."""
    bytes_in: float
    bytes_out: float
    durations: tuple[float, ...]
    """Answers by their seconds in total: up to each of `BOUNDS`, and longer."""


class Counters:
    """The file of counters: a process writes one slot and reads all.

    Words are doubles: exact up to 2**53, so that counts and seconds fit the same view.
    """

    bounds = BOUNDS

    def __init__(self, path: Path, slot_count: int, slot: int = 0, *, create: bool = False) -> None:
        self._slot_count = slot_count
        if create:
            for old in path.parent.glob(f"{path.name}*"):
                old.unlink(missing_ok=True)
        self._all = memoryview(open_or_create(_path_of(path), slot_count * _PLACE * 8, create=create)).cast("d")
        self._own = self._all[slot * _PLACE : (slot + 1) * _PLACE]

    @classmethod
    def open(cls, path: Path, slot_count: int, slot: int = 0) -> Counters:
        """Map the launcher's file, or create it when the launcher's code has another layout."""
        return cls(path, slot_count, slot)

    def count_request(
        self,
        operation: str,
        status: int,
        timings: dict[str, float],
        seconds: float,
        bytes_in: int,
        bytes_out: int,
        code: str = "",
    ) -> None:
        """Count an answered request: seconds in total and by phase, bytes of both bodies, error code."""
        words = self._own
        offsets = _PLACES.get(operation) or _PLACES[UNKNOWN]
        base = offsets[""]
        words[base + CLASS_AT.get(status, _STATUS - 1)] += 1
        if bytes_in:
            words[base + _STATUS] += bytes_in
        if bytes_out:
            words[base + _STATUS + 1] += bytes_out
        at = offsets["total"]
        words[at + bisect_left(BOUNDS, seconds)] += 1
        words[at + _BUCKETS] += seconds
        for phase, spent in timings.items():
            if phase in offsets:
                at = offsets[phase]
                words[at + bisect_left(BOUNDS, spent)] += 1
                words[at + _BUCKETS] += spent
        if code:
            words[_CODE_AT.get(code, _GAUGES)] += 1

    def set_gauges(self, running: int, connections: int) -> None:
        """Set the numbers of running requests and open connections of this process."""
        self._own[0] = running
        self._own[1] = connections

    def count_compaction(self, moved: int, freed: int) -> None:
        """Count the bytes that compaction rewrote, and the bytes that it freed beyond those."""
        self._own[_PLACE_OF_JOBS] += moved
        self._own[_PLACE_OF_JOBS + 1] += freed

    def count_expiry(self, kind: str, number: int) -> None:
        """Count what lifecycle rules removed."""
        self._own[_PLACE_OF_RULES + LIFECYCLE.index(kind)] += number

    def count_alarm(self) -> None:
        """Count an integrity alarm: a committed blob or a journal is missing or wrong."""
        self._own[_ALARMS] += 1

    def count_loop_hold(self, operation: str, seconds: float) -> None:
        """Count that an operation blocked the event loop for `seconds`."""
        word = _HELD + 2 * _NUMBER.get(operation, 0)
        self._own[word] += 1
        self._own[word + 1] += seconds

    def clear_gauges(self, slot: int) -> None:
        """Clear the gauges of a dead process."""
        self._all[slot * _PLACE] = self._all[slot * _PLACE + 1] = 0

    def read_activity(self) -> Activity:
        """Return the running requests, and the seconds of all answered ones, of all processes."""
        return Activity(self._sum(0), sum(map(self._sum, _SECONDS_AT)))

    def read_operations(self) -> dict[str, OperationCounts]:
        """Return the counts of all processes, by operation, of those that were ever asked for."""
        found = {}
        for name, places in _PLACES.items():
            base = places[""]
            statuses = tuple(self._sum(word) for word in range(base, base + _STATUS))
            if any(statuses):
                moved = (self._sum(base + _STATUS), self._sum(base + _STATUS + 1))
                first = places["total"]
                durations = tuple(self._sum(word) for word in range(first, first + _BUCKETS))
                found[name] = OperationCounts(statuses, *moved, durations)
        return found

    def read_gauges(self) -> tuple[float, float]:
        """Return the running requests and open connections of all processes but this one."""
        return self._sum(0) - self._own[0], self._sum(1) - self._own[1]

    def read_alarms(self) -> float:
        """Return how often data was found missing or damaged."""
        return self._sum(_ALARMS)

    # the scrape
    def _sum(self, word: int) -> float:
        return sum(self._all[word::_PLACE])

    def render(self) -> bytes:
        """Return all values in the text format of Prometheus."""
        requests, moved, histograms = [], [], []
        for operation, base in _OPERATION_BASE.items():
            counts = [self._sum(base + number) for number in range(_STATUS)]
            if not any(counts):
                continue
            label = f'operation="{operation}"'
            requests += [
                f'sluice_requests_total{{{label},status="{status}"}} {count:.0f}'
                for status, count in zip(STATUS_CLASSES, counts, strict=True)
                if count
            ]
            for number, direction in enumerate(("in", "out")):
                total = self._sum(base + _STATUS + number)
                moved.append(f'sluice_bytes_total{{{label},direction="{direction}"}} {total:.0f}')
            for phase, offset in _PHASE_AT.items():
                histograms += self._histogram(f'{label},phase="{phase}"', base + offset)
        codes = [
            f'sluice_errors_total{{code="{code}"}} {count:.0f}'
            for code, word in _CODE_AT.items()
            if (count := self._sum(word))
        ]
        lines = [
            *family("sluice_requests_total", "counter", "Requests answered.", requests),
            *family("sluice_errors_total", "counter", "Answers that were S3 errors, by code.", codes),
            *family("sluice_bytes_total", "counter", "Bytes of request and response bodies.", moved),
            *family("sluice_request_seconds", "histogram", "Seconds of requests and of their phases.", histograms),
            *family("sluice_compaction_bytes_total", "counter", "Bytes that compaction moved, and freed net.", [
                f'sluice_compaction_bytes_total{{kind="{kind}"}} {self._sum(_PLACE_OF_JOBS + number):.0f}'
                for number, kind in enumerate(COMPACTION)
            ]),
            *family("sluice_lifecycle_total", "counter", "Versions and uploads that rules took away or moved.", [
                f'sluice_lifecycle_total{{kind="{kind}"}} {self._sum(_PLACE_OF_RULES + number):.0f}'
                for number, kind in enumerate(LIFECYCLE)
            ]),
            *family("sluice_integrity_alarms_total", "counter", "Times that data was found missing or damaged.", [
                f"sluice_integrity_alarms_total {self._sum(_ALARMS):.0f}"
            ]),
            *self._render_loop_holds(),
            *family("sluice_requests_running", "gauge", "Requests being answered.", [
                f"sluice_requests_running {self._sum(0):.0f}"
            ]),
            *family("sluice_connections", "gauge", "Open connections.", [f"sluice_connections {self._sum(1):.0f}"]),
        ]  # fmt: skip
        return ("\n".join(lines) + "\n").encode()

    def _render_loop_holds(self) -> list[str]:
        """Render the operations that blocked the loop. The first one is always there, as a sample."""
        times, seconds = [], []
        for number, operation in enumerate(OPERATIONS):
            count = self._sum(_HELD + 2 * number)
            if count or not number:
                label = f'{{operation="{operation}"}}'
                times.append(f"sluice_loop_held_total{label} {count:.0f}")
                seconds.append(f"sluice_loop_held_seconds_total{label} {self._sum(_HELD + 2 * number + 1):.3f}")
        return [
            *family("sluice_loop_held_total", "counter", "Times that the event loop was held over 0.1 s.", times),
            *family("sluice_loop_held_seconds_total", "counter", "Seconds that it was held then.", seconds),
        ]

    def _histogram(self, label: str, base: int) -> list[str]:
        counts = [self._sum(base + number) for number in range(_BUCKETS)]
        if not any(counts):
            return []
        name = "sluice_request_seconds"
        lines, total = [], 0.0
        for bound, count in zip((*map(repr, BOUNDS), "+Inf"), counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {total:.0f}')
        lines.append(f"{name}_sum{{{label}}} {self._sum(base + _BUCKETS):.6f}")
        lines.append(f"{name}_count{{{label}}} {total:.0f}")
        return lines


def _path_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-{LAYOUT}")


def open_or_create(path: Path, size: int, *, create: bool) -> mmap.mmap:
    """Map a shared file; without `create` it is created only when it is missing."""
    if not create:
        try:
            return map_shared_file(path, size, create=False)
        except FileNotFoundError:
            pass
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        map_shared_file(temporary, size, create=True).close()
        try:
            os.link(temporary, path)  # complete, and by one process only
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return map_shared_file(path, size, create=create)


def family(name: str, kind: str, description: str, samples: list[str]) -> list[str]:
    """Return the lines of a metric in the text format of Prometheus."""
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}", *samples]
