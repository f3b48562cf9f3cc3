"""What a transfer did, and what it could not take."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

EXAMPLES = 3
"""Keys that are shown for each reason."""


class Report:
    """Counters that all threads add to.

    With a path, each thing not taken is a line of JSON there.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Raise OSError when the file cannot be written."""
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], list[str]] = {}
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._file: IO[str] | None = None if path is None else path.open("w", encoding="utf-8")

    def add(self, name: str, number: int = 1) -> None:
        """Count."""
        with self._lock:
            self.counts[name] += number

    def not_taken(self, what: str, reason: str, key: str = "", version_id: str = "") -> None:
        """Note a version, a part of it or a setting that was not copied."""
        with self._lock:
            self.counts["not_taken"] += 1
            self.reasons[what, reason] += 1
            shown = self.examples.setdefault((what, reason), [])
            if key and len(shown) < EXAMPLES and key not in shown:
                shown.append(key)
            if self._file is not None:
                line = {"what": what, "reason": reason, "key": key, "version_id": version_id}
                self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Write the rest of the file."""
        if self._file is not None:
            self._file.close()

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        names = ("objects", "markers", "bytes", "present", "settings", "not_taken")
        return {
            **{name: self.counts[name] for name in names},
            "seconds": round(time.monotonic() - self._started, 1),
            "reasons": [
                {"what": what, "reason": reason, "count": count, "keys": self.examples[what, reason]}
                for (what, reason), count in self.reasons.most_common()
            ],
        }

    def lines(self) -> list[str]:
        """Return the report for people."""
        found = self.as_json()
        lines = [
            f"{found['objects']} versions with {found['bytes']:,} bytes and {found['markers']} delete markers copied, "
            f"{found['present']} already there, {found['settings']} settings written, in {found['seconds']} s"
        ]
        for reason in found["reasons"]:
            keys = f" (such as {', '.join(map(repr, reason['keys']))})" if reason["keys"] else ""
            lines.append(f"not taken: {reason['count']} of {reason['what']}: {reason['reason']}{keys}")
        return lines
