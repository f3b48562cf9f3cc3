"""Postgres goes away and comes back under load: nothing acknowledged is lost, nothing is half done, all is refused
meanwhile, and the gateway recovers by itself."""

from __future__ import annotations

import os
import random
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.reliability.crash.ledger import Ledger
from tests.reliability.crash.workload import Clients
from tests.support import postgres
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

pytestmark = pytest.mark.crash

ROUNDS = sized(ci=3, soak=100)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """One that is stopped by these tests."""
    with postgres.running() as made:
        yield made


@pytest.fixture
def gateway(tmp_path: Path, server: postgres.Server) -> Gateway:
    """Not started yet."""
    data = tmp_path / "data"
    env = {
        "SLUICE_INDEX": server.fresh(),
        "SLUICE_RUNTIME_DIR": str(data / "index" / "run"),
        "SLUICE_DISCARD_GRACE": "0",
        "SLUICE_INDEX_TIMEOUT": "2",
    }
    return Gateway(data, env=env)


def is_ready(gateway: Gateway) -> bool:
    try:
        with urllib.request.urlopen(f"{gateway.endpoint}/-/health/ready", timeout=20) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    assert status in (200, 503)
    return bool(status == 200)


def refusal(gateway: Gateway, bucket: str) -> str:
    """The code with which a write is refused."""
    with pytest.raises(ClientError) as raised:
        client(gateway.endpoint).put_object(Bucket=bucket, Key="refused", Body=b"")
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    return str(raised.value.response["Error"]["Code"])


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_stopped_and_started_under_load(gateway: Gateway, server: postgres.Server, mode: str) -> None:
    rng = random.Random(mode)
    ledger = Ledger("stopped")
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        with Clients(ledger, gateway.endpoint, threads=4, seed=1, persist=True) as clients:
            for _ in range(ROUNDS):
                clients.wait_for(ledger.acknowledged + 30)
                clients.wait(rng.uniform(0, 0.5))
                server.stop(mode)
                try:
                    eventually(lambda: not is_ready(gateway))
                    assert refusal(gateway, ledger.bucket) in ("ServiceUnavailable", "SlowDown")
                finally:
                    server.start()
                eventually(lambda: is_ready(gateway))
            clients.wait_for(ledger.acknowledged + 30)
        assert clients.faults == []
        assert ledger.check(client(gateway.endpoint)).wrong == []
        assert gateway.stop() == 0
        gateway.start()
        assert ledger.check(client(gateway.endpoint)).wrong == []
        gateway.stop()
        report = gateway.run("fsck", "--json", check=False)
        assert report.returncode == 0, report.stdout + report.stderr


def test_the_gateway_is_killed(gateway: Gateway) -> None:
    """kill -9 of all its processes under load, as tests/reliability/crash/test_kill.py does on SQLite."""
    rng = random.Random(3)
    ledger = Ledger("killed")
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        for number in range(ROUNDS):
            with Clients(ledger, gateway.endpoint, threads=4, seed=number, rewrite=True) as clients:
                clients.wait_for(ledger.acknowledged + 30)
                clients.wait(rng.uniform(0, 1))
                gateway.kill()
            assert clients.faults == []
            gateway.start()
            assert ledger.check(client(gateway.endpoint)).wrong == []
        report = gateway.run("fsck", "--json", check=False)
        assert report.returncode == 0, report.stdout + report.stderr


def test_a_server_that_does_not_answer_counts_as_away(gateway: Gateway, server: postgres.Server) -> None:
    """Stopped by a signal, with all of its processes: connections stay, and nothing comes."""
    ledger = Ledger("silent")
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        with Clients(ledger, gateway.endpoint, threads=4, seed=1, persist=True, rewrite=True) as clients:
            clients.wait_for(ledger.acknowledged + 30)
            processes = server.processes()
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            try:
                eventually(lambda: not is_ready(gateway))
                assert refusal(gateway, ledger.bucket) in ("ServiceUnavailable", "SlowDown")
            finally:
                for process in processes:
                    os.kill(process, signal.SIGCONT)
            eventually(lambda: is_ready(gateway))
            clients.wait_for(ledger.acknowledged + 30)
        assert clients.faults == []
        assert ledger.check(client(gateway.endpoint)).wrong == []
