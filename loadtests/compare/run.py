"""A run: every target in turn, repeat after repeat, into one directory.

It can be interrupted and resumed.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.compare import run_metadata as meta_file
from sluice_s3.loadtests.compare.live import LiveFigures, RowsTail
from sluice_s3.loadtests.compare.plan import Plan, PlanError, SelectedScenario
from sluice_s3.loadtests.compare.resources import Sampler
from sluice_s3.loadtests.compare.targets import (
    RunningTarget,
    Target,
    describe,
    locust_arguments,
    start_target,
    targets_of,
)
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, TURN_SECONDS
from sluice_s3.loadtests.compare.trial import Interrupted, LocustJob, TrialResult, rows_directory, run_locust
from sluice_s3.loadtests.mounts.fuse_server import MountFailed
from sluice_s3.storage_drivers.mountinfo import mount_of
from sluice_s3.storage_drivers.probing.probe import measure

SPARE = 1.1
"""Free space that must be left beyond the estimated bytes of a turn."""
SYNC_SECONDS = 120.0
LEAST_FREE_BYTES, LEAST_FREE_SHARE = 128 * 1024 * 1024, 0.02
"""With less space left, whichever is less, what is measured is given up."""
TIME_TOLERANCE = 1.1
"""A run with `minutes` may take so many times longer, if it has enough repeats for a verdict."""
LATEST, LATEST_SECONDS = 1.5, 60.0
"""And it is ended, within a repeat, after so many times its minutes and so many seconds."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Progress(Protocol):
    """Shows the progress of a run. `live`: whether it wants the figures of each second."""

    live: bool

    def show_start(self, what: str, cell: tuple[str, str, int] | None = None) -> None:
        """Show that a step began, perhaps of a cell: target, scenario, repeat."""
        ...

    def show_live(self, figures: LiveFigures) -> None:
        """Show the requests of the last second."""
        ...

    def show_end(self, seconds: float, outcome: TrialResult | None, what: str) -> None:
        """Show that a cell ended."""
        ...

    def print_line(self, message: str) -> None:
        """Print one line."""
        ...


class Run:
    """One run in its directory. `keys` are those of endpoints."""

    def __init__(self, directory: Path, plan: Plan, meta: dict[str, Any], keys: Keys, progress: Progress) -> None:
        self.directory = directory
        self.plan = plan
        self.meta = meta
        self._keys = keys
        self._progress = progress
        self._parent = Path(plan.directory or tempfile.gettempdir()).absolute()
        self._check: Callable[[], None] = lambda: None
        self._slowest_repeat = 0.0
        self.targets = targets_of(plan)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The cells without a complete result."""
        return [cell for cell in self.meta["cells"] if cell["state"] != "done"]

    def seconds_left(self) -> float:
        """Return the estimated time left, in seconds."""
        turns = [pending for turn in self._trials_in_order() if (pending := self._pending(*turn))]
        return sum(TURN_SECONDS + sum(chosen.seconds for chosen in pending) for pending in turns)

    def go(self) -> None:
        """Run the cells that are missing.

        A signal to end makes the run partial and leaves nothing behind.
        """
        self.meta |= {"state": "running", "reason": "", "targets": [self._describe(one) for one in self.targets]}
        meta_file.write(self.directory, self.meta)
        sampler = Sampler(self.directory / "resources.csv", self.meta["started"])
        try:
            with _ending_by_signal() as ended_by_signal:
                self._check = self._timed(ended_by_signal)
                self._run_repeats(sampler, time.monotonic())
            self._close("complete" if not self.failed else "partial", self._why())
        except Interrupted as error:
            self._close("partial", str(error))
            self._progress.print_line(f"{error}: what was measured is kept; go on with --resume {self.directory}")
        finally:
            sampler.close()
            shutil.rmtree(self.directory / "work", ignore_errors=True)

    def _run_repeats(self, sampler: Sampler, began: float) -> None:
        """Run all turns; with `minutes`, no repeat is begun for which the time would not do."""
        repeat, since = 1, began
        for target, number in self._trials_in_order():
            if number != repeat:
                now = time.monotonic()
                self._slowest_repeat = max(self._slowest_repeat, now - since)
                if self.plan.minutes and now + self._slowest_repeat > began + self._time_for(repeat):
                    self._progress.print_line(f"the time is up: {repeat} of {self.plan.repeats} repeats were measured")
                    self.plan = replace(self.plan, repeats=repeat)
                    self.meta["plan"] = self.plan.as_json()
                    return
                repeat, since = number, now
            pending = self._pending(target, number)
            if pending:
                self._run_target(target, number, pending, sampler)

    def _time_for(self, repeats: int) -> float:
        """Return the seconds that a run may take after so many repeats: too few are of no use."""
        minutes = self.plan.minutes * 60
        return minutes * TIME_TOLERANCE if repeats >= LEAST_REPEATS else minutes * LATEST + LATEST_SECONDS

    def _timed(self, check: Callable[[], None]) -> Callable[[], None]:
        """Return a check that also ends a run that takes much longer than its minutes."""
        latest = time.monotonic() + self.plan.minutes * 60 * LATEST + LATEST_SECONDS

        def timed() -> None:
            check()
            if self.plan.minutes and time.monotonic() > latest:
                raise Interrupted(f"it took far more than its {self.plan.minutes:g} minutes")

        return timed

    def _trials_in_order(self) -> Iterator[tuple[Target, int]]:
        """Yield the turns in their order.

        The first target changes with every repeat, so that the time of day favours none.
        """
        for repeat in range(1, self.plan.repeats + 1):
            at = (repeat - 1) % len(self.targets)
            for target in self.targets[at:] + self.targets[:at]:
                yield target, repeat

    def _pending(self, target: Target, repeat: int) -> list[SelectedScenario]:
        finished = {
            (cell["target"], cell["scenario"], cell["repeat"]) for cell in self.meta["cells"] if cell["state"] == "done"
        }
        boto = target.kind == "direct"
        return [
            chosen
            for chosen in self.plan.scenarios.values()
            if (target.name, chosen.name, repeat) not in finished and not (boto and chosen.name == "boto3_mixed")
        ]

    def _run_target(self, target: Target, repeat: int, pending: list[SelectedScenario], sampler: Sampler) -> None:
        self._check()
        self._progress.show_start(f"{target.name}: getting ready")
        left = list(pending)
        log = self.directory / "logs" / f"{target.name}-{repeat}-gateway.log"
        log.parent.mkdir(exist_ok=True)
        try:
            with start_target(target, self.plan, self._keys, self._parent, log) as there:
                self._inspect_store(target, there, pending)
                while left:
                    self._check()
                    self._run_trial(target, repeat, left[0], there, sampler)
                    left.pop(0)
        except (S3CallError, MountFailed, OSError, subprocess.SubprocessError) as error:
            reason = str(error) or type(error).__name__
            self._progress.print_line(f"{target.name}: {reason.splitlines()[0]}")
            for chosen in left:
                self._note(target, repeat, chosen, TrialResult("failed", reason=reason[:2000]))
                self._progress.show_end(chosen.seconds, None, "")

    def _inspect_store(self, target: Target, there: RunningTarget, pending: list[SelectedScenario]) -> None:
        """Probe a store before its first turn and check its free space. Raises OSError."""
        if there.path is None:
            return
        total, _, free = shutil.disk_usage(there.path)
        needed = int(sum(chosen.bytes for chosen in pending) * SPARE)
        if free < needed:
            raise OSError(f"no space: about {needed / 1e6:,.0f} MB are written, {free / 1e6:,.0f} MB are free")
        entry = next(one for one in self.meta["targets"] if one["name"] == target.name)
        entry |= {"server": there.server, "driver": there.driver or entry["driver"]}
        entry.setdefault("space", {"total": total, "free": free})
        if entry.get("probe") is None and target.kind == "gateway":
            with suppress(OSError):
                entry["probe"] = measure(there.path).to_json()
        mount = mount_of(there.path)
        entry["mount"] = mount._asdict() | {"driver": mount.driver}

    def _run_trial(
        self, target: Target, repeat: int, chosen: SelectedScenario, there: RunningTarget, sampler: Sampler
    ) -> None:
        what = f"{target.name}: {chosen.name} ({repeat} of {self.plan.repeats})"
        self._progress.show_start(what, (target.name, chosen.name, repeat))
        _sync(there.path)
        bucket = bucket_name(chosen.name)
        job = LocustJob(
            self.meta["run"], target.name, chosen, repeat, self.meta["started"], self.plan.processes,
            locust_arguments(target, there, bucket),
            {"AWS_ACCESS_KEY_ID": there.keys.access_key, "AWS_SECRET_ACCESS_KEY": there.keys.secret_key},
        )  # fmt: skip

        def on_start(pid: int) -> None:
            actors = {"gateway": there.gateway_pid, "generator": pid, "mount": there.mount_pid}
            sampler.start((target.name, chosen.name, repeat), actors, there.path)

        tail = RowsTail(rows_directory(self.directory, job))

        def sample() -> None:
            sampler.sample()
            if self._progress.live:
                self._progress.show_live(tail.look())

        outcome = None
        try:
            outcome = run_locust(
                job, self.directory, on_start=on_start, sample=sample, broken=_broken(there), check=self._check
            )
        except Interrupted:
            self._note(target, repeat, chosen, self._interrupted(job))
            raise
        finally:
            problem = there.sweep(bucket)
            if problem:
                self._progress.print_line(f"{target.name}: the bucket {bucket} could not be removed: {problem}")
        self._note(target, repeat, chosen, outcome)
        self._progress.show_end(chosen.seconds, outcome, what)
        broken = _broken(there)()
        if broken:
            raise S3CallError(broken)

    def _interrupted(self, job: LocustJob) -> TrialResult:
        file = Path("rows") / job.target / f"{job.chosen.name}-{job.repeat}.partial.csv.gz"
        return TrialResult("interrupted", reason="interrupted", file=str(file), ended=time.time())

    def _note(self, target: Target, repeat: int, chosen: SelectedScenario, outcome: TrialResult) -> None:
        name = {"target": target.name, "scenario": chosen.name, "repeat": repeat}
        other_cells = [cell for cell in self.meta["cells"] if {key: cell[key] for key in name} != name]
        self.meta["cells"] = [*other_cells, name | asdict(outcome)]
        meta_file.write(self.directory, self.meta)

    def _describe(self, target: Target) -> dict[str, object]:
        before = [one for one in self.meta["targets"] if one["name"] == target.name]
        return before[0] if before else describe(target, {"probe": None, "mount": None})

    def _why(self) -> str:
        reasons = dict.fromkeys(f"{cell['target']}: {cell['reason']}" for cell in self.failed)
        return "; ".join(reasons)[:1000]

    def _close(self, state: str, reason: str) -> None:
        self.meta |= {"state": state, "reason": reason, "ended": time.time()}
        meta_file.write(self.directory, self.meta)


def bucket_name(scenario: str) -> str:
    """Return a random name of a bucket.

    Runs on other hosts may use the same endpoint.
    """
    return f"sluice-bench-{scenario.replace('_', '-')}-{secrets.token_hex(6)}"


def _broken(there: RunningTarget) -> Callable[[], str]:
    """Return a check that reports when a required process, or the space, is gone."""

    def look() -> str:
        for what, pid in (("gateway", there.gateway_pid), ("mount's process", there.mount_pid)):
            if pid and not _runs(pid):
                return f"the {what} ended"
        if there.path is not None and _is_full(there.path):
            return "its file system is almost full"
        return ""

    return look


def _is_full(path: Path) -> bool:
    """Return whether others who use the same file system would soon find no space."""
    try:
        space = shutil.disk_usage(path)
    except OSError:
        return False
    return space.free < min(LEAST_FREE_BYTES, space.total * LEAST_FREE_SHARE)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _sync(path: Path | None) -> None:
    """Sync, so that earlier writes do not disturb the next cell."""
    if path is not None:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["sync", "-f", str(path)], check=False, timeout=SYNC_SECONDS)


@contextmanager
def _ending_by_signal() -> Iterator[Callable[[], None]]:
    """Return a function that raises Interrupted after a signal to end.

    It is called only where nothing is half created. A second signal raises at once.
    """
    signals: list[str] = []

    def handle(number: int, _: object) -> None:
        signals.append(f"interrupted by {signal.Signals(number).name}")
        if len(signals) == 2:
            raise Interrupted(signals[0])

    def check() -> None:
        if len(signals) == 1:
            raise Interrupted(signals[0])

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def start_run(directory: Path, plan: Plan, keys: Keys, progress: Progress) -> Run:
    """Create a run.

    Raises PlanError for an invalid request, before anything is created.
    """
    targets_of(plan)
    if (directory / "meta.json").exists():
        raise PlanError(f"{directory} is a run already: go on with --resume, or take another name")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"{directory}: {error.strerror}") from error
    return Run(directory, plan, meta_file.new(directory.name, plan), keys, progress)


def resume(directory: Path, keys: Keys, progress: Progress) -> Run:
    """Open an interrupted run. Raises PlanError."""
    meta = meta_file.read(directory)
    return Run(directory, Plan.of_json(meta["plan"]), meta, keys, progress)
