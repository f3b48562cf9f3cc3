"""A mount in a process of its own, until the end of a block."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.mounts.control import send_request
from sluice_s3.loadtests.mounts.faults import Fault
from sluice_s3.loadtests.mounts.fuse_server import MountFailed, is_mounted, unmount
from sluice_s3.loadtests.mounts.profiles import profile_named
from sluice_s3.loadtests.mounts.quirks import PERSONALITIES

READY_SECONDS = 20.0
END_SECONDS = 5.0
ROOT = Path(__file__).parent.parent.parent


class Mount:
    """A running mount.

    Every method but `stop` raises Refused, or OSError when its process does not answer.
    """

    def __init__(self, backing: Path, path: Path, options: dict[str, Any]) -> None:
        self.backing = backing
        self.path = path
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self._control = Path("")

    @property
    def pid(self) -> int:
        """The process that serves it, 0 while it is stopped."""
        return self._process.pid if self._process is not None else 0

    # faults

    def fault(self, call: str, act: str, path: str = "*", **more: Any) -> int:
        """Arm a fault: see `Fault`, whose other fields `more` are. Returns its number."""
        return int(self._send("fault", fault=Fault(call, act, path, **more).as_json()))

    def clear(self, number: int | None = None) -> None:
        """Clear one fault, or all. Calls that hang by it go on."""
        self._send("clear", number=number)

    def release(self, number: int | None = None) -> None:
        """Let the calls go on that hang now; later ones hang again."""
        self._send("release", number=number)

    def struck(self, number: int) -> int:
        """Return how often an armed fault struck."""
        return int(self._send("struck").get(str(number), 0))

    def waiting(self) -> int:
        """Return how many calls hang now."""
        return int(self._send("waiting"))

    def counts(self) -> dict[str, int]:
        """Return how many calls of each kind came, by FUSE's names."""
        return dict(self._send("counts"))

    def credits(self, left: float) -> None:
        """Set the remaining burst credits, in bytes."""
        self._send("credits", bytes=left)

    # the mount itself

    def crash(self, survives: float = 0.0, seed: int = 0) -> int:
        """Act as a power cut: undo what is not synced, and mount again.

        Returns how many names and files were undone. Processes with files of it open get errors from then on. Faults
        are as at the beginning. Needs `tracked=True`.

        A disk may have saved more than it had to: with `survives`, between 0 and 1, that part of the un-synced names
        (the first) and files stays, and of the others' added bytes some, by the chance of `seed`.
        """
        count = self.cut(survives, seed)
        self.restart()
        return count

    def cut(self, survives: float = 0.0, seed: int = 0) -> int:
        """Do the first half of `crash`: every call fails until `restart`."""
        return int(self._send("crash", survives=survives, seed=seed))

    def restart(self) -> None:
        """Unmount and mount again."""
        self.stop()
        self.start()

    def start(self) -> None:
        """Mount. Raises MountFailed."""
        control = Path(tempfile.mkdtemp(prefix="sluice-mount-")) / "control"
        fields = {"backing": str(self.backing), "where": str(self.path), "control": str(control), **self._options}
        command = [
            sys.executable,
            "-c",
            "from sluice_s3.loadtests.mounts.fuse_server import main; main()",
            json.dumps(fields),
        ]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._process, self._control = process, control
        deadline = time.monotonic() + READY_SECONDS
        while not is_mounted(self.path):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                printed = process.communicate()[0].strip()
                self.stop()
                raise MountFailed(printed or f"not mounted after {READY_SECONDS:.0f} s")
            time.sleep(0.01)

    def stop(self) -> None:
        """Unmount, even if it is in use; calls that hang there fail.

        The directory is empty then.
        """
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(Exception):
            self.clear()
        unmount(self.path)
        try:
            process.communicate("", timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        shutil.rmtree(self._control.parent, ignore_errors=True)

    def _send(self, do: str, **more: Any) -> Any:
        return send_request(self._control, do, **more)


@contextmanager
def mounted(
    backing: Path,
    where: Path,
    *,
    profile: str = "none",
    personality: str = "",
    faults: Iterable[Fault] = (),
    tracked: bool = False,
    big_writes: bool = True,
    cached: bool = True,
    slower: float = 1.0,
    ms: Mapping[str, float] | None = None,
) -> Iterator[Mount]:
    """Mount the directory `backing` at the empty directory `where` until the end of the block.

    Both must exist. `personality` is the profile's own by default. `tracked` stores what `Mount.crash` restores.
    Without `cached` every read comes to the mount, and so to its faults. Each call takes `slower` times as long as it
    would. `ms` replaces times of the profile, in milliseconds by kind of call. Raises MountFailed, and ValueError for
    an unknown name.
    """
    if personality and personality not in PERSONALITIES:
        raise ValueError(f"no personality {personality!r} (there are {', '.join(PERSONALITIES)})")
    profile_named(profile).changed(ms or {})
    fields = {"profile": profile, "ms": dict(ms or {}), "personality": personality, "tracked": tracked}
    fields |= {"big_writes": big_writes, "cached": cached, "slower": slower}
    fields |= {"faults": [fault.as_json() for fault in faults]}
    mount = Mount(Path(os.path.realpath(backing)), Path(where), fields)
    mount.start()
    try:
        yield mount
    finally:
        mount.stop()
