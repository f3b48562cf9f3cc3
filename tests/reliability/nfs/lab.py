"""Run a command, by default the tests of this directory, in a guest with an NFS server beside it.

Needs Debian's apt-get and no rights: kernel and NFS programs are unpacked into build/nfs, nothing is installed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability.nfs.guest import Guest
from tests.reliability.nfs.packages import unpack
from tests.support.environment import ROOT

DISKS_MIB = {"state": 32, "sync": 4096, "async": 1024, "small": 96, "squash": 512, "closed": 32}
"""The server's disks, as `boot/server.sh` names them; sparse files."""
MEMORY = Path("/dev/shm")
"""Outlives the guests as well as a disk does, and costs no syncs of this machine's disk."""
BOOT_SECONDS = 600.0
POLL_SECONDS = 0.05
TESTS = ("-m", "pytest", "-p", "no:cacheprovider", "-v", "--timeout=900", "tests/reliability/nfs")


class Lab:
    """Two guests with a cable between them, and what the client asks of the server's power."""

    def __init__(self, directory: Path, client_mib: int, server_mib: int, *, verbose: bool) -> None:
        """Makes the disks in `directory`."""
        self.run = directory / "run"
        self.run.mkdir()
        disks = []
        for name, size in DISKS_MIB.items():
            disks.append(directory / name)
            with disks[-1].open("wb") as disk:
                disk.truncate(size << 20)
        packages = unpack()
        # one packet a message; the ends stay open here, so that a guest that is booted again finds its own
        self._ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        server, client = (end.fileno() for end in self._ends)
        quiet = (lambda line: print(f"server: {line}", flush=True)) if verbose else (lambda line: None)
        self.server = Guest("server", "10.99.0.1", server_mib, packages, self.run, server, quiet, disks)
        self.client = Guest("client", "10.99.0.2", client_mib, packages, self.run, client, self._show)
        self._verbose = verbose
        self._boots = 0

    def _show(self, line: str) -> None:
        if self._verbose or (self.run / "started").exists():
            print(line, flush=True)

    def boot_server(self) -> None:
        """Power the server on and wait until it serves. Raises RuntimeError."""
        self._boots += 1
        ready = f"ready-{self._boots}"
        self.server.boot(ready=ready)
        self._wait(self.run / ready, self.server)

    def _wait(self, path: Path, guest: Guest) -> None:
        deadline = time.monotonic() + BOOT_SECONDS
        while not path.exists():
            if not guest.runs or time.monotonic() > deadline:
                raise RuntimeError(f"the {guest.role} did not come up; --verbose shows its console")
            time.sleep(POLL_SECONDS)

    def execute(self, command: str) -> int:
        """Run a shell command in the client, and do what it asks for meanwhile. Returns its exit code."""
        (self.run / "command").write_text(f"touch /run/lab/started\n{command}\n")
        self.client.boot()
        code, number = self.run / "code", 0
        while not code.exists():
            if not self.client.runs:
                raise RuntimeError("the client's kernel ended")
            request = self.run / f"request-{number}"
            if request.exists():
                self._do(request.read_text())
                (self.run / f"answer-{number}").touch()
                number += 1
            time.sleep(POLL_SECONDS)
        return int(code.read_text())

    def _do(self, what: str) -> None:
        {
            "cut": self.server.cut,
            "boot": self.boot_server,
            "freeze": self.server.freeze,
            "thaw": self.server.thaw,
        }[what]()

    def end(self) -> None:
        """Cut the power of both."""
        self.client.cut()
        self.server.cut()


def main() -> int:
    """Run what the command line says; the exit code is the command's."""
    parser = argparse.ArgumentParser(prog="tests.reliability.nfs.lab", description=__doc__)
    parser.add_argument("--client-memory", type=int, default=1536, metavar="MIB")
    parser.add_argument("--server-memory", type=int, default=384, metavar="MIB")
    parser.add_argument("--disks", type=Path, help="where the server's disks lie (default: memory)")
    parser.add_argument("--verbose", action="store_true", help="show both consoles")
    parser.add_argument("command", nargs="*", help="default: the tests; after --")
    chosen = parser.parse_args()
    python = shlex.quote(sys.executable)
    variables = {"PYTHONPATH": f"{ROOT}/build/checkout:{ROOT}", "SLUICE_TEST_NFS": "server:/sync"}
    variables |= {name: value for name, value in os.environ.items() if name.startswith("SLUICE_TEST_")}
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    command = shlex.join(chosen.command) or f"{python} {shlex.join(TESTS)}"
    disks = chosen.disks or (MEMORY if MEMORY.is_dir() else None)
    directory = Path(tempfile.mkdtemp(prefix="sluice-nfs-", dir=disks))
    lab = Lab(directory, chosen.client_memory, chosen.server_memory, verbose=chosen.verbose)
    try:
        began = time.monotonic()
        lab.boot_server()
        print(f"the server is up after {time.monotonic() - began:.1f} s", flush=True)
        return lab.execute(f"export {settings}\n{command}")
    finally:
        lab.end()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
