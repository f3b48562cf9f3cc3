"""What gateway, generator, mount and device used during the rows of a cell."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FULL = 0.85
"""A generator process that is busier than this may limit the figures."""


@dataclass
class Usage:
    """One actor over all repeats of a target's scenario.

    CPU in seconds, sizes in bytes. `seconds` is how long it was sampled, `span` how long requests were sent. `share` is
    how busy one of the generator's working processes was in the busiest repeat (1: all the time).
    """

    target: str
    scenario: str
    who: str
    seconds: float = 0.0
    cpu: float = 0.0
    peak_cpu: float = 0.0
    peak_rss: int = 0
    read: int | None = None
    written: int | None = None
    share: float = 0.0
    span: float = 0.0

    @property
    def cores(self) -> float:
        """Cores that were busy on average."""
        return self.cpu / self.seconds if self.seconds else 0.0


@dataclass
class _Repeat:
    cpu: float = 0.0
    seconds: float = 0.0


Spans = Mapping[tuple[str, str, int], tuple[float, float]]
"""(target, scenario, repeat) → when its rows begin and end, in seconds since the run began."""


def usages(file: Path, spans: Spans) -> list[Usage]:
    """Read usages from `resources.csv`.

    A sample counts when the middle of its interval lies within the rows of its cell, so that a generator's start does
    not count. A missing file yields nothing; lines that are cut off are skipped.
    """
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            return summed(csv.DictReader(lines), spans)
    except FileNotFoundError:
        return []


def summed(samples: Iterable[Mapping[str, Any]], spans: Spans) -> list[Usage]:
    """Sum up usages, as `usages`, from lines."""
    found: dict[tuple[str, str, str], Usage] = {}
    busy: dict[tuple[str, str, int], _Repeat] = {}
    for line in samples:
        try:
            cell = (line["target"], line["scenario"], int(line["repeat"]))
            interval = float(line["interval_s"])
            middle = float(line["time"]) - interval / 2
            workers = _workers(int(line["processes"] or 0))
        except (TypeError, ValueError):
            continue
        if cell not in spans or not spans[cell][0] <= middle <= spans[cell][1]:
            continue
        who = line["who"]
        usage = found.setdefault((*cell[:2], who), Usage(*cell[:2], who))
        _add(usage, line, interval)
        if who == "generator" and line["cpu"]:
            repeat = busy.setdefault(cell, _Repeat())
            repeat.cpu += float(line["cpu"]) * interval / workers
            repeat.seconds += interval
    for cell, repeat in busy.items():
        usage = found[*cell[:2], "generator"]
        usage.share = max(usage.share, repeat.cpu / repeat.seconds)
    for usage in found.values():
        own = [span for cell, span in spans.items() if cell[:2] == (usage.target, usage.scenario)]
        usage.span = sum(end - begin for begin, end in own)
    return list(found.values())


def _add(usage: Usage, line: Mapping[str, Any], interval: float) -> None:
    usage.seconds += interval
    cores = float(line["cpu"] or 0)
    usage.cpu += cores * interval
    usage.peak_cpu = max(usage.peak_cpu, cores)
    usage.peak_rss = max(usage.peak_rss, int(line["rss_bytes"] or 0))
    if line["read_bytes"]:
        usage.read = (usage.read or 0) + int(line["read_bytes"])
    if line["written_bytes"]:
        usage.written = (usage.written or 0) + int(line["written_bytes"])


def _workers(processes: int) -> int:
    """Return the number of generator processes that send requests.

    If there are several processes, one only leads them.
    """
    return max(1, processes - 1) if processes > 1 else 1
