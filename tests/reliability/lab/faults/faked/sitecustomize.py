"""Makes `time.sleep` work under libfaketime, which spoils absolute sleeps on the monotonic clock that it is to leave.

Python finds it by PYTHONPATH in a gateway whose clock jumps, and nowhere else.
"""

from __future__ import annotations

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
