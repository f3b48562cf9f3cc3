"""kill -9 under load: what was acknowledged is there, and nothing else."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.crash.ledger import Ledger
from tests.reliability.crash.workload import Clients
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.places import placed

pytestmark = pytest.mark.crash

ROUNDS = sized(ci=3, soak=200)
HASTY = {"SLUICE_DISCARD_GRACE": "0", "SLUICE_PACK_SIZE": str(1 << 20)}
"""Packs are full soon, and what died is punched and compacted during the run."""


def packs(gateway: Gateway) -> set[str]:
    """Names of the packs."""
    return {path.name for path in (gateway.store / "data").glob("*/*.pack")}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Not started yet."""
    with placed(tmp_path) as place:
        yield Gateway(tmp_path / "data", env=HASTY, place=place)


def rewritable(gateway: Gateway) -> bool:
    """Whether what the gateway has can be appended to and renamed."""
    return gateway.place.store.get("layout") != "tree"


@pytest.mark.parametrize("versioned", [False, True])
def test_killed_at_any_time(gateway: Gateway, versioned: bool) -> None:
    """All processes at once, then restart on the same data."""
    if versioned and not rewritable(gateway):
        pytest.skip("plain files have one version")
    rng = random.Random(1)
    ledger = Ledger("killed")
    seen: set[str] = set()
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        if versioned:
            status = {"Status": "Enabled"}
            client(gateway.endpoint).put_bucket_versioning(Bucket=ledger.bucket, VersioningConfiguration=status)
        rewrite = rewritable(gateway) and not versioned
        for number in range(ROUNDS):
            before = set(ledger.possible)
            with Clients(ledger, gateway.endpoint, threads=4, seed=number, rewrite=rewrite) as clients:
                clients.wait_for(ledger.acknowledged + 30)
                clients.wait(rng.uniform(0, 1.5))
                gateway.kill()
            assert clients.faults == []
            seen |= packs(gateway)
            gateway.start()
            touched = {key for key in ledger.possible if key not in before or "/key-" in key}
            assert ledger.check(client(gateway.endpoint), touched).wrong == []
            assert ledger.check_versions(client(gateway.endpoint)) == []
        assert bool(ledger.versions) == versioned
        assert ledger.check(client(gateway.endpoint)).wrong == []
        report = gateway.run("fsck", "--json", check=False)
        assert report.returncode == 0, report.stdout + report.stderr
        if gateway.place.store.get("layout") != "tree":
            assert len(seen) > ROUNDS, "every life of a worker has packs of its own"
    print(f"{ROUNDS} rounds, {ledger.acknowledged} acknowledged operations")


def test_a_killed_worker_is_replaced(gateway: Gateway) -> None:
    """One worker at a time, while the other goes on: its writes that were not acknowledged are old or new."""
    rng = random.Random(2)
    ledger = Ledger("killed")
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        with Clients(ledger, gateway.endpoint, threads=4, seed=1, persist=True) as clients:
            for _ in range(ROUNDS):
                # on a slow mount a worker needs its time before it answers again
                clients.wait_for(ledger.acknowledged + 5)
                clients.wait(rng.uniform(0.5, 1.5))
                if children := gateway.children():
                    os.kill(rng.choice(children), signal.SIGKILL)
            clients.wait(2)
        assert clients.faults == []
        assert ledger.acknowledged >= 5 * ROUNDS
        assert ledger.check(client(gateway.endpoint)).wrong == []
        assert gateway.stop() == 0
        gateway.start()
        assert ledger.check(client(gateway.endpoint)).wrong == []
        report = gateway.run("fsck", "--json", check=False)
        assert report.returncode == 0, report.stdout + report.stderr
