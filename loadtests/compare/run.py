"""A run: turns of all targets, round after round, into one directory.

It can be interrupted and resumed.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.compare import outlook
from sluice_s3.loadtests.compare import run_metadata as meta_file
from sluice_s3.loadtests.compare.cold import evictor_of
from sluice_s3.loadtests.compare.live import Progress, RowsTail
from sluice_s3.loadtests.compare.machine import ClockWatch, OthersWatch
from sluice_s3.loadtests.compare.plan import Plan, PlanError, SelectedScenario
from sluice_s3.loadtests.compare.resources import Sampler
from sluice_s3.loadtests.compare.rounds import Judge, Round, Rounds, playable, rounds_of
from sluice_s3.loadtests.compare.targets import (
    RunningTarget,
    Target,
    describe,
    locust_arguments,
    start_target,
    targets_of,
)
from sluice_s3.loadtests.compare.time_budget import FIRST_SECONDS, REPORT_SECONDS, Deadline
from sluice_s3.loadtests.compare.trial import (
    Interrupted,
    LocustJob,
    TimeUp,
    TrialResult,
    rows_directory,
    run_locust,
)
from sluice_s3.loadtests.compare.watch import broken, ending_by_signal, inspect_store, sync
from sluice_s3.loadtests.mounts.fuse_server import MountFailed

Judging = Callable[[Path, Mapping[str, Any]], Judge]
"""Makes the judge of a run, from its directory and its metadata."""


class Run:
    """One run in its directory. `keys` are those of endpoints.

    `judging` makes who says meanwhile which uses are known well enough; without one it goes on for all its minutes.
    `began` is when its time began (monotonic).
    """

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        meta: dict[str, Any],
        keys: Keys,
        progress: Progress,
        judging: Judging | None = None,
        began: float | None = None,
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.meta = meta
        self.targets = targets_of(plan)
        self._judge = judging(directory, meta) if judging is not None else None
        self.rounds = Rounds(plan, self.targets, self._judge, rounds_of(meta))
        self._keys = keys
        self._progress = progress
        self._parent = Path(plan.directory or tempfile.gettempdir()).absolute()
        self._check: Callable[[], None] = lambda: None
        self._clock, self._others = ClockWatch(), OthersWatch()
        self._judging_seconds = self._round_began = 0.0
        began = time.monotonic() if began is None else began
        self.deadline = Deadline(self._seconds(), began)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The cells without a complete result."""
        return [cell for cell in self.meta["cells"] if cell["state"] != "done"]

    def seconds_left(self) -> float:
        """Return the estimated time left, in seconds."""
        estimate = sum(self._estimate(one) for one in self.rounds.past)
        missing = max(0, self.plan.repeats - len(self.rounds.past))
        whole = {one.name: playable(one, list(self.plan.scenarios.values())) for one in self.targets}
        return min(estimate + missing * self.rounds.pace.round(whole), self.deadline.left())

    def go(self) -> None:
        """Run the cells that are missing.

        A signal to end makes the run partial and leaves nothing behind.
        """
        self.meta |= {"state": "running", "reason": "", "targets": [self._describe(one) for one in self.targets]}
        meta_file.write(self.directory, self.meta)
        sampler = Sampler(self.directory / "resources.csv", self.meta["started"])
        try:
            with ending_by_signal() as check:
                self._check = self._timed(check)
                self._judge_past()
                self._finish_past(sampler)
                self._run_rounds(sampler)
            why = self._why() if self.meta["cells"] else "there was no time to measure anything"
            self._close("partial" if why else "complete", why)
        except Interrupted as error:
            self.rounds.why = str(error)
            self._close("partial", str(error))
            self._progress.print_line(f"{error}: what was measured is kept; go on with --resume {self.directory}")
        finally:
            sampler.close()
            shutil.rmtree(self.directory / "work", ignore_errors=True)

    # time

    def _seconds(self) -> float:
        """Return the seconds that it may take: of a resumed run those that are left, or what its last round lacks."""
        left = self.plan.minutes * 60 - float(self.meta.get("took_s", 0.0))
        if not self.plan.minutes or left > 0:
            return left if self.plan.minutes else 0.0
        return REPORT_SECONDS + 2 * sum(self._estimate(one) for one in self.rounds.past)

    def _timed(self, check: Callable[[], None]) -> Callable[[], None]:
        """Return a check that also breaks off what goes on for too long; one cell may end in any case."""

        def timed() -> None:
            check()
            patience = 0.0 if self.meta["cells"] else FIRST_SECONDS
            if self.deadline.is_over(patience):
                raise TimeUp("the time was up")

        return timed

    def _seconds_left(self) -> float:
        """Return the seconds for measuring: the report takes about as long as judging did."""
        return self.deadline.left() - REPORT_SECONDS * max(1.0, self.rounds.pace.slowness / 5) - self._judging_seconds

    # rounds

    def _run_rounds(self, sampler: Sampler) -> None:
        """Play rounds until no more is needed, allowed or possible."""
        try:
            while (found := self.rounds.next(self._seconds_left())) is not None:
                self.meta["rounds"] = [one.as_json() for one in self.rounds.past]
                self._play(found, sampler)
        except TimeUp as error:
            self.rounds.why = "time"
            self._progress.print_line(f"{error}: what was under way is not counted")
        most = max((self.rounds.repeats_of(name) for name in self.plan.scenarios), default=0)
        self.plan = replace(self.plan, repeats=most)
        self.meta["plan"] = self.plan.as_json()

    def _finish_past(self, sampler: Sampler) -> None:
        """Play what is missing of rounds that had begun."""
        for one in self.rounds.past:
            self._play(one, sampler)

    def _play(self, found: Round, sampler: Sampler) -> None:
        """Give each target its turn, as far as the time does."""
        self._round_began = time.monotonic()
        by_name = {one.name: one for one in self.targets}
        for name in found.order:
            pending = self._pending(by_name[name], found)
            if pending:
                self._need_time_for(name, [chosen for chosen, _ in pending])
                self._run_target(by_name[name], found, pending, sampler)

    def _pending(self, target: Target, found: Round) -> list[tuple[SelectedScenario, int]]:
        """Return the scenarios that a target still lacks in a round, with the numbers of their repeats."""
        finished = {
            (cell["target"], cell["scenario"], cell["repeat"]) for cell in self.meta["cells"] if cell["state"] == "done"
        }
        chosen = playable(target, [self.plan.scenarios[name] for name in found.repeats])
        return [
            (one, found.repeats[one.name])
            for one in chosen
            if (target.name, one.name, found.repeats[one.name]) not in finished
        ]

    def _estimate(self, found: Round) -> float:
        """Return the estimated seconds of what a round lacks."""
        lacking = {one.name: [chosen for chosen, _ in self._pending(one, found)] for one in self.targets}
        return self.rounds.pace.round({name: chosen for name, chosen in lacking.items() if chosen})

    def _run_target(
        self, target: Target, found: Round, pending: list[tuple[SelectedScenario, int]], sampler: Sampler
    ) -> None:
        self._check()
        self._progress.show_start(f"{target.name}: getting ready")
        left = list(pending)
        log = self.directory / "logs" / f"{target.name}-{len(self.rounds.past)}-gateway.log"
        log.parent.mkdir(exist_ok=True)
        began, cells = time.monotonic(), 0.0
        try:
            with start_target(target, self.plan, self._keys, self._parent, log) as there:
                entry = next(one for one in self.meta["targets"] if one["name"] == target.name)
                inspect_store(entry, there, sum(chosen.bytes for chosen, _ in pending))
                while left:
                    self._check()
                    if self._fits(left[0][0], target, found):
                        cells += self._run_trial(target, left[0][1], left[0][0], there, sampler)
                    left.pop(0)
            self.rounds.pace.add_turn(target.name, time.monotonic() - began - cells)
        except (S3CallError, MountFailed, OSError, subprocess.SubprocessError) as error:
            reason = str(error) or type(error).__name__
            self._progress.print_line(f"{target.name}: {reason.splitlines()[0]}")
            for chosen, repeat in left:
                self._note(target, repeat, chosen, TrialResult("failed", reason=reason[:2000]))
                self._progress.show_end(chosen.seconds, None, "")

    def _need_time_for(self, target: str, pending: list[SelectedScenario]) -> None:
        """Raise TimeUp where not even the shortest cell of a turn would end in time."""
        pace = self.rounds.pace
        needed = pace.turn(target) + min(pace.cell(target, one) for one in pending)
        if self.plan.minutes and self.meta["cells"] and needed > self._seconds_left():
            raise TimeUp("the time is up")

    def _fits(self, chosen: SelectedScenario, target: Target, found: Round) -> bool:
        """Return whether the time will do for a scenario that is about to be played.

        The first round shows what things cost: what cannot have the repeats of a verdict is left out of it, for later.
        Raises TimeUp where later rounds end.
        """
        if not self.plan.minutes or not self.meta["cells"]:  # without any cell there is but a guess
            return True
        left = self._seconds_left()
        if len(self.rounds.past) > 1:
            if self.rounds.pace.cell(target.name, chosen) > left:
                raise TimeUp("the time is up")
            return True
        began = left + time.monotonic() - self._round_began
        if chosen.name in self.rounds.affordable(list(found.repeats), began, found):
            return True
        del found.repeats[chosen.name]
        self.meta["rounds"] = [one.as_json() for one in self.rounds.past]
        return False

    def _run_trial(
        self, target: Target, repeat: int, chosen: SelectedScenario, there: RunningTarget, sampler: Sampler
    ) -> float:
        """Play one cell, and note its result. Return the seconds that it took with all that belongs to it."""
        began = time.monotonic()
        what = f"{target.name}: {chosen.name} ({self._number(repeat)})"
        self._progress.show_start(what, (target.name, chosen.name, repeat))
        sync(there.path)
        bucket = bucket_name(chosen.name)
        job = LocustJob(
            self.meta["run"], target.name, chosen, repeat, self.meta["started"], self.plan.processes,
            locust_arguments(target, there, bucket),
            there.keys.environment,
        )  # fmt: skip
        try:
            outcome = self._play_cell(job, there, sampler)
        except TimeUp:
            (self.directory / self._interrupted(job).file).unlink(missing_ok=True)
            raise
        except Interrupted:
            self._note(target, repeat, chosen, self._interrupted(job))
            raise
        finally:
            problem = there.sweep(bucket)
            if problem:
                self._progress.print_line(f"{target.name}: the bucket {bucket} could not be removed: {problem}")
        self._note(target, repeat, chosen, outcome)
        self._progress.show_end(chosen.seconds, outcome, what)
        ended = broken(there)()
        if ended:
            raise S3CallError(ended)
        self._judge_cell(self.meta["cells"][-1])
        took = time.monotonic() - began
        self.rounds.pace.add_cell(target.name, chosen, took)
        return took

    def _play_cell(self, job: LocustJob, there: RunningTarget, sampler: Sampler) -> TrialResult:
        """Run Locust, with samples of the machine meanwhile."""
        tail = RowsTail(rows_directory(self.directory, job))

        def on_start(pid: int) -> None:
            actors = {"gateway": there.gateway_pid, "generator": pid, "mount": there.mount_pid}
            sampler.start((job.target, job.chosen.name, job.repeat), actors, there.path)

        def sample() -> None:
            sampler.sample()
            self._clock.look()
            if self._progress.live:
                self._progress.show_live(tail.look())

        cold = evictor_of(there) if self.plan.cold and there.path else None
        self._others.restart()
        outcome: TrialResult | None = None
        try:
            outcome = run_locust(
                job, self.directory, on_start=on_start, sample=sample, broken=broken(there), check=self._check
            )
        finally:
            found = cold.end(self.directory / outcome.file if outcome else None) if cold is not None else None
        outcome.others = round(self._others.cores(), 2)
        if found is not None:
            outcome.notes["cold"] = found.as_json()
        return outcome

    def _number(self, repeat: int) -> str:
        """Return the number of a repeat in words; with minutes nobody knows how many there will be."""
        return f"repeat {repeat}" if self.plan.minutes else f"{repeat} of {self.plan.repeats}"

    def _judge_cell(self, cell: Mapping[str, Any]) -> None:
        """Have the judge read a cell; the time of that is what the report will take at least."""
        if self._judge is not None and cell["state"] == "done":
            began = time.monotonic()
            self._judge.add(cell)
            self._judging_seconds += time.monotonic() - began

    def _judge_past(self) -> None:
        """Have the judge read what was measured before."""
        for cell in self.meta["cells"]:
            self._judge_cell(cell)

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
        took = self.deadline.took() + float(self.meta.get("took_s", 0.0))
        standings = self._judge.standings() if self._judge is not None else []
        cells = [cell for cell in self.meta["cells"] if cell["state"] == "done"]
        self.meta["stop"] = outlook.stop_of(self.plan, self.rounds.why, self.deadline, standings, cells)
        self.meta["clock_steps"] = [*self.meta.get("clock_steps", []), *self._clock.steps]
        self.meta |= {"state": state, "reason": reason, "ended": time.time(), "took_s": round(took, 1)}
        meta_file.write(self.directory, self.meta)
        for line in outlook.sentences(self.meta):
            self._progress.print_line(line)


def bucket_name(scenario: str) -> str:
    """Return a random name of a bucket.

    Runs on other hosts may use the same endpoint.
    """
    return f"sluice-bench-{scenario.replace('_', '-')}-{secrets.token_hex(6)}"


def start_run(
    directory: Path,
    plan: Plan,
    keys: Keys,
    progress: Progress,
    judging: Judging | None = None,
    began: float | None = None,
) -> Run:
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
    return Run(directory, plan, meta_file.new(directory.name, plan), keys, progress, judging, began)


def resume(
    directory: Path,
    keys: Keys,
    progress: Progress,
    judging: Judging | None = None,
    began: float | None = None,
    minutes: float | None = None,
) -> Run:
    """Open an interrupted run, or one that is to be measured for some more minutes. Raises PlanError."""
    meta = meta_file.read(directory)
    plan = Plan.of_json(meta["plan"])
    if minutes is not None:
        plan = replace(plan, minutes=minutes + float(meta.get("took_s", 0.0)) / 60)
    return Run(directory, plan, meta, keys, progress, judging, began)
