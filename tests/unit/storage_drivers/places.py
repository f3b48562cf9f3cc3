"""Places that fsspec reaches, each with a look behind the driver's back; and an ssh server of our own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from tests.support.environment import lack
from tests.support.waiting import eventually, is_listening

SSHD = "/usr/sbin/sshd"
CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


@dataclass
class Place:
    """A URL with the options for it, and what lies there."""

    url: str
    options: dict[str, Any]
    raw: Any
    """A filesystem that shows the same objects."""
    base: str
    """The root in it."""

    def path(self, name: str) -> str:
        return f"{self.base}/{name}"

    def read(self, name: str) -> bytes:
        return bytes(self.raw.cat_file(self.path(name)))

    def write(self, name: str, content: bytes) -> None:
        self.raw.pipe_file(self.path(name), content)

    def remove(self, name: str) -> None:
        self.raw.rm_file(self.path(name))

    def stored(self, under: str = "data") -> list[str]:
        """Names of all objects under a directory."""
        return sorted(path.rpartition("/")[2] for path in self.raw.find(self.path(under)))


def memory_place(protocol: str = "memory") -> Place:
    """Memory of this process, as nobody else has it."""
    name = uuid4().hex
    return Place(f"{protocol}://{name}", {}, MemoryFileSystem(), f"/{name}")


def file_place(directory: Path) -> Place:
    """A directory."""
    return Place(f"file://{directory}", {}, fsspec.filesystem("file"), str(directory))


@dataclass
class SshServer:
    """OpenSSH on a port of its own, for the user who runs the test."""

    directory: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    user: str = field(default_factory=getpass.getuser)

    @property
    def options(self) -> dict[str, Any]:
        return {
            "key_filename": str(self.directory / "user"),
            "known_hosts": str(self.directory / "known_hosts"),
            "allow_agent": False,
            "look_for_keys": False,
        }

    def place(self, directory: Path, **options: Any) -> Place:
        url = f"sftp://{self.user}@127.0.0.1:{self.port}{directory}"
        return Place(url, {**self.options, **options}, fsspec.filesystem("file"), str(directory))

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(self.directory / "config")], stderr=log)
        try:
            eventually(lambda: is_listening(self.port), "sshd listens", 30)
        except AssertionError as error:
            raise RuntimeError((self.directory / "log").read_text()) from error

    def stop(self) -> None:
        """Take no more sessions, and end those that there are."""
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGSTOP)
            self.cut()
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def cut(self, by: signal.Signals = signal.SIGKILL) -> None:
        """End every session (or stop it, by SIGSTOP); the server takes new ones."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in children.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), by)


@contextmanager
def ssh_server(directory: Path) -> Iterator[SshServer]:
    """A running server with its keys under a directory."""
    if not os.path.exists(SSHD) or shutil.which("ssh-keygen") is None:
        lack("not installed: openssh-server")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = SshServer(directory, taken.getsockname()[1])
    host = (directory / "host.pub").read_text()
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {host}")
    (directory / "config").write_text(CONFIG.format(port=server.port, directory=directory))
    server.start()
    try:
        yield server
    finally:
        server.stop()
