"""Measures what a mount does, and says whether a store may start on it."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar, cast

from storage_drivers.base import Durability
from storage_drivers.errors import StoreUnfit, map_errors
from storage_drivers.files import DIRECTORY_MODE, NO_SYNC, sync_directory
from storage_drivers.mountinfo import IN_MEMORY, Mount, mount_of
from storage_drivers.probing.scratch import Progress, Scratch, scratch_directory
from storage_drivers.probing.trials import AT_START, TRIALS, Ability

T = TypeVar("T")

ROUNDS = 20
"""Files made, written, synced, read and removed to learn how long calls take."""
BLOCK = 4096
LEAST_PAGE = 4096
PATIENCE = 10.0
"""Seconds that one call on the mount of a starting store may take."""
DIRECTORY = "probe"
"""Of a store: where it tries its mount at each start. Never removed."""
LEFT_AFTER = 86_400.0
"""Seconds after which a file there was left by a process that died."""

NOT_TRIED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES})
"""A mount that is full, or not ours to write to, says nothing of what it could do."""


class Trial(NamedTuple):
    """How one trial went."""

    ability: Ability
    works: bool | None
    """None: it could not be tried."""
    detail: str
    error: int = 0
    """The errno that said no."""


class Latency(NamedTuple):
    """How long a call took, in seconds."""

    call: str
    calls: int
    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Probe:
    """What a mount did when it was tried."""

    mount: Mount
    trials: tuple[Trial, ...]
    latencies: tuple[Latency, ...]
    hole_page: int
    """Bytes of the pages that can be punched out of a file, 0 when none can."""
    seconds: float

    def trial(self, ability: Ability) -> Trial:
        """How a trial went; as one that could not be tried when it was not among them."""
        return next((trial for trial in self.trials if trial.ability is ability), Trial(ability, None, "not tried"))

    def can(self, ability: Ability) -> bool:
        """Whether something was seen to work."""
        return self.trial(ability).works is True

    def may(self, ability: Ability) -> bool:
        """Whether nothing was seen that speaks against it."""
        return self.trial(ability).works is not False

    @property
    def line(self) -> str:
        """All of it for a log."""
        no = [trial.ability.value for trial in self.trials if trial.works is False]
        unknown = [trial.ability.value for trial in self.trials if trial.works is None]
        times = [
            f"{latency.call} {latency.median * 1000:.2g} ms"
            for latency in self.latencies
            if latency.call in ("create", "fsync", "fsync directory", "read")
        ]
        parts = [
            f"{self.mount.kind} at {self.mount.point or '?'}",
            *times,
            f"cannot: {', '.join(no) or 'nothing of what was tried'}",
            *([f"could not be tried: {', '.join(unknown)}"] if unknown else []),
            *(["nothing here survives a power cut"] if self.mount.kind in IN_MEMORY else []),
        ]
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The same for programs; times in milliseconds."""
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
            "refused": {
                level.value: refusal and str(refusal) for level in Durability for refusal in [unfit(self, level)]
            },
        }


def measure(path: str | Path, progress: Progress | None = None) -> Probe:
    """Try everything in a new directory under `path`, which is gone afterwards. Blocks; raises OSError."""
    started = time.perf_counter()
    mount = mount_of(path)
    with scratch_directory(str(path), progress) as scratch:
        trials = [_tried(ability, scratch) for ability in TRIALS]
        rounds(scratch)
        return _probe(mount, trials, scratch, started)


def measure_store(root: Path, progress: Progress) -> Probe:
    """Try what a store chooses its ways by, in a directory of the store. Blocks; raises OSError."""
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
        trials = [Trial(ability, None, os.strerror(error.errno)) for ability in AT_START]
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


def _tried(ability: Ability, scratch: Scratch) -> Trial:
    scratch.progress.step(ability.value)
    try:
        works, detail = TRIALS[ability](scratch)
    except OSError as error:
        code = error.errno or 0
        return Trial(ability, None if code in NOT_TRIED else False, os.strerror(code), code)
    return Trial(ability, works, detail)


def rounds(scratch: Scratch) -> None:
    """Make, write, sync, read, look at and remove some small files, one call after the other. Raises OSError."""
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


def _probe(mount: Mount, trials: Sequence[Trial], scratch: Scratch, started: float) -> Probe:
    latencies = [Latency(call, len(times), median(times), max(times)) for call, times in sorted(scratch.times.items())]
    holes = any(trial.ability is Ability.PUNCH and trial.works for trial in trials)
    page = max(os.statvfs(scratch.directory).f_bsize, LEAST_PAGE) if holes else 0
    return Probe(mount, tuple(trials), tuple(latencies), page, time.perf_counter() - started)


def unfit(probe: Probe, durability: Durability) -> StoreUnfit | None:
    """Why a store of this durability may not start, None when it may.

    Only what was seen to be wrong counts: a full or read-only mount can still be read from. A file system that answers
    fsync(2) and does nothing cannot be told from one that keeps its word.
    """
    for ability, kind in (
        (Ability.EXCLUSIVE_CREATE, "exclusive-create"),
        (Ability.READ_BACK, "integrity"),
        (Ability.SIZE_AFTER_CLOSE, "integrity"),
        (Ability.FSYNC_FILE, "durability"),
        (Ability.FSYNC_DIRECTORY, "durability"),
    ):
        trial = probe.trial(ability)
        if trial.works is not False:
            continue
        if kind == "durability" and durability is not Durability.FULL:
            continue
        if ability is Ability.FSYNC_DIRECTORY and trial.error in NO_SYNC:
            continue
        wanted = f"; {durability.value} durability cannot be kept" if kind == "durability" else ""
        if trial.error and not wanted:
            kind = "error"
        return StoreUnfit(kind, f"{ability.value}: {trial.detail}{wanted}")
    return None


async def with_patience(progress: Progress, call: Callable[[], T], patience: float = PATIENCE) -> T:
    """Call in a thread of its own, which nothing waits for when one step of it takes longer than `patience` seconds.

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
        with suppress(RuntimeError):  # nobody waits any more, and the loop is closed
            loop.call_soon_threadsafe(end, result, failure)

    progress.step("first call")
    threading.Thread(target=run, name="store-start", daemon=True).start()
    while True:
        left = progress.since + patience - time.monotonic()
        if left <= 0:
            ended.cancel()
            raise StoreUnfit("no-answer", f"the mount has not answered for {patience:g} s ({progress.doing})")
        await asyncio.wait({ended}, timeout=left)
        if ended.done():
            return ended.result()
