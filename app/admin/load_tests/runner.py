"""The load tests of this gateway: starts them, one at a time, follows them, and keeps what they found."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sluice_s3.app.admin.load_tests.bench import FRESH_SECONDS, Bench, clean_environment, is_installed
from sluice_s3.app.admin.load_tests.history import History, Note
from sluice_s3.app.admin.load_tests.models import ComparisonOut, LoadTestIn, OthersOut, PreviewOut
from sluice_s3.app.admin.load_tests.planning import bench_options, make_preview
from sluice_s3.app.admin.load_tests.progress import MAX_LINE_BYTES, Progress
from sluice_s3.app.admin.load_tests.supervisor import LOCKED, SCRATCH, Job
from sluice_s3.app.admin.load_tests.targets import Target, arguments, targets_of
from sluice_s3.app.admin.load_tests.traffic import Mean, Traffic
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.admin")

LOOK_SECONDS = 2.0
"""How often it looks at the traffic of others, and at the space for results."""
LEAST_FREE_BYTES = 256 * 1024 * 1024
"""With less space where results are kept, no run begins, and one that runs is ended."""
END_GRACE_SECONDS = 60.0
"""Seconds that a run that is asked to end may take: it ends its requests, unmounts, and writes the report."""
MAX_SWEEP_PAUSE_SECONDS = 300.0
STOP_SECONDS = 3.0
"""Seconds that the end of the gateway waits for that. The run's own process goes on without it."""


class Refused(Exception):
    """A load test cannot begin; the message says why, and what helps."""


class LoadTests:
    """The load tests of this process."""

    def __init__(self, settings: Settings, traffic: Traffic, bench: Bench | None = None) -> None:
        self._settings = settings
        self.bench = bench or Bench()
        self.traffic = traffic
        self.history = History(settings.home.absolute(), settings.bench_history)
        self.progress: Progress | None = None
        self.comparisons: dict[tuple[str, str], ComparisonOut] = {}
        """Comparisons of the history that were asked for last: each costs a second."""
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._sweep: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    @property
    def running(self) -> Progress | None:
        """The load test that runs."""
        return self.progress if self.progress is not None and self.progress.state.state == "running" else None

    def targets(self) -> dict[str, Target]:
        """Return all targets by name."""
        return targets_of(self._settings)

    def start(self) -> None:
        """Clean up, in the background, after load tests of a gateway that was killed."""
        self._sweep = asyncio.create_task(self._sweep_killed())

    async def close(self) -> None:
        """Ask the load test that runs to end. It does so in its own time."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._process is not None and self._process.returncode is None:
            self._signal(signal.SIGTERM)
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=STOP_SECONDS)
            self._task.cancel()
        await asyncio.gather(*filter(None, (self._sweep, self._task)), return_exceptions=True)

    async def preview(self, asked: LoadTestIn, max_age: float = FRESH_SECONDS) -> PreviewOut:
        """Return what a load test would do, as of `max_age` seconds ago at most. Raises Refused, BenchError."""
        chosen = await self._chosen(asked)
        places = {name: one.directory for name, one in chosen.items()}
        found = await self.bench.preview(_arguments(asked, chosen, places), max_age)
        return make_preview(found, chosen)

    async def begin(self, asked: LoadTestIn, by: str) -> Note:
        """Start a load test for who asks by this ARN. Raises Refused, BenchError."""
        async with self._starting:
            if self.running is not None:
                raise Refused("A load test is running. Wait for its end, or cancel it.")
            preview = await self.preview(asked, 0)
            if preview.problems:
                raise Refused(" ".join(preview.problems))
            await asyncio.to_thread(self.history.directory.mkdir, mode=0o700, parents=True, exist_ok=True)
            if await asyncio.to_thread(self.history.free) < LEAST_FREE_BYTES:
                raise Refused("There is too little space left for results. Remove old load tests, or other files.")
            return await self._launch(asked, by, preview)

    async def cancel(self) -> None:
        """Ask the load test that runs to end with a report of what there is."""
        if self.running is not None:
            self.running.state.phase = "ending"
            self.running.notify()
            self._signal(signal.SIGTERM)

    async def _chosen(self, asked: LoadTestIn) -> dict[str, Target]:
        if not is_installed():
            raise Refused("Load tests are not installed here.")
        known = self.targets()
        names = {one["name"] for one in await self.bench.scenarios()}
        for name in asked.targets:
            if name not in known:
                raise Refused(
                    f"There is no target {name}. Choose configured stores, or what SLUICE_BENCH_TARGETS lists."
                )
            if known[name].problem:
                raise Refused(f"{name}: {known[name].problem}.")
        for name in asked.scenarios:
            if name not in names:
                raise Refused(f"There is no scenario {name}.")
        if len(set(asked.targets)) < len(asked.targets) or len(set(asked.scenarios)) < len(asked.scenarios):
            raise Refused("Name each target and each scenario once.")
        return {name: known[name] for name in asked.targets}

    async def _launch(self, asked: LoadTestIn, by: str, preview: PreviewOut) -> Note:
        chosen = {name: self.targets()[name] for name in asked.targets}
        run = self.history.new_id()
        places = {name: target.scratch(run) for name, target in chosen.items()}
        local = self._settings.run_dir.absolute() / f"{SCRATCH}{run}"
        scratch = [str(path) for path in (*places.values(), local) if path is not None]
        note = Note(
            id=run, state="running", started=int(time.time() * 1000), minutes=asked.minutes, targets=asked.targets,
            scenarios=asked.scenarios, repeats=preview.repeats, direct=asked.direct, durability=asked.durability, by=by,
            others=OthersOut(before=round(await self.traffic.current(), 1)), scratch=scratch,
        )  # fmt: skip
        await asyncio.to_thread(self._prepare, note)
        options = ["--json", "--results", str(self.history.directory), "--name", run, "--directory", str(local)]
        command = [*self.bench.command, *_arguments(asked, chosen, places), *options]
        per_turn = sum(1 if one.directory is None else 1 + asked.direct for one in chosen.values())
        self.progress = Progress(
            run, preview.repeats, preview.repeats * per_turn * len(asked.scenarios), preview.seconds
        )
        self._process = await self._spawn(run, command, scratch, new=True)
        self._task = asyncio.create_task(self._follow(note, self.progress, self._process))
        return note

    async def _spawn(
        self, run: str, command: list[str], scratch: list[str], *, new: bool
    ) -> asyncio.subprocess.Process:
        lock = str(self.history.lock)
        job = Job(run, command, scratch, lock, os.getpid(), END_GRACE_SECONDS, new)
        return await asyncio.create_subprocess_exec(
            *job.argv(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env=clean_environment(), start_new_session=True, limit=MAX_LINE_BYTES,
        )  # fmt: skip

    async def _follow(self, note: Note, progress: Progress, process: asyncio.subprocess.Process) -> None:
        """Read what the run prints until it ends, then keep its result."""
        others = Mean()
        watch = asyncio.create_task(self._watch(progress, others))
        try:
            await _read_lines(process, progress)
            code = await process.wait()
        finally:
            watch.cancel()
        if code == LOCKED:
            progress.messages.append("another load test is still cleaning up: try again in a minute")
        state = progress.verdict if progress.verdict in ("complete", "partial") else "failed"
        note = note.model_copy(update={
            "state": state, "ended": int(time.time() * 1000), "headline": progress.headline,
            "repeats": progress.state.repeats,
            "reason": "" if state == "complete" else self._reason(progress),
            "others": OthersOut(before=note.others.before, mean=round(others.mean, 1), most=round(others.most, 1)),
        })  # fmt: skip
        await asyncio.to_thread(self._keep, note)
        progress.end(state)
        logger.info("load test %s: %s", note.id, state)

    def _prepare(self, note: Note) -> None:
        self._settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.history.write(note)

    def _keep(self, note: Note) -> None:
        note.bytes = self.history.size(note.id)
        self.history.write(note)
        self.history.trim()

    def _reason(self, progress: Progress) -> str:
        if progress.state.phase == "ending":
            return "cancelled"
        if progress.reason:
            return progress.reason
        return progress.messages[-1] if progress.messages else "it ended without a word"

    async def _watch(self, progress: Progress, others: Mean) -> None:
        """Look at the traffic of others, and end a run for whose results there is no space any more."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            progress.state.others_per_second = round(self.traffic.look(), 1)
            others.add(progress.state.others_per_second)
            with suppress(OSError):
                if await asyncio.to_thread(self.history.free) < LEAST_FREE_BYTES and progress.state.phase != "ending":
                    progress.messages.append("there is too little space left for results")
                    self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _sweep_killed(self) -> None:
        """Remove what load tests left that were killed with their gateway, and write the reports of what they have."""
        pause = LOOK_SECONDS
        try:
            while left := [note for note in await asyncio.to_thread(self.history.all) if self._is_orphan(note)]:
                for note in left:
                    await self._sweep_one(note)
                await asyncio.sleep(pause)  # one that still ends, or is another gateway's, is looked at again
                pause = min(2 * pause, MAX_SWEEP_PAUSE_SECONDS)
        except OSError as error:
            logger.warning("what load tests left cannot be removed: %s", error.strerror)

    def _is_orphan(self, note: Note) -> bool:
        return note.state == "running" and (self.progress is None or note.id != self.progress.state.id)

    async def _sweep_one(self, note: Note) -> None:
        report = [*self.bench.command, "report", str(self.history.path(note.id))]
        process = await self._spawn(note.id, report, note.scratch, new=False)
        try:
            await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()
        if process.returncode != LOCKED:
            note.state, note.reason, note.ended = "partial", "the gateway ended while it ran", int(time.time() * 1000)
            await asyncio.to_thread(self._keep, note)


def _arguments(asked: LoadTestIn, chosen: Mapping[str, Target], places: Mapping[str, Path | None]) -> list[str]:
    """Return the options of `sluice bench` for what is asked for, with the targets' directories by name."""
    return [*arguments(chosen.values(), places), *bench_options(asked)]


async def _read_lines(process: asyncio.subprocess.Process, progress: Progress) -> None:
    """Hand each line to the progress; what is longer than the limit is left out."""
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # too long: the reader has dropped it
            continue
        if not line:
            return
        progress.take(line)
