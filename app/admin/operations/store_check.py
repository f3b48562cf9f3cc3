"""Runs a check of the stores, a command that changes nothing, in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.index.meta.rows import JOB_STATUS
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.admin")

MAX_OUTPUT = 4 * 1024 * 1024
"""Bytes of the report; a longer one is for the command line."""
MOST_FINDINGS = 20
NOT_RUN = "It could not run; the gateway's log has the reason."
TOO_LONG = "The report is too long to be shown here. Run the command on the host."
NICE = 10


class Check(NamedTuple):
    """A command of `sluice` that prints lines of progress, then its report, as JSON."""

    name: str
    label: str
    description: str
    arguments: tuple[str, ...]
    findings: tuple[str, ...]
    """Lists of its report that name what is wrong."""


CHECKS = (
    Check(
        "fsck",
        "Check of index and stores",
        "Compares the index with the data of all stores, in both directions, and repairs nothing (sluice fsck).",
        ("fsck",),
        ("missing", "short", "miscounted", "overcounted", "newest", "orphans", "unaccounted"),
    ),
    Check(
        "rebuild",
        "Dry run of a rebuild",
        "Reads all data, and reports what a lost index could be rebuilt to (sluice rebuild --dry-run).",
        ("rebuild", "--dry-run"),
        ("damage", "not_restored"),
    ),
)


class StoreCheck:
    """Runs a check in this gateway, at most one at a time."""

    def __init__(self, check: Check, index: Index, settings: Settings) -> None:
        self._check = check
        self._index = index
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self.began = 0
        """Milliseconds since the epoch, 0 while none runs."""
        self.progress: dict[str, Any] = {}
        """The last line of progress of the one that runs."""

    def start(self) -> bool:
        """Start it; return False while one runs."""
        if self._task is not None and not self._task.done():
            return False
        self.began, self.progress = _now_ms(), {}
        self._task = asyncio.create_task(self._run())
        return True

    async def stop(self) -> None:
        """Cancel it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        note: dict[str, Any] = {"began": self.began}
        try:
            note.update(await self._execute())
        except asyncio.CancelledError:
            note["error"] = "It was cancelled."
        except OSError as error:
            logger.error("%s could not be started: %s", self._check.name, error.strerror)
            note["error"] = NOT_RUN
        note["ended"] = _now_ms()
        note["seconds"] = (note["ended"] - self.began) / 1000
        self.began = 0
        try:
            await self._index.set_note(
                f"{JOB_STATUS}{self._check.name}", orjson.dumps({"state": "idle", **note}).decode()
            )
        except DomainError as error:
            logger.warning("%s: its result cannot be written: %s", self._check.name, type(error).__name__)

    async def _execute(self) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sluice_s3.app.cli",
            *self._check.arguments,
            "--json",
            "--progress",
            env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        try:
            report = await self._read_lines(process.stdout)
            if report is None:
                return {"error": TOO_LONG}
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if self._check.findings[0] not in report:
            return {"error": NOT_RUN}
        return {"error": "", "report": _shorten(report, self._check.findings)}

    async def _read_lines(self, stream: asyncio.StreamReader) -> dict[str, Any] | None:
        """Return the last line, which is the report; None for one that is too long. Lines before say how far it is."""
        last: dict[str, Any] = {}
        rest = b""
        while len(rest) <= MAX_OUTPUT and (piece := await stream.read(65_536)):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                last = _parse(line)
                if self._check.findings[0] not in last:
                    self.progress = last or self.progress
        return last if len(rest) <= MAX_OUTPUT else None

    def _environment(self) -> dict[str, str]:
        """Return the environment with what options of the command line gave: no argument shows a password."""
        settings, found = self._settings, dict(os.environ)
        if "config" in settings.options:
            found["SLUICE_CONFIG"] = str(settings.config)
        if "data" in settings.options:
            found["SLUICE_DATA"] = str(settings.data)
        if "index" in settings.options and settings.index is not None:
            found["SLUICE_INDEX"] = settings.index.get_secret_value()
        return found


def _parse(line: bytes) -> dict[str, Any]:
    """Return an object of JSON, an empty one for anything else."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _shorten(report: dict[str, Any], findings: Sequence[str]) -> dict[str, Any]:
    """Return a report with its numbers, and the first of its findings."""
    numbers = {**report, **report.get("counts", {})}
    lists = {name: report.get(name, []) for name in findings}
    return {
        **{name: value for name, value in numbers.items() if isinstance(value, int)},
        "found": {name: len(found) for name, found in lists.items() if found},
        "first": {name: found[:MOST_FINDINGS] for name, found in lists.items() if found},
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
