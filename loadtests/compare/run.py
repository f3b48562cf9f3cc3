"""A run: every target in turn, repeat after repeat, all of it into one directory; it can be interrupted and resumed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from benchmarks.calls import Refused
from benchmarks.targets import Keys
from loadtests.compare import meta as meta_file
from loadtests.compare.cell import Interrupted, Job, Outcome, play
from loadtests.compare.plan import Chosen, Plan, PlanError
from loadtests.compare.resources import Sampler
from loadtests.compare.targets import Open, Target, described, locust_words, ready, targets_of
from loadtests.mounts.serving import MountFailed
from storage_drivers.mountinfo import mount_of
from storage_drivers.probing.probe import measure

SPARE = 1.1
"""Free space that must be there, over what a turn is guessed to write."""
SYNC_SECONDS = 120.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Progress(Protocol):
    """Who shows how far it is."""

    def began(self, what: str) -> None: ...

    def ended(self, seconds: float, outcome: Outcome | None, what: str) -> None: ...

    def said(self, message: str) -> None: ...


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
        self.targets = targets_of(plan)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Cells without a whole result."""
        return [cell for cell in self.meta["cells"] if cell["state"] != "done"]

    def seconds_left(self) -> float:
        """A guess."""
        return sum(chosen.seconds for target, repeat in self._turns() for chosen in self._pending(target, repeat))

    def go(self) -> None:
        """Play what was not played yet. A signal to end makes it partial, with nothing left behind."""
        self.meta |= {"state": "running", "reason": "", "targets": [self._described(one) for one in self.targets]}
        meta_file.write(self.directory, self.meta)
        sampler = Sampler(self.directory / "resources.csv", self.meta["started"])
        try:
            with _ending_by_signal() as self._check:
                for target, repeat in self._turns():
                    pending = self._pending(target, repeat)
                    if pending:
                        self._turn(target, repeat, pending, sampler)
            self._close("complete" if not self.failed else "partial", self._why())
        except Interrupted as error:
            self._close("partial", str(error))
            self._progress.said(f"{error}: what was measured is kept; go on with --resume {self.directory}")
        finally:
            sampler.close()
            shutil.rmtree(self.directory / "work", ignore_errors=True)

    def _turns(self) -> Iterator[tuple[Target, int]]:
        """Who is first changes with every repeat, so that the hour of the day favours nobody."""
        for repeat in range(1, self.plan.repeats + 1):
            at = (repeat - 1) % len(self.targets)
            for target in self.targets[at:] + self.targets[:at]:
                yield target, repeat

    def _pending(self, target: Target, repeat: int) -> list[Chosen]:
        done = {
            (cell["target"], cell["scenario"], cell["repeat"]) for cell in self.meta["cells"] if cell["state"] == "done"
        }
        boto = target.kind == "direct"
        return [
            chosen
            for chosen in self.plan.scenarios.values()
            if (target.name, chosen.name, repeat) not in done and not (boto and chosen.name == "boto3_mixed")
        ]

    def _turn(self, target: Target, repeat: int, pending: list[Chosen], sampler: Sampler) -> None:
        self._check()
        self._progress.began(f"{target.name}: getting ready")
        left = list(pending)
        log = self.directory / "logs" / f"{target.name}-{repeat}-gateway.log"
        log.parent.mkdir(exist_ok=True)
        try:
            with ready(target, self.plan, self._keys, self._parent, log) as there:
                self._look(target, there, pending)
                while left:
                    self._check()
                    self._cell(target, repeat, left[0], there, sampler)
                    left.pop(0)
        except (Refused, MountFailed, OSError, subprocess.SubprocessError) as error:
            reason = str(error) or type(error).__name__
            self._progress.said(f"{target.name}: {reason.splitlines()[0]}")
            for chosen in left:
                self._note(target, repeat, chosen, Outcome("failed", reason=reason[:2000]))
                self._progress.ended(chosen.seconds, None, "")

    def _look(self, target: Target, there: Open, pending: list[Chosen]) -> None:
        """Probe a store before its first turn, and see that there is space. Raises OSError."""
        if there.path is None:
            return
        free = shutil.disk_usage(there.path).free
        needed = int(sum(chosen.bytes for chosen in pending) * SPARE)
        if free < needed:
            raise OSError(f"no space: about {needed / 1e6:,.0f} MB are written, {free / 1e6:,.0f} MB are free")
        entry = next(one for one in self.meta["targets"] if one["name"] == target.name)
        entry |= {"server": there.server, "driver": there.driver or entry["driver"]}
        if entry.get("probe") is None and target.kind == "gateway":
            with suppress(OSError):
                entry["probe"] = measure(there.path).to_json()
        mount = mount_of(there.path)
        entry["mount"] = mount._asdict() | {"driver": mount.driver}

    def _cell(self, target: Target, repeat: int, chosen: Chosen, there: Open, sampler: Sampler) -> None:
        what = f"{target.name}: {chosen.name} ({repeat} of {self.plan.repeats})"
        self._progress.began(what)
        _sync(there.path)
        bucket = f"sluice-bench-{chosen.name.replace('_', '-')}-{os.getpid()}"
        job = Job(
            self.meta["run"], target.name, chosen, repeat, self.meta["started"], self.plan.processes,
            locust_words(target, there, bucket),
            {"AWS_ACCESS_KEY_ID": there.keys.access_key, "AWS_SECRET_ACCESS_KEY": there.keys.secret_key},
        )  # fmt: skip

        def begun(pid: int) -> None:
            actors = {"gateway": there.gateway_pid, "generator": pid, "mount": there.mount_pid}
            sampler.begin((target.name, chosen.name, repeat), actors, there.path)

        outcome = None
        try:
            outcome = play(
                job, self.directory, begun=begun, sample=sampler.sample, broken=_broken(there), check=self._check
            )
        except Interrupted:
            self._note(target, repeat, chosen, self._interrupted(job))
            raise
        finally:
            problem = there.sweep(bucket)
            if problem:
                self._progress.said(f"{target.name}: the bucket {bucket} could not be removed: {problem}")
        self._note(target, repeat, chosen, outcome)
        self._progress.ended(chosen.seconds, outcome, what)
        gone = _broken(there)()
        if gone:
            raise Refused(gone)

    def _interrupted(self, job: Job) -> Outcome:
        file = Path("rows") / job.target / f"{job.chosen.name}-{job.repeat}.partial.csv.gz"
        return Outcome("interrupted", reason="interrupted", file=str(file), ended=time.time())

    def _note(self, target: Target, repeat: int, chosen: Chosen, outcome: Outcome) -> None:
        name = {"target": target.name, "scenario": chosen.name, "repeat": repeat}
        others = [cell for cell in self.meta["cells"] if {key: cell[key] for key in name} != name]
        self.meta["cells"] = [*others, name | asdict(outcome)]
        meta_file.write(self.directory, self.meta)

    def _described(self, target: Target) -> dict[str, object]:
        before = [one for one in self.meta["targets"] if one["name"] == target.name]
        return before[0] if before else described(target, {"probe": None, "mount": None})

    def _why(self) -> str:
        reasons = dict.fromkeys(f"{cell['target']}: {cell['reason']}" for cell in self.failed)
        return "; ".join(reasons)[:1000]

    def _close(self, state: str, reason: str) -> None:
        self.meta |= {"state": state, "reason": reason, "ended": time.time()}
        meta_file.write(self.directory, self.meta)


def _broken(there: Open) -> Callable[[], str]:
    """Says when a process that everything depends on is gone."""

    def look() -> str:
        for what, pid in (("gateway", there.gateway_pid), ("mount's process", there.mount_pid)):
            if pid and not _runs(pid):
                return f"the {what} ended"
        return ""

    return look


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _sync(path: Path | None) -> None:
    """What was written before is out of the way."""
    if path is not None:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["sync", "-f", str(path)], check=False, timeout=SYNC_SECONDS)


@contextmanager
def _ending_by_signal() -> Iterator[Callable[[], None]]:
    """A function that raises Interrupted after a signal to end: it is called where nothing is half made. Who sends a
    second signal does not want to wait: it is raised at once."""
    asked: list[str] = []

    def handle(number: int, _: object) -> None:
        asked.append(f"interrupted by {signal.Signals(number).name}")
        if len(asked) == 2:
            raise Interrupted(asked[0])

    def check() -> None:
        if len(asked) == 1:
            raise Interrupted(asked[0])

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def begin(directory: Path, plan: Plan, keys: Keys, progress: Progress) -> Run:
    """A new run. Raises PlanError when something that was asked for is wrong, before anything is made."""
    targets_of(plan)
    if (directory / "meta.json").exists():
        raise PlanError(f"{directory} is a run already: go on with --resume, or take another name")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"{directory}: {error.strerror}") from error
    return Run(directory, plan, meta_file.new(directory.name, plan), keys, progress)


def resume(directory: Path, keys: Keys, progress: Progress) -> Run:
    """A run that was interrupted. Raises PlanError."""
    meta = meta_file.read(directory)
    return Run(directory, Plan.of_json(meta["plan"]), meta, keys, progress)
