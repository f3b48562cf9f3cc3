"""A file system of another project in a process of its own, until the end of a block."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sluice_s3.loadtests.file_systems.program import SYSTEM_PATHS, Place, Program
from sluice_s3.loadtests.mounts.fuse_server import MountFailed, is_mounted, unmount

READY_SECONDS = 240.0
"""Some derive a key from a password first."""
END_SECONDS = 20.0
LOG_BYTES = 2000
"""The end of what a program printed is shown when it does not mount."""


class ProgramMount:
    """A mounted file system. Every method blocks; `start` raises MountFailed."""

    def __init__(self, program: Program, place: Place) -> None:
        self.program = program
        self.place = place
        self._process: subprocess.Popen[str] | None = None

    @property
    def path(self) -> Path:
        """The mount point."""
        return self.place.where

    @property
    def pid(self) -> int:
        """The process that serves it, 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Mount, and return when the kernel knows the mount and it answers."""
        served = self.program.serve(self.place)
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS))
        log_path = self.place.work / "log"
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                _ending_with_us(served.command),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                env={**os.environ, **served.environment, "PATH": path},
                start_new_session=True,
            )
        self._process = process
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(served.stdin)
            process.stdin.close()
        deadline = time.monotonic() + READY_SECONDS
        while not (is_mounted(self.path) and _answers(self.path)):
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                unmount(self.path)
                printed = log_path.read_text(errors="replace")[-LOG_BYTES:].strip()
                raise MountFailed(f"{self.program.name} did not mount: {printed}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill every process of it (SIGKILL): calls fail until `restart`, what only it remembered is gone."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def restart(self) -> None:
        """Mount again after `kill`. Nobody may need a file of the mount that is still open."""
        unmount(self.path)
        self.start()

    def stop(self) -> None:
        """Unmount, let it write what it still has, and end it."""
        process = self._process
        unmount(self.path)
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
        self.kill()


@contextmanager
def mounted_by(program: Program, directory: Path) -> Iterator[ProgramMount]:
    """Mount a new, empty file system in `directory`, which holds all that belongs to it.

    Raises MountFailed, OSError, or what its preparation raises.
    """
    place = Place(directory, directory / "behind", directory / "mount")
    place.where.mkdir()
    with program.behind(place):
        try:
            program.prepare(place)
        except subprocess.CalledProcessError as error:
            printed = (error.stderr or error.stdout or b"")[-LOG_BYTES:]
            text = printed if isinstance(printed, str) else printed.decode(errors="replace")
            raise MountFailed(f"{program.name} could not be made: {text.strip() or error}") from error
        mount = ProgramMount(program, place)
        try:
            mount.start()
            yield mount
        finally:
            mount.stop()


def _answers(path: Path) -> bool:
    try:
        os.listdir(path)
    except OSError:
        return False
    return True


def _ending_with_us(command: Sequence[str]) -> list[str]:
    """Return a command whose process ends when ours does, however that happens (util-linux has `setpriv`)."""
    return [*(("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()), *command]
