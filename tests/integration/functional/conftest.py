"""One gateway for all functional tests; each test gets buckets of its own."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.functional.identities import service
from tests.integration.functional.minio_admin import Admin
from tests.support.gateway import Gateway, client
from tests.support.places import kinds_for, placed

MASTER = base64.b64encode(bytes(range(32))).decode()
_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that use the shared gateway on the kinds of places that their marker `place` names."""
    if "gateway" in metafunc.fixturenames and "gateway" not in vars(metafunc.module):
        kinds = kinds_for(metafunc.definition.get_closest_marker("place"))
        metafunc.parametrize("gateway", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a gateway on the place of the test, with two workers, SigV2 on, and no grace for replaced data."""
    directory = tmp_path_factory.mktemp("functional")
    env = {"SLUICE_SIGV2": "on", "SLUICE_DISCARD_GRACE": "0", "SLUICE_DOMAIN": "s3.test", "SLUICE_MASTER_KEY": MASTER}
    with placed(directory, request.param) as place, Gateway(directory / "data", place=place, env=env) as running:
        yield running


@pytest.fixture(scope="session")
def s3(gateway: Gateway) -> Any:
    """boto3 as the first account."""
    return client(gateway.endpoint)


@pytest.fixture
def bucket(s3: Any, worker_id: str) -> str:
    """A new empty bucket."""
    name = f"bucket-{worker_id}-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="session")
def other(gateway: Gateway) -> Any:
    """boto3 as another account."""
    gateway.run("user", "add", "--access-key", "OTHERKEY", "--secret-key", "other-secret-0123", "--id", "other-id")
    return client(gateway.endpoint, "OTHERKEY", "other-secret-0123")


@pytest.fixture(scope="session")
def iam(gateway: Gateway) -> Any:
    """boto3 for IAM as the first account."""
    return service(gateway, "iam")


@pytest.fixture
def admin(gateway: Gateway) -> Admin:
    """The account itself, as a caller of MinIO's admin API."""
    return Admin(gateway)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"minio-{time.time_ns()}-{next(_numbers)}"
