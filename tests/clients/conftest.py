"""One gateway for all clients of a test process, its buckets, and how to run a command against it."""

from __future__ import annotations

import base64
import itertools
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.files import NAMES, SIZES, Run, write
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client


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
