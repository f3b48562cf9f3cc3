"""The server's power, as the client of the lab asks for it."""

from __future__ import annotations

import time
from pathlib import Path

LAB = Path("/run/lab")
"""What the client shares with the machine that runs both."""
ANSWER_SECONDS = 700.0
POLL_SECONDS = 0.05


def ask(what: str) -> None:
    """Have the server `cut` (and its memory lost), `boot`ed, `freeze`d or `thaw`ed, and wait until it is."""
    number = sum(1 for _ in LAB.glob("request-*"))
    written = LAB / "writing"
    written.write_text(what)
    written.rename(LAB / f"request-{number}")
    answer = LAB / f"answer-{number}"
    deadline = time.monotonic() + ANSWER_SECONDS
    while not answer.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody did it: {what}")
        time.sleep(POLL_SECONDS)


def restart() -> None:
    """Cut the server's power and boot it again."""
    ask("cut")
    ask("boot")
