"""Counters and latency histograms of all processes of a server, in one file that each of them maps.

Every process has a place of its own in the file, writes only there and without a lock; a scrape sums the places. A
place is never reset while the server runs: the next process that gets it counts on.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from app.s3 import errors
from app.server.operation_names import OPERATIONS, UNKNOWN
from app.server.shared import open_shared

PHASES = ("auth", "index", "open", "write", "sync", "commit", "read", "total")
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
CODES: tuple[str, ...] = ("Other", *sorted(name for name in vars(errors) if isinstance(getattr(errors, name), type)))
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
"""Words of an operation: requests by class of status, bytes in, bytes out, histograms."""
_GAUGES = 2
_PLACE_OF_JOBS = _GAUGES + len(CODES) + len(OPERATIONS) * _OPERATION
COMPACTION = ("moved", "freed")
LIFECYCLE = ("object", "older", "marker", "upload", "transition")
_PLACE_OF_RULES = _PLACE_OF_JOBS + len(COMPACTION)
_ALARMS = _PLACE_OF_RULES + len(LIFECYCLE)
_PLACE = _ALARMS + 1
_OPERATION_BASE = {name: _GAUGES + len(CODES) + number * _OPERATION for number, name in enumerate(OPERATIONS)}
_CODE_AT = {name: _GAUGES + number for number, name in enumerate(CODES)}
_PHASE_AT = {name: _STATUS + 2 + number * _HISTOGRAM for number, name in enumerate(PHASES)}
_CLASS_AT = {status: status // 100 - 1 for status in range(100, 600)}
_PLACES = {
    name: {"": base, **{phase: base + offset for phase, offset in _PHASE_AT.items()}}
    for name, base in _OPERATION_BASE.items()
}
"""Where an operation's words begin, and each of its histograms."""


class Counters:
    """The file of counters, written at one place and read at all.

    Words are doubles: exact up to 2**53, and both counts and seconds fit the same view.
    """

    def __init__(self, path: Path, places: int, place: int = 0, *, create: bool = False) -> None:
        self._places = places
        self._all = memoryview(open_shared(path, places * _PLACE * 8, create=create)).cast("d")
        self._mine = self._all[place * _PLACE : (place + 1) * _PLACE]

    @classmethod
    def open(cls, path: Path, places: int, place: int = 0) -> Counters:
        """Map the file that the launcher made."""
        return cls(path, places, place)

    def request(
        self,
        operation: str,
        status: int,
        timings: dict[str, float],
        seconds: float,
        bytes_in: int,
        bytes_out: int,
        code: str = "",
    ) -> None:
        """Count one answered request: seconds in all and by phase, bytes of both bodies, the S3 error code if any."""
        words = self._mine
        places = _PLACES.get(operation) or _PLACES[UNKNOWN]
        base = places[""]
        words[base + _CLASS_AT.get(status, _STATUS - 1)] += 1
        if bytes_in:
            words[base + _STATUS] += bytes_in
        if bytes_out:
            words[base + _STATUS + 1] += bytes_out
        at = places["total"]
        words[at + bisect_left(BOUNDS, seconds)] += 1
        words[at + _BUCKETS] += seconds
        for phase, spent in timings.items():
            if phase in places:
                at = places[phase]
                words[at + bisect_left(BOUNDS, spent)] += 1
                words[at + _BUCKETS] += spent
        if code:
            words[_CODE_AT.get(code, _GAUGES)] += 1

    def gauges(self, running: int, connections: int) -> None:
        """How many requests run and how many connections there are in this process."""
        self._mine[0] = running
        self._mine[1] = connections

    def compacted(self, moved: int, freed: int) -> None:
        """Count bytes that compaction wrote again, and bytes that it gave back over those."""
        self._mine[_PLACE_OF_JOBS] += moved
        self._mine[_PLACE_OF_JOBS + 1] += freed

    def expired(self, kind: str, number: int) -> None:
        """Count what lifecycle rules took away."""
        self._mine[_PLACE_OF_RULES + LIFECYCLE.index(kind)] += number

    def alarm(self) -> None:
        """Count an integrity alarm: a committed blob, or a journal, is missing or wrong."""
        self._mine[_ALARMS] += 1

    def clear_gauges(self, place: int) -> None:
        """The process of a place is dead."""
        self._all[place * _PLACE] = self._all[place * _PLACE + 1] = 0

    # the scrape
    def _sum(self, word: int) -> float:
        return sum(self._all[word::_PLACE])

    def render(self) -> bytes:
        """Everything in the text format of Prometheus."""
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
            *_family("sluice_requests_total", "counter", "Requests answered.", requests),
            *_family("sluice_errors_total", "counter", "Answers that were S3 errors, by code.", codes),
            *_family("sluice_bytes_total", "counter", "Bytes of request and response bodies.", moved),
            *_family("sluice_request_seconds", "histogram", "Seconds of requests and of their phases.", histograms),
            *_family("sluice_compaction_bytes_total", "counter", "Bytes that compaction moved, and freed net.", [
                f'sluice_compaction_bytes_total{{kind="{kind}"}} {self._sum(_PLACE_OF_JOBS + number):.0f}'
                for number, kind in enumerate(COMPACTION)
            ]),
            *_family("sluice_lifecycle_total", "counter", "Versions and uploads that rules took away or moved.", [
                f'sluice_lifecycle_total{{kind="{kind}"}} {self._sum(_PLACE_OF_RULES + number):.0f}'
                for number, kind in enumerate(LIFECYCLE)
            ]),
            *_family("sluice_integrity_alarms_total", "counter", "Times that data was found missing or damaged.", [
                f"sluice_integrity_alarms_total {self._sum(_ALARMS):.0f}"
            ]),
            *_family("sluice_requests_running", "gauge", "Requests being answered.", [
                f"sluice_requests_running {self._sum(0):.0f}"
            ]),
            *_family("sluice_connections", "gauge", "Open connections.", [f"sluice_connections {self._sum(1):.0f}"]),
        ]  # fmt: skip
        return ("\n".join(lines) + "\n").encode()

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


def _family(name: str, kind: str, description: str, samples: list[str]) -> list[str]:
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}", *samples]
