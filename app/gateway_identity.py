"""What a process says of the gateway that it belongs to."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from sluice_s3.app import __version__

START_FIELD = 19
"""Place of the start time among the fields of /proc/PID/stat behind the name of the program (proc(5))."""


def describe_gateway(addresses: Mapping[str, str]) -> dict[str, object]:
    """Return id, host, version, URLs and start (milliseconds) of this gateway, which is this process's parent."""
    launcher, host = os.getppid(), socket.gethostname()
    return {
        "gateway": f"{host}:{launcher}",
        "host": host,
        "version": __version__,
        "since": _start_of(launcher),
        "urls": dict(addresses),
    }


def _start_of(pid: int) -> int:
    """Return when a process started, 0 if that cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[START_FIELD]) / os.sysconf("SC_CLK_TCK")
    return int((time.time() - age) * 1000)
