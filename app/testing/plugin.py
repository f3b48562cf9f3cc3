"""Fixtures of pytest: an S3 server for tests, clients and buckets of it, and faults of its disk.

pytest imports this module in every run where it is installed: it imports the rest when a test first needs a server.
Each process of pytest-xdist has a server of its own, so that the faults of one test are not those of another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sluice_s3.testing.endpoint import Endpoint
    from sluice_s3.testing.server import Server

LOG_BYTES = 8192
"""The end of what the server printed during a failed test, which its report shows."""
_KEPT = pytest.StashKey[list[str]]()
_LOG_START = pytest.StashKey[int]()
_SERVER = pytest.StashKey["Server"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("sluice", "S3 server for tests (sluice-s3)")
    group.addoption(
        "--sluice-url",
        metavar="URL",
        help="use a running S3 server with the keys in SLUICE_ROOT_ACCESS_KEY and SLUICE_ROOT_SECRET_KEY",
    )
    group.addoption("--sluice-keep", action="store_true", help="keep the data and the buckets of the tests")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the list of what `--sluice-keep` kept."""
    config.stash[_KEPT] = []


@contextmanager
def _started(config: pytest.Config, settings: dict[str, Any]) -> Iterator[Server]:
    from sluice_s3.testing.server import Server

    keep = bool(config.getoption("--sluice-keep"))
    with Server(keep=keep, **settings) as server:
        yield server
    if keep:
        config.stash[_KEPT].append(f"sluice serve --config {server.config}")


def _running(url: str, factory: pytest.TempPathFactory) -> Endpoint:
    """Return the server of `--sluice-url`. The developer's own AWS keys are never used."""
    from sluice_s3.testing.endpoint import Endpoint

    try:
        keys = os.environ["SLUICE_ROOT_ACCESS_KEY"], os.environ["SLUICE_ROOT_SECRET_KEY"]
    except KeyError as error:
        raise pytest.UsageError(f"--sluice-url needs the server's keys: set {error.args[0]}") from None
    region = os.environ.get("SLUICE_REGION") or "us-east-1"
    return Endpoint(url.rstrip("/"), *keys, region, factory.mktemp("sluice"))


@pytest.fixture(scope="session")
def sluice(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Start an S3 server for all tests: `endpoint`, `access_key`, `secret_key`, `region`, `env` and `client()`."""
    url = pytestconfig.getoption("--sluice-url")
    if url:
        yield _running(url, tmp_path_factory)
        return
    with _started(pytestconfig, {}) as server:
        pytestconfig.stash[_SERVER] = server
        yield server
        del pytestconfig.stash[_SERVER]


@pytest.fixture(scope="session")
def s3(sluice: Endpoint) -> Any:
    """Return a boto3 client of the server, which attempts each request once."""
    pytest.importorskip("boto3", reason="the fixture s3 needs boto3: pip install sluice-s3[pytest]")
    return sluice.client()


@pytest.fixture
def s3_bucket(request: pytest.FixtureRequest, s3: Any) -> Iterator[str]:
    """Make a bucket for the test and return its name; it is removed with all in it."""
    from sluice_s3.testing.buckets import bucket_name, remove_bucket

    name = bucket_name(request.node.name)
    s3.create_bucket(Bucket=name)
    yield name
    if not request.config.getoption("--sluice-keep"):
        remove_bucket(s3, name)


@pytest.fixture
def sluice_env(sluice: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Return the server; until the test ends every AWS SDK in this process finds it by the environment."""
    for name, value in sluice.env.items():
        monkeypatch.setenv(name, value)
    # made of another environment: boto3 keeps it for `boto3.client`
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None, raising=False)
    return sluice


@pytest.fixture
def sluice_factory(pytestconfig: pytest.Config) -> Iterator[Callable[..., Server]]:
    """Start servers with settings of their own, such as `sluice_factory(region="eu-west-1")`, until the test ends."""
    with ExitStack() as running:
        yield lambda **settings: running.enter_context(_started(pytestconfig, settings))


@pytest.fixture
def sluice_fault(sluice: Any) -> Iterator[Callable[..., ExitStack]]:
    """Set a fault of the server's disk until the test ends: "disk full", "slow fsync" or "read-only"."""
    if not hasattr(sluice, "fault"):
        pytest.skip("faults can be set in a server that the plugin starts, not in that of --sluice-url")
    yield sluice.fault
    sluice.clear_fault()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note how much the server has printed before the test."""
    server = item.config.stash.get(_SERVER, None)
    item.stash[_LOG_START] = 0 if server is None else server.log.stat().st_size


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show in the report of a failed test what the server printed meanwhile: its requests and errors."""
    report = yield
    server = item.config.stash.get(_SERVER, None)
    if report.failed and server is not None and "sluice" in getattr(item, "fixturenames", ()):
        with server.log.open("rb") as log:
            log.seek(item.stash.get(_LOG_START, 0))
            printed = log.read()[-LOG_BYTES:].decode(errors="replace")
        report.sections.append(("Requests that sluice answered", printed))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report what was kept to the process of pytest-xdist that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["sluice_kept"] = session.config.stash[_KEPT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what another process reports."""
    node.config.stash[_KEPT].extend(getattr(node, "workeroutput", {}).get("sluice_kept", ()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how to serve what was kept."""
    for line in config.stash[_KEPT]:
        terminalreporter.write_line(f"kept: {line}")
