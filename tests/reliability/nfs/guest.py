"""A machine of its own that runs as a process: user-mode Linux with this machine's files, read-only."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.reliability.nfs.packages import Packages
from tests.support.environment import ROOT

BOOT = ROOT / "tests/reliability/nfs/boot"
KILL_SECONDS = 20.0


@dataclass
class Guest:
    """One guest. Its disks are files, so that they are there again when it is booted after a power cut."""

    role: str
    """`server` or `client`: the script in `boot/` that it runs."""
    address: str
    memory_mib: int
    packages: Packages
    run: Path
    """Directory of the machine that it sees as /run/lab, and writes to."""
    wire: int
    """Descriptor of one end of the cable to the other guest."""
    show: Callable[[str], None]
    """Gets what its console shows, line by line."""
    disks: list[Path] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None

    def boot(self, **variables: str) -> None:
        """Power on; returns at once. `variables` are in the environment of its first process."""
        arguments = {
            "mem": f"{self.memory_mib}M",
            "root": "/dev/root",
            "rootfstype": "hostfs",
            "rootflags": "/",
            "init": "/bin/sh",
            "con": "null",
            "con0": "null,fd:1",
            "ssl": "null",
            "loglevel": "4",
            "vec0": f"transport=fd,fd={self.wire},mtu=8000,depth=64,vec=1",
            **{f"ubd{number}": str(path) for number, path in enumerate(self.disks)},
            "packages": str(self.packages.root),
            "run": str(self.run),
            "checkout": str(ROOT),
            "role": self.role,
            "address": self.address,
            **variables,
        }
        # `vec0:transport=…` has a colon, all others an equals sign
        line = [f"{name}:{value}" if name == "vec0" else f"{name}={value}" for name, value in arguments.items()]
        self._process = subprocess.Popen(
            [str(self.packages.kernel), "ro", *line, "--", str(BOOT / "init.sh")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[self.wire],
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.show(line.rstrip())

    @property
    def runs(self) -> bool:
        """Whether its kernel runs."""
        return self._process is not None and self._process.poll() is None

    def cut(self) -> None:
        """Cut the power: what its kernel had not given to its disks is gone."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(KILL_SECONDS)
            self._process = None

    def freeze(self) -> None:
        """Stop it as it is."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)
