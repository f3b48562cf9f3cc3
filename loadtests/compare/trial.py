"""One trial of a scenario against a target, by a Locust process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.common.targets import free_port
from sluice_s3.loadtests.compare.plan import SCENARIOS, SelectedScenario
from sluice_s3.loadtests.request_log import merge

ROOT = Path(__file__).parent.parent.parent
SAMPLE_SECONDS = 1.0
LOOK_SECONDS = 0.1
END_SECONDS = 8.0
OK_EXIT_CODES = (0, 1)
"""Locust's exit codes: success, and some requests failed."""


class Interrupted(Exception):
    """The user wants the run to end."""


class TimeUp(Interrupted):
    """The run has used its minutes."""


@dataclass
class TrialResult:
    """The result of a cell.

    `state` is `done`, `failed` or `interrupted`. `file` is relative to the run's directory. `others` are the cores that
    other processes of the machine took meanwhile.
    """

    state: str
    reason: str = ""
    file: str = ""
    rows: int = 0
    errors: int = 0
    started: float = 0.0
    ended: float = 0.0
    load1: tuple[float, float] = (0.0, 0.0)
    others: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LocustJob:
    """One call of Locust. `where` are its arguments for the target, `environment` its keys."""

    run: str
    target: str
    chosen: SelectedScenario
    repeat: int
    epoch: float
    processes: int
    where: Sequence[str]
    environment: Mapping[str, str]

    @property
    def command(self) -> list[str]:
        """Return Locust's arguments except the directory of the rows."""
        users = max(self.chosen.users, self.processes)
        arguments = [sys.executable, "-m", "locust", "-f", str(SCENARIOS[self.chosen.name].file), "--headless"]
        arguments += ["--only-summary", "--reset-stats", "--users", str(users), "--spawn-rate", "1000", "--keep"]
        arguments += master_arguments(self.processes) if self.processes > 1 else []
        arguments += ["--run-name", self.run, "--target-name", self.target, "--scenario-name", self.chosen.name]
        arguments += ["--repeat", str(self.repeat), "--epoch", f"{self.epoch:.6f}"]
        return [*arguments, *self.where, *self.chosen.arguments_list]


def master_arguments(processes: int) -> list[str]:
    """Return arguments for several Locust processes that meet on a free port.

    On the default port, processes of another run on this machine could join in, or take it.
    """
    port = str(free_port())
    bind = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    return ["--processes", str(processes), *bind, "--master-port", port]


def rows_directory(directory: Path, job: LocustJob) -> Path:
    """Return where Locust's processes write their rows while it runs."""
    return directory / "work" / f"{job.target}-{job.chosen.name}-{job.repeat}"


def run_locust(
    job: LocustJob,
    directory: Path,
    *,
    on_start: Callable[[int], None],
    sample: Callable[[], None],
    broken: Callable[[], str],
    check: Callable[[], None],
) -> TrialResult:
    """Run Locust and gather its rows into `directory`.

    `on_start` receives its process. `sample` is called about every second. `broken` returns why there is no use in
    going on, or an empty string. `check` raises Interrupted when the user wants the end; it is passed on, and the rows
    so far are in a partial file.
    """
    parts = rows_directory(directory, job)
    parts.mkdir(parents=True, exist_ok=True)
    for left in parts.iterdir():
        left.unlink()
    log = directory / "logs" / f"{job.target}-{job.repeat}-{job.chosen.name}.log"
    log.parent.mkdir(exist_ok=True)
    outcome = TrialResult("failed", started=time.time(), load1=(os.getloadavg()[0], 0.0))
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*job.command, "--rows", str(parts.absolute())],  # it begins elsewhere
            cwd=ROOT,
            env={**os.environ, **job.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            on_start(process.pid)
            outcome.reason = _watch(process, sample, broken, check)
        except BaseException:
            outcome.state = "interrupted"
            raise
        finally:
            _end(process)
            _finish(outcome, job, parts, directory, process.returncode, log)
    return outcome


def _watch(
    process: subprocess.Popen[bytes],
    sample: Callable[[], None],
    broken: Callable[[], str],
    check: Callable[[], None],
) -> str:
    """Wait until it ends. Return why it was given up, or an empty string."""
    due = time.monotonic() + SAMPLE_SECONDS
    while process.poll() is None:
        time.sleep(LOOK_SECONDS)
        check()
        if time.monotonic() < due:
            continue
        due = time.monotonic() + SAMPLE_SECONDS
        sample()
        reason = broken()
        if reason:
            return reason
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, then kill it and all processes that it started."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _finish(outcome: TrialResult, job: LocustJob, parts: Path, directory: Path, code: int | None, log: Path) -> None:
    outcome.ended = time.time()
    outcome.load1 = (round(outcome.load1[0], 2), round(os.getloadavg()[0], 2))
    with suppress(OSError, ValueError):
        outcome.notes = json.loads((parts / "notes.json").read_text())
    if not outcome.reason:
        with suppress(OSError):
            outcome.reason = (parts / "problem").read_text()
    if not outcome.reason and code not in OK_EXIT_CODES and outcome.state != "interrupted":
        outcome.reason = f"Locust ended with {code}: {_last_line(log)}"
    good = not outcome.reason and outcome.state != "interrupted"
    name = f"{job.chosen.name}-{job.repeat}{'' if good else '.partial'}.csv.gz"
    file = directory / "rows" / job.target / name
    outcome.rows, outcome.errors = merge(parts, file)
    outcome.file = str(file.relative_to(directory))
    if good and not outcome.rows:
        outcome.reason = f"nothing was measured: {_last_line(log)}"
    elif good:
        outcome.state = "done"
        file.with_name(f"{job.chosen.name}-{job.repeat}.partial.csv.gz").unlink(missing_ok=True)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "ERROR" in line or "Error" in line]
    return (telling or lines or [""])[-1][:300]
