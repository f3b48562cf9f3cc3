"""What lies behind a mount: a file system's image in a file, an SSH server, an S3 server."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.s3 import S3Client
from sluice_s3.loadtests.common.targets import SLUICE, Keys, Running, Target, free_port
from sluice_s3.loadtests.file_systems.program import SYSTEM_PATHS, Place
from sluice_s3.loadtests.mounts.fuse_server import MountFailed

IMAGE_BYTES = 16 << 30
"""Of a sparse file: what is not written takes no space."""
BUCKET = "behind"
READY_SECONDS = 20.0
SSHD_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {work}/host
AuthorizedKeysFile {work}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


def run(*command: str, **environment: str) -> str:
    """Run a command that prepares something, and return what it printed. Raises CalledProcessError."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS))
    settings = {**os.environ, **environment, "PATH": path}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=settings).stdout


def make_image(place: Place, *command: str) -> None:
    """Make a file system in a sparse file, by `mkfs` and the like."""
    with place.behind.open("wb") as image:
        image.truncate(IMAGE_BYTES)
    run(*command, str(place.behind))


@contextmanager
def loop_device(place: Place) -> Iterator[None]:
    """Make a sparse file a block device, which `device` names."""
    with place.behind.open("wb") as image:
        image.truncate(IMAGE_BYTES)
    device = run("losetup", "--find", "--show", str(place.behind)).strip()
    (place.work / "device").write_text(device)
    try:
        yield
    finally:
        run("losetup", "--detach", device)


def device(place: Place) -> str:
    """Return the loop device behind a mount."""
    return (place.work / "device").read_text()


def make_password(place: Place) -> None:
    """Make a directory for ciphertext, and a file with a password for it."""
    place.behind.mkdir()
    password = place.work / "password"
    password.write_text(secrets.token_hex(16) + "\n")
    password.chmod(0o600)


@contextmanager
def ssh_server(place: Place) -> Iterator[None]:
    """Run an SSH server of our own on the loopback interface, for a key of our own. Raises MountFailed."""
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place.work / name))
    port = free_port()
    key = (place.work / "host.pub").read_text()
    (place.work / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}")
    (place.work / "sshd_config").write_text(SSHD_CONFIG.format(port=port, work=place.work))
    (place.work / "port").write_text(str(port))
    with (place.work / "sshd.log").open("ab") as log:
        server = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", str(place.work / "sshd_config")], stderr=log, start_new_session=True
        )
    try:
        _wait_listening(port, server)
        yield
    finally:
        server.kill()
        server.wait()


def _wait_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise MountFailed("the SSH server does not listen") from error
            time.sleep(0.05)


@contextmanager
def object_store(place: Place) -> Iterator[None]:
    """Run a gateway of this version behind the mount, with a bucket; `connection` reads where it is.

    Raises S3CallError, MountFailed.
    """
    place.behind.mkdir()
    keys = Keys(secrets.token_hex(10), secrets.token_hex(20))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    environment |= {"SLUICE_ACCESS_LOG": "false"}
    target = Target("behind", command=SLUICE, durability="full")
    with Running(target, keys, place.behind, None, environment=environment) as gateway:
        url = f"http://{gateway.address[0]}:{gateway.address[1]}"
        client = S3Client(Endpoint(url, keys.access_key, keys.secret_key, keys.region), BUCKET)
        try:
            problem = client.prepare()
        finally:
            client.close()
        if problem:
            raise MountFailed(f"the gateway behind the mount: {problem}")
        secret = place.work / "connection"
        secret.touch(0o600)
        secret.write_text("\n".join((url, keys.access_key, keys.secret_key)))
        yield


def connection(place: Place) -> tuple[str, str, str]:
    """Return URL, access key and secret key of the object store behind a mount."""
    url, access, secret = (place.work / "connection").read_text().split()
    return url, access, secret
