"""Runs one load test: a process of its own between the admin listener and `sluice bench`.

It outlives who started it for as long as it takes to leave nothing behind: no process, no mount, no file on a
store. It imports only the standard library, so that it starts quickly.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Of linux/prctl.h: the signal that a process gets when its parent ends."""
NICE = 10
"""The gateway's own processes go first."""
MARK = "SLUICE_BENCH_RUN"
"""Variable in the environment of all processes of a run, also of those that lost their parents."""
SCRATCH = "sluice-load-test-"
"""How the directories begin that a run may remove."""
LOCKED = 75
"""Exit code when another run is under way, or still cleans up: EX_TEMPFAIL of sysexits.h."""
LOOK_SECONDS = 0.05
REMOVALS, REMOVAL_PAUSE_SECONDS = 10, 0.3
KILL_SECONDS = 10.0
"""Seconds that killed processes have to end; one that hangs in a mount stays."""


@dataclass(frozen=True)
class Job:
    """What is run. `scratch` are directories that are made before, if it is `new`, and removed after."""

    run: str
    command: Sequence[str]
    scratch: Sequence[str]
    lock: str
    parent: int
    grace: float = 60.0
    """After a signal to end, what still runs is killed after so many seconds."""
    new: bool = True

    def argv(self) -> list[str]:
        """Return the command that runs this job."""
        return [sys.executable, "-m", "sluice_s3.app.admin.load_tests.supervisor", json.dumps(asdict(self))]


def supervise(job: Job) -> int:
    """Run a job to its end and remove what it left; return the exit code of its command.

    The first SIGTERM or SIGINT asks it to end, the second one leaves it a second.
    """
    deadlines: list[float] = []

    def end(*_: object) -> None:
        deadlines.append(time.monotonic() + (1.0 if deadlines else job.grace))

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    _signal_at_death_of(job.parent)
    with _locked(job.lock) as descriptor:
        if descriptor is None:
            return LOCKED
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        try:
            return _play(job, descriptor, deadlines)
        finally:
            kill_marked(job.run)
            for directory in job.scratch:
                _remove(Path(directory))


def _play(job: Job, lock: int, deadlines: list[float]) -> int:
    try:
        for directory in job.scratch if job.new else ():
            os.mkdir(directory, 0o700)  # one that is there is somebody else's
    except OSError as error:
        print(f"a scratch directory cannot be made: {error.strerror}", flush=True)
        return 1
    if deadlines:
        return 1
    process = subprocess.Popen(
        job.command,
        stdin=subprocess.DEVNULL,
        env={**os.environ, MARK: job.run},
        pass_fds=[lock],  # nobody else begins while it runs, even if this process is killed
        start_new_session=True,
        preexec_fn=_ask_to_end_with_parent,  # there is one thread
    )
    asked = False
    while process.poll() is None:
        time.sleep(LOOK_SECONDS)
        if deadlines and not asked:
            asked = True
            process.terminate()
        if deadlines and time.monotonic() > deadlines[-1]:
            break
    return process.poll() or 0


def _signal_at_death_of(parent: int) -> None:
    """Have the kernel ask this process to end when its parent does."""
    _ask_to_end_with_parent()
    if parent and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _ask_to_end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def _locked(path: str) -> Iterator[int | None]:
    """Yield a descriptor that holds the lock, None when another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def kill_marked(run: str) -> None:
    """Kill all processes of a run, also those that lost their parents."""
    deadline = time.monotonic() + KILL_SECONDS
    while (found := list(_marked(run))) and time.monotonic() < deadline:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(LOOK_SECONDS)


def _marked(run: str) -> Iterator[int]:
    mark = f"{MARK}={run}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    yield int(name)


def _remove(directory: Path) -> None:
    """Remove a scratch directory with its content; never anything else.

    FUSE learns of a close after close(2) has returned, and until then keeps a removed file under another name.
    """
    if not directory.name.startswith(SCRATCH):
        return
    for _ in range(REMOVALS):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(REMOVAL_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(supervise(Job(**json.loads(sys.argv[1]))))
