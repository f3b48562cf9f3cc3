"""What is measured: this gateway, a launched peer, or a running endpoint."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import Calls, S3CallError
from sluice_s3.loadtests.common.tls import Certificate

ROOT = Path(__file__).parent.parent.parent
SLUICE = (
    f"{shlex.quote(sys.executable)} -m sluice_s3.app.cli serve --host 127.0.0.1 --port {{port}} --data {{data}}"
    " --workers 1 --admin-port -1"
)
STOP_SECONDS = 20.0
PORTS = re.compile(r"\{(port\d+)\}")
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x00020000
"""Constants of linux/fs.h, as on most architectures."""


@dataclass(frozen=True)
class Keys:
    """The key pair of every target."""

    access_key: str
    secret_key: str
    region: str = "us-east-1"
    session_token: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that give these keys, and no others, to a process."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return dict(zip(names, (self.access_key, self.secret_key, self.session_token), strict=True))


@dataclass(frozen=True)
class Target:
    """One line of the comparison: the `url` of a running endpoint, or a `command`.

    `pid` is the endpoint's process, if known.
    """

    name: str
    url: str = ""
    pid: int | None = None
    command: str = ""
    durability: str = ""
    driver: str = ""
    """Sluice's driver, if it is not `local`."""

    @property
    def launched(self) -> bool:
        """Whether it starts on an empty directory for its turn and stops after it."""
        return bool(self.command)


def parse_target(text: str, durability: str, pids: dict[str, int]) -> Target:
    """Parse `sluice`, `sluice:full`, `NAME=http://HOST:PORT` or `NAME=COMMAND`.

    Raises ValueError for anything else.
    """
    name, equals, rest = text.partition("=")
    if not equals:
        kind, _, chosen = text.partition(":")
        if kind != "sluice" or chosen not in ("", "full", "relaxed"):
            raise ValueError(f"{text!r} is not sluice, sluice:full, sluice:relaxed, NAME=URL or NAME=COMMAND")
        return Target(f"sluice-{chosen or durability}", command=SLUICE, durability=chosen or durability)
    if not name or not rest:
        raise ValueError(f"{text!r} lacks a name or what it names")
    if rest.startswith("https:"):
        raise ValueError("TLS is not measured")
    if rest.startswith("http:"):
        return Target(name, url=rest, pid=pids.get(name))
    return Target(name, command=rest)


def with_driver(target: Target, driver: str) -> Target:
    """Return Sluice with this driver for its store; other targets unchanged."""
    if target.command != SLUICE or driver == "local":
        return target
    return replace(target, command=SLUICE.replace(" --data {data}", ""), driver=driver)


def with_workers(target: Target, workers: int) -> Target:
    """Return Sluice with this number of workers, 0 for its default; other targets unchanged."""
    if not target.durability or target.url:
        return target
    return replace(target, command=target.command.replace(" --workers 1", f" --workers {workers}" if workers else ""))


def version(command: str) -> str:
    """Return the first line that the command's program prints for `--version`, or an empty string."""
    words = [word for word in shlex.split(command) if word != "env" and "=" not in word]
    if not words or words[0] == sys.executable or Path(words[0]).name in ("sh", "bash"):
        return ""
    try:
        done = subprocess.run([words[0], "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(done.stdout.splitlines()), "")


class Running:
    """A target in its turn: started, ready, and on its core (None: any).

    A launched target has a directory in `parent` for its log and its data. If `data_parent` is set, the data alone lies
    there and the index of Sluice in `parent`. `environment` is what it inherits (None: all of ours). With a
    `certificate` it speaks TLS: Sluice by its settings, a command with `{certificate}` and `{key}`. Raises S3CallError,
    with what the target printed, if it does not get ready.
    """

    def __init__(
        self,
        target: Target,
        keys: Keys,
        parent: Path,
        core: int | None,
        data_parent: Path | None = None,
        certificate: Certificate | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._certificate = certificate
        self._environment = os.environ if environment is None else environment
        self.tls = certificate and certificate.client()
        """What a client needs to trust it, if it speaks TLS."""
        self.target = target
        self.pid = target.pid
        self.server = ""
        self._keys = keys
        self._core = core
        self._process: subprocess.Popen[bytes] | None = None
        self.directory: Path | None = None
        """Of a launched target: its data are here."""
        self._local: Path | None = None
        self._parent = parent
        self._data_parent = data_parent
        self._ports = {"port": 0} | dict.fromkeys(PORTS.findall(target.command), 0)
        if target.launched:
            self._ports = dict(zip(self._ports, _free_ports(len(self._ports)), strict=True))
            self.address = ("127.0.0.1", self._ports["port"])
        else:
            parts = urlsplit(target.url)
            self.address = (parts.hostname or "127.0.0.1", parts.port or 80)
        host = f"{self.address[0]}:{self.address[1]}"
        self.signer = Signer(host, keys.access_key, keys.secret_key, keys.region)
        self.calls = Calls(self.address, self.signer, self.tls)
        self.more_addresses = [("127.0.0.1", port) for port in self._ports.values() if port not in (0, self.address[1])]
        """Where else the same is served: `{port2}` and the like of its command."""

    def __enter__(self) -> Running:
        if self.target.launched:
            self._launch()
        elif self.pid is not None and self._core is not None:
            procfs.pin(self.pid, self._core)
        try:
            self.server = self.calls.wait_ready(lambda: self._process and self._process.poll())
            for other in self.more_addresses:
                Calls(other, self.signer, self.tls).wait_ready()
        except S3CallError as error:
            printed = self.printed()
            self.__exit__(None, None, None)
            raise S3CallError(f"{self.target.name}: {error}\n{printed}") from error
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            _stop(self._process)
        for directory in filter(None, (self._local, self.directory)):
            shutil.rmtree(directory, ignore_errors=True)

    def printed(self) -> str:
        """Return the end of what a launched target printed."""
        if self._local is None:
            return ""
        return (self._local / "log").read_text(errors="replace")[-2000:]

    def _launch(self) -> None:
        self.directory = self._local = Path(tempfile.mkdtemp(prefix=f"{self.target.name}-", dir=self._parent))
        if self._data_parent is not None:
            self.directory = Path(tempfile.mkdtemp(prefix=f"{self.target.name}-", dir=self._data_parent))
        data = self.directory / "data"
        data.mkdir()
        values = {name: str(port) for name, port in self._ports.items()}
        values |= {"data": str(data), "host": "127.0.0.1", "python": sys.executable}
        values |= {"access_key": self._keys.access_key, "secret_key": self._keys.secret_key}
        if self._certificate is not None:
            values |= {"certificate": str(self._certificate.chain), "key": str(self._certificate.key)}
        words = shlex.split(self.target.command)
        for name, value in values.items():
            words = [word.replace(f"{{{name}}}", value) for word in words]
        environment = {
            **self._environment,
            "SLUICE_ROOT_ACCESS_KEY": self._keys.access_key,
            "SLUICE_ROOT_SECRET_KEY": self._keys.secret_key,
            "SLUICE_REGION": self._keys.region,
        }
        if self.target.durability:
            environment["SLUICE_DURABILITY"] = self.target.durability
        if self.target.durability and self._certificate is not None:
            environment["SLUICE_TLS_CERT"], environment["SLUICE_TLS_KEY"] = map(str, self._certificate)
        if self.target.driver:
            environment["SLUICE_STORES"] = json.dumps({"default": {"driver": self.target.driver, "path": str(data)}})
        if self._data_parent is not None:
            environment["SLUICE_INDEX"] = f"sqlite:///{self._local}/index.db"
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, own if self._core is None else {self._core})  # children started from here inherit it
        try:
            with (self._local / "log").open("wb") as log:
                self._process = subprocess.Popen(
                    words, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
                )
        finally:
            os.sched_setaffinity(0, own)
        self.pid = self._process.pid


def spread_children(directory: Path) -> None:
    """Have ext4 place subdirectories apart on the disk (`chattr +T`), if possible.

    So no target pays for what earlier ones left: see `TargetRun.run`.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = array("i", [0])
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, flags)
        flags[0] |= FS_TOPDIR_FL
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, flags)
    except OSError:
        pass  # another file system
    finally:
        os.close(descriptor)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)  # processes of its session that it left behind
    except ProcessLookupError:
        return


def free_port() -> int:
    """Return a port that nobody listens on."""
    return _free_ports(1)[0]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_ones:
        probes = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
