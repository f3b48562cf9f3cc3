"""The compose stack really run, by podman-compose: up, requests, gateways that end under load, down, up again.

Skipped where podman, podman-compose (1.6 or later) or one of the images is missing; CI has none of them. The images may
be stand-ins: what is relied on is the environment, ports, volumes, users, health checks and order of the compose file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.loadtests.common.targets import free_port
from tests.deploy.test_compose import VARIABLE
from tests.support.environment import ROOT, sized
from tests.support.gateway import client
from tests.support.waiting import eventually

COMPOSE = shutil.which(os.environ.get("PODMAN_COMPOSE", "podman-compose"))
NAME = f"sluice-test-{os.getpid()}"
CLIENTS = 6
SECONDS = sized(6.0, 60.0)

pytestmark = pytest.mark.timeout(1200)


def podman(*arguments: str, check: bool = True) -> str:
    """Standard output of a podman command."""
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def _need_images(*services: str) -> None:
    if shutil.which("podman") is None or COMPOSE is None:
        pytest.skip("podman or podman-compose is not installed")
    if "--profile" not in subprocess.run([COMPOSE, "--help"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("this podman-compose knows no profiles (1.0.6 and later do)")
    known = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for service in services:
        image = VARIABLE.sub(lambda found: os.environ.get(found[1]) or found[2], known[service]["image"])
        if subprocess.run(["podman", "image", "exists", image], check=False).returncode:
            pytest.skip(f"the image {image} is not here (build or pull it first)")


@dataclass
class Stack:
    """One project of containers, with ports and volumes of its own."""

    profile: str = ""
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def compose(self, *arguments: str, check: bool = True) -> str:
        profile = ("--profile", self.profile) if self.profile else ()
        environment = {**os.environ, **self.settings, "SLUICE_PUBLISH": f"127.0.0.1:{self.port}"}
        command = [str(COMPOSE), "--project-name", NAME, *profile, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def up(self, *services: str) -> None:
        """Start, and wait until S3 is offered, by every gateway that there is."""
        if not services:  # an older podman does not wait for a healthy Postgres, as Docker does
            self.compose("up", "--detach", "postgres")
            eventually(lambda: self.is_ready("postgres"))
        self.compose("up", "--detach", *services)
        for service in services or ("gateway-1", "gateway-2"):
            eventually(lambda service=service: self.is_ready(service) or self._again(service))  # type: ignore[misc]
        eventually(lambda: _status(self.endpoint + "/-/health/ready") == 200)

    def _again(self, service: str) -> bool:
        """An older podman does not restart what waits for a container that has ended."""
        if not self.is_running(service):
            podman("start", self.container(service), check=False)
        return False

    def down(self, *options: str) -> None:
        self.compose("down", *options, check=False)

    def container(self, service: str) -> str:
        """The container of a service."""
        found = podman("ps", "-a", "-q", "--filter", f"name=^{NAME}[_-]{service}[_-]1$").split()
        assert len(found) == 1, service
        return found[0]

    def s3(self) -> Any:
        """boto3 as the account of the generated keys; nothing is tried twice."""
        lines = self.compose("run", "--rm", "-T", "keys", "show").splitlines()
        shown = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
        return client(self.endpoint, shown["AWS_ACCESS_KEY_ID"], shown["AWS_SECRET_ACCESS_KEY"])

    def is_running(self, service: str) -> bool:
        return podman("inspect", "--format", "{{.State.Running}}", self.container(service)).strip() == "true"

    def is_ready(self, service: str) -> bool:
        """What the engine's timer would find; without systemd podman has none."""
        return not subprocess.run(
            ["podman", "healthcheck", "run", self.container(service)], capture_output=True, check=False
        ).returncode

    def run_health_checks(self) -> None:
        """Until the end, for those who wait for a healthy container."""
        while not self._over.wait(2):
            for name in podman("ps", "-q", "--filter", f"name=^{NAME}[_-]", check=False).split():
                subprocess.run(["podman", "healthcheck", "run", name], capture_output=True, check=False)

    def end(self) -> None:
        self._over.set()
        for name in podman("ps", "-a", "--format", "{{.Names}}", "--filter", f"name=^{NAME}[_-]").split():
            print(f"{name}: {_log(name)[-1500:]}")  # which pytest shows when the test has failed
        self.down("--volumes")
        for volume in podman("volume", "ls", "-q", "--filter", f"name={NAME}_").split():
            podman("volume", "rm", volume, check=False)


def _status(url: str) -> int:
    try:
        return httpx.get(url, timeout=10).status_code
    except httpx.HTTPError:
        return 0


@pytest.fixture
def stack() -> Iterator[Stack]:
    _need_images()
    made = Stack(port=free_port(), settings={"SLUICE_DEFAULT_BUCKETS": "first,second", "SLUICE_WORKERS": "2"})
    checks = threading.Thread(target=made.run_health_checks)
    checks.start()
    yield made
    made.end()
    checks.join()


@dataclass
class Load:
    """Clients that put and read objects; what was acknowledged, and what failed with when it began."""

    s3: Any
    kept: dict[str, str] = field(default_factory=dict)
    failed: list[tuple[float, str]] = field(default_factory=list)
    done: int = 0
    _over: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()

    def _client(self, number: int) -> None:
        turn = 0
        while not self._over:
            turn += 1
            key, body = f"load/{id(self)}/{number}/{turn}", os.urandom(300_000 if turn % 5 == 0 else 3000)
            began = time.monotonic()
            try:
                self.s3.put_object(Bucket="first", Key=key, Body=body)
                self.kept[key] = hashlib.sha256(body).hexdigest()
                began = time.monotonic()
                assert self.s3.get_object(Bucket="first", Key=key)["Body"].read() == body
                self.done += 1
            except (ClientError, BotoCoreError) as error:
                self.failed.append((began, f"{type(error).__name__}: {error}"))


def check_kept(s3: Any, kept: dict[str, str]) -> None:
    """Everything that was acknowledged is there."""
    assert kept
    for key, digest in kept.items():
        body = s3.get_object(Bucket="first", Key=key)["Body"].read()
        assert hashlib.sha256(body).hexdigest() == digest, key


def test_postgres_two_gateways_and_a_balancer(stack: Stack) -> None:
    _need_images("keys", "postgres", "balancer")
    stack.up()
    s3 = stack.s3()
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["first", "second"]
    s3.upload_file(str(ROOT / "README.md"), "first", "README.md")
    large = os.urandom(12 << 20)
    upload = s3.create_multipart_upload(Bucket="first", Key="large")["UploadId"]
    parts = []
    for number in (1, 2):
        body = large[(number - 1) * (6 << 20) : number * (6 << 20)]
        answer = s3.upload_part(Bucket="first", Key="large", UploadId=upload, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": answer["ETag"]})
    s3.complete_multipart_upload(Bucket="first", Key="large", UploadId=upload, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket="first", Key="large")["Body"].read() == large

    with Load(s3) as killed:
        time.sleep(SECONDS / 2)
        podman("kill", "--signal", "KILL", stack.container("gateway-1"))
        eventually(
            lambda: not stack.is_running("gateway-1")
        )  # until all its processes are gone, the kernel takes requests
        dead = time.monotonic()
        time.sleep(SECONDS)
    print(f"killed: {killed.done} rounds, failed: {killed.failed}")
    assert [text for began, text in killed.failed if began > dead] == []
    podman("start", stack.container("gateway-1"))
    eventually(lambda: stack.is_ready("gateway-1"))

    with Load(s3) as stopped:
        time.sleep(SECONDS / 2)
        podman("stop", "--time", "60", stack.container("gateway-2"))
        time.sleep(SECONDS)
    print(f"stopped: {stopped.done} rounds, failed: {stopped.failed}")
    assert stopped.failed == []

    check_kept(s3, killed.kept | stopped.kept)
    stack.down()
    stack.up()
    s3 = stack.s3()
    check_kept(s3, killed.kept | stopped.kept)
    assert s3.get_object(Bucket="first", Key="large")["Body"].read() == large


def test_single(stack: Stack) -> None:
    _need_images("single")
    stack.profile = "single"
    stack.up("single")
    s3 = stack.s3()
    s3.put_object(Bucket="second", Key="k", Body=b"kept")
    assert podman("exec", stack.container("single"), "id", "-u").strip() == "10001"
    root = subprocess.run(
        ["podman", "exec", stack.container("single"), "touch", "/opt/x"], capture_output=True, text=True, check=False
    )
    assert "Read-only file system" in root.stderr
    podman("stop", "--time", "60", stack.container("single"))
    assert podman("inspect", "--format", "{{.State.ExitCode}}", stack.container("single")).strip() == "0"
    stack.down()
    stack.up("single")
    assert stack.s3().get_object(Bucket="second", Key="k")["Body"].read() == b"kept"


def test_a_default_bucket_that_cannot_be_stops_the_gateway(stack: Stack) -> None:
    _need_images("single")
    stack.profile = "single"
    stack.settings["SLUICE_DEFAULT_BUCKETS"] = "fine,Not_Fine"
    stack.compose("up", "--detach", "single")
    eventually(lambda: "'Not_Fine' in SLUICE_DEFAULT_BUCKETS is no bucket name" in _log(stack.container("single")))


def _log(container: str) -> str:
    done = subprocess.run(["podman", "logs", container], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
