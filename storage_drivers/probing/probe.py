"""The probe of a mount, which also decides whether a store may start on it."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar, cast

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import StoreUnfit, map_errors
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, NO_SYNC, sync_directory
from sluice_s3.storage_drivers.mountinfo import IN_MEMORY, Mount, mount_of
from sluice_s3.storage_drivers.probing.known_mounts import sync_refusal, warnings
from sluice_s3.storage_drivers.probing.scratch import Progress, Scratch, scratch_directory
from sluice_s3.storage_drivers.probing.trials import AT_START, CHECKS, Capability
from sluice_s3.storage_drivers.threads import BackgroundThread

T = TypeVar("T")

ROUNDS = 20
"""Files created, written, synced, read and removed to measure how long calls take."""
BLOCK = 4096
LEAST_PAGE = 4096
TIMEOUT_SECONDS = 10.0
"""Seconds that one call on the mount of a starting store may take."""
DIRECTORY = "probe"
"""Directory in a store where each start probes the mount. Never removed."""
LEFT_AFTER = 86_400.0
"""Seconds after which a file there is a leftover of a dead process."""

NOT_TRIED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES})
"""Errors of a full or forbidden mount, which say nothing of its abilities."""


class Check(NamedTuple):
    """The result of one trial."""

    ability: Capability
    works: bool | None
    """Whether it works; None if it could not be tried."""
    detail: str
    error: int = 0
    """The errno of the refusal."""


class Latency(NamedTuple):
    """The duration of a call in seconds."""

    call: str
    calls: int
    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Probe:
    """The results of all trials of a mount."""

    mount: Mount
    trials: tuple[Check, ...]
    latencies: tuple[Latency, ...]
    hole_page: int
    """Page size for punching holes, 0 when it cannot."""
    seconds: float
    misfit: str = ""
    """Why the store's driver is not the one for this mount; empty if it may be."""
    unsynced: str = ""
    """Why fsync is not believed although it succeeds; empty if nothing is known against it."""

    def trial(self, ability: Capability) -> Check:
        """Return the result of a trial; one that was not made counts as untried."""
        return next((trial for trial in self.trials if trial.ability is ability), Check(ability, None, "not tried"))

    def can(self, ability: Capability) -> bool:
        """Return whether something was seen to work."""
        return self.trial(ability).works is True

    def may(self, ability: Capability) -> bool:
        """Return whether nothing was seen to contradict it."""
        return self.trial(ability).works is not False

    @property
    def lacks(self) -> list[str]:
        """What was seen not to work."""
        return [trial.ability.value for trial in self.trials if trial.works is False]

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the mount's options, each as "option: consequence", and with the choice of the driver."""
        return [*warnings(self.mount), *([self.misfit] if self.misfit else [])]

    @property
    def line(self) -> str:
        """All results in one line, for a log."""
        no = self.lacks
        unknown = [trial.ability.value for trial in self.trials if trial.works is None]
        times = [
            f"{latency.call} {latency.median * 1000:.2g} ms"
            for latency in self.latencies
            if latency.call in ("create", "fsync", "fsync directory", "read")
        ]
        parts = [
            f"{self.mount.kind} at {self.mount.point or '?'}",
            *times,
            f"cannot: {', '.join(no)}" if no else "no check failed" if unknown else "all checks passed",
            *([f"could not be tried: {', '.join(unknown)}"] if unknown else []),
            *(["nothing here survives a power cut"] if self.mount.kind in IN_MEMORY else []),
            *self.warnings,
        ]
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the results for programs; times in milliseconds."""
        return {
            "mount": self.mount._asdict() | {"driver": self.mount.driver},
            "trials": {
                trial.ability.value: {
                    "works": trial.works,
                    "detail": trial.detail,
                    "error": errno.errorcode.get(trial.error, ""),
                }
                for trial in self.trials
            },
            "hole_page": self.hole_page,
            "latencies_ms": {
                latency.call: {
                    "calls": latency.calls,
                    "median": latency.median * 1000,
                    "worst": latency.worst * 1000,
                }
                for latency in self.latencies
            },
            "seconds": self.seconds,
            "warnings": self.warnings,
            "refused": {
                level.value: refusal and str(refusal)
                for level in Durability
                for refusal in [refusal_reason(self, level)]
            },
        }


def measure(path: str | Path, progress: Progress | None = None) -> Probe:
    """Try everything in a temporary directory under `path`. Blocks; raises OSError."""
    started = time.perf_counter()
    mount = mount_of(path)
    with scratch_directory(str(path), progress) as scratch:
        trials = [_tried(ability, scratch) for ability in CHECKS]
        repeat_timed(scratch)
        return _probe(mount, trials, scratch, started)


def measure_store(root: Path, progress: Progress) -> Probe:
    """Try what a store depends on, in a directory of the store. Blocks; raises OSError."""
    started = time.perf_counter()
    mount = mount_of(root)
    directory = f"{root}/{DIRECTORY}"
    scratch = Scratch(directory, progress)
    try:
        progress.step("mkdir")
        try:
            os.mkdir(directory, DIRECTORY_MODE)
        except FileExistsError:
            _clear_left(directory)
        trials = [_tried(ability, scratch) for ability in AT_START]
    except OSError as error:
        if error.errno not in NOT_TRIED:
            raise
        trials = [Check(ability, None, os.strerror(error.errno)) for ability in AT_START]
    finally:
        scratch.clear()
    return _probe(mount, trials, scratch, started)


def _clear_left(directory: str) -> None:
    for name in os.listdir(directory):
        path = f"{directory}/{name}"
        try:
            if os.stat(path).st_mtime < time.time() - LEFT_AFTER:
                os.unlink(path)
        except OSError:
            continue


def _tried(ability: Capability, scratch: Scratch) -> Check:
    scratch.progress.step(ability.value)
    try:
        works, detail = CHECKS[ability](scratch)
    except OSError as error:
        code = error.errno or 0
        return Check(ability, None if code in NOT_TRIED else False, os.strerror(code), code)
    return Check(ability, works, detail)


def repeat_timed(scratch: Scratch) -> None:
    """Create, write, sync, read, stat and remove small files in sequence.

    Raises OSError.
    """
    content = os.urandom(BLOCK)
    try:
        for number in range(ROUNDS):
            path = scratch.path(f"round-{number}")
            fd = scratch.create(path)
            try:
                scratch.timed("write", os.write, fd, content)
                scratch.timed("fsync", os.fsync, fd)
            finally:
                scratch.timed("close", os.close, fd)
            scratch.timed("fsync directory", sync_directory, scratch.directory)
            scratch.timed("stat", os.stat, path)
            scratch.read(path)
            scratch.timed("statvfs", os.statvfs, scratch.directory)
            scratch.timed("unlink", os.unlink, path)
    except OSError as error:
        if error.errno not in NOT_TRIED | NO_SYNC:
            raise


def _probe(mount: Mount, trials: Sequence[Check], scratch: Scratch, started: float) -> Probe:
    latencies = [Latency(call, len(times), median(times), max(times)) for call, times in sorted(scratch.times.items())]
    holes = any(trial.ability is Capability.PUNCH and trial.works for trial in trials)
    page = max(os.statvfs(scratch.directory).f_bsize, LEAST_PAGE) if holes else 0
    unsynced = sync_refusal(mount)
    return Probe(mount, tuple(trials), tuple(latencies), page, time.perf_counter() - started, unsynced=unsynced)


def refusal_reason(probe: Probe, durability: Durability) -> StoreUnfit | None:
    """Return why a store of this durability may not start; None when it may.

    Only failures that were seen count: a full or read-only mount can still be read from. A filesystem that ignores
    fsync(2) and reports success cannot be detected, but some are known to.
    """
    if durability is Durability.FULL and probe.unsynced:
        return StoreUnfit("durability", f"{probe.unsynced}; {durability.value} durability cannot be kept")
    for ability, kind in (
        (Capability.EXCLUSIVE_CREATE, "exclusive-create"),
        (Capability.READ_BACK, "integrity"),
        (Capability.SIZE_AFTER_CLOSE, "integrity"),
        (Capability.FSYNC_FILE, "durability"),
        (Capability.FSYNC_REACHES, "durability"),
        (Capability.FSYNC_DIRECTORY, "durability"),
    ):
        trial = probe.trial(ability)
        if trial.works is not False:
            continue
        if kind == "durability" and durability is not Durability.FULL:
            continue
        if ability is Capability.FSYNC_DIRECTORY and trial.error in NO_SYNC:
            continue
        wanted = f"; {durability.value} durability cannot be kept" if kind == "durability" else ""
        if trial.error and not wanted:
            kind = "error"
        return StoreUnfit(kind, f"{ability.value}: {trial.detail}{wanted}")
    return None


async def run_with_timeout(progress: Progress, call: Callable[[], T], timeout: float = TIMEOUT_SECONDS) -> T:
    """Call in a thread of its own; abandon it when one step exceeds `timeout` seconds.

    Raises StoreUnfit then, and whatever the call raises.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def end(result: T | None, error: BaseException | None) -> None:
        if ended.cancelled():
            return
        if error is None:
            ended.set_result(cast(T, result))
        else:
            ended.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            with map_errors():
                result = call()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # no caller waits any more, and the loop is closed
            loop.call_soon_threadsafe(end, result, failure)

    progress.step("first call")
    BackgroundThread(run)
    while True:
        left = progress.since + timeout - time.monotonic()
        if left <= 0:
            ended.cancel()
            raise StoreUnfit("no-answer", f"the mount has not answered for {timeout:g} s ({progress.doing})")
        await asyncio.wait({ended}, timeout=left)
        if ended.done():
            return ended.result()
