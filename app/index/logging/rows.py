"""Lines of access logs that wait to become objects."""

from __future__ import annotations

from typing import NamedTuple


class Lines(NamedTuple):
    """Log lines that a process collected for a bucket over a while.

    Each line ends with a newline. `at` is in milliseconds since the epoch.
    """

    id: int
    at: int
    lines: str


class Waiting(NamedTuple):
    """A bucket with waiting log lines.

    `oldest` is in milliseconds since the epoch.
    """

    bucket_id: int
    bucket: str
    oldest: int
