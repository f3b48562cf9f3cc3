"""Calls of `sluice bench` that answer soon: its scenarios, what a run would do, two runs compared.

The gateway never imports the load tests: it calls their command.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

INSTALL = "pip install 'sluice-s3[loadtest]'"
NEEDED = ("locust", "jinja2")
SLUICE = (sys.executable, "-m", "sluice_s3.app.cli")
MAX_ANSWER_BYTES = 16 * 1024 * 1024
TIMEOUT_SECONDS = 60.0
FRESH_SECONDS = 5.0


class BenchError(Exception):
    """The command failed; the message is what it said, for the operator."""


def is_installed() -> bool:
    """Return whether the extra `loadtest` is installed."""
    return all(find_spec(name) is not None for name in NEEDED)


def clean_environment() -> dict[str, str]:
    """Return the environment without settings: those of this gateway are not those of one that is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "MINIO_"))}


class Bench:
    """The command `sluice bench`. `command` is how `sluice` is called."""

    def __init__(self, command: Sequence[str] = SLUICE) -> None:
        self.command = (*command, "bench")
        self._turn = asyncio.Lock()
        self._scenarios: list[dict[str, Any]] = []
        self._previewed: tuple[float, Sequence[str], dict[str, Any]] = (-math.inf, (), {})

    async def scenarios(self) -> list[dict[str, Any]]:
        """Return the scenarios. They are asked for once. Raises BenchError."""
        if not self._scenarios:
            self._scenarios = [json.loads(line) for line in (await self._call("scenarios", "--json")).splitlines()]
        return self._scenarios

    async def preview(self, arguments: Sequence[str], max_age: float = FRESH_SECONDS) -> dict[str, Any]:
        """Return what a run with these arguments would do, or would have, `max_age` seconds ago. Raises BenchError."""
        at, before, found = self._previewed
        if before != arguments or time.monotonic() - at > max_age:
            found = json.loads(await self._call(*arguments, "--dry-run", "--json"))
            self._previewed = time.monotonic(), arguments, found
        return found

    async def compare(self, a: str, b: str) -> Mapping[str, Any]:
        """Return how the run of directory `b` differs from that of `a`. Raises BenchError."""
        found: Mapping[str, Any] = json.loads(await self._call("compare", a, b, "--json"))
        return found

    async def _call(self, *arguments: str) -> bytes:
        """Run it, one at a time, and return what it printed."""
        async with self._turn:
            process = await asyncio.create_subprocess_exec(
                *self.command, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, env=clean_environment(), start_new_session=True,
            )  # fmt: skip
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    printed, errors = await process.communicate()
            except TimeoutError:
                raise BenchError(f"sluice bench did not answer within {TIMEOUT_SECONDS:g} s") from None
            finally:
                if process.returncode is None:
                    process.kill()
        if process.returncode or len(printed) > MAX_ANSWER_BYTES:
            raise BenchError(last_line(errors.decode(errors="replace")) or f"it ended with {process.returncode}")
        return printed


def last_line(text: str) -> str:
    """Return the last line that says something, without the command's name."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("sluice: ")[:500] if lines else ""
