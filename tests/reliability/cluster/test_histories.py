"""Random operations through all gateways, while gateways are killed and Postgres goes away: every history is right."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.reliability.cluster.crowd import Crowd, told
from tests.reliability.cluster.listings import faults
from tests.reliability.cluster.registers import check
from tests.reliability.cluster.site import BUCKET, Cluster, cluster
from tests.support.environment import sized
from tests.support.gateway import Gateway

pytestmark = pytest.mark.crash

SECONDS = sized(ci=20.0, soak=1800.0)
ROUND = 60.0
"""Seconds after which histories are checked and others begun."""


def disturb(found: Cluster, rng: random.Random) -> str:
    """Kill something, and start it again after a while."""
    act = rng.random()
    if act < 0.6:
        number = rng.randrange(len(found.gateways))
        found.gateways[number].kill()
        time.sleep(rng.uniform(0, 3))
        start(found.gateways[number])
        return f"gateway {number} killed"
    if act < 0.75:
        number = rng.randrange(len(found.gateways))
        found.freeze(number)
        time.sleep(rng.uniform(1, 9))
        found.thaw(number)
        return f"gateway {number} stopped for a while"
    mode = rng.choice(["immediate", "fast"])
    found.postgres.stop(mode)
    time.sleep(rng.uniform(0, 3))
    found.postgres.start()
    return f"Postgres stopped ({mode}) and started"


def start(gateway: Gateway) -> None:
    """As a supervisor does: where much else goes on, what was killed may hold its lock still, or Postgres be slow."""
    for left in reversed(range(5)):
        try:
            gateway.start()
            return
        except RuntimeError:
            if not left:
                raise


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize("versioned", [False, True])
def test_every_history_is_linearizable(tmp_path: Path, versioned: bool) -> None:
    rng = random.Random(5)
    with cluster(tmp_path) as found:
        if versioned:
            found.s3(0).put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        until = time.monotonic() + (SECONDS / 2 if versioned else SECONDS)
        for number in range(10_000):
            crowd = Crowd(found, threads=6, seed=number)
            crowd.start()
            end = min(until, time.monotonic() + ROUND)
            acts = []
            while time.monotonic() < end and not crowd.faults:
                time.sleep(rng.uniform(1, 5))
                acts.append(disturb(found, rng))
            crowd.stop()
            assert crowd.faults == []
            found.wait_until(lambda: all(map(answers, range(3), [found] * 3)), "all gateways answer")
            crowd.finish()
            print(f"round {number}: {told(crowd.histories)}, {len(crowd.listings)} listings; {', '.join(acts)}")
            for key, history in crowd.histories.items():
                verdict = check(history)
                assert verdict, (key, verdict, sorted(history, key=lambda one: one.begun))
            for listing in crowd.listings:
                assert faults(listing, crowd.histories) == []
            if time.monotonic() >= until:
                break
        settled(found)


def answers(number: int, found: Cluster) -> bool:
    try:
        return bool(found.s3(number).list_buckets())
    except Exception:
        return False


def settled(found: Cluster) -> None:
    """In the end nothing is missing, miscounted or left over."""
    found.wait_until(lambda: found.sql("SELECT count(*) FROM discards") == "0", "all that was replaced is taken away")
    found.wait_until(
        lambda: found.sql("SELECT count(*) FROM writers") == str(sum(one.workers for one in found.gateways)),
        "all dead writers are swept",
    )
    report = found.fsck()
    assert report["code"] == 0, report
