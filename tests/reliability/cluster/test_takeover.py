"""Another gateway takes over what only one may do; nothing is lost, and nothing is collected that is held."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reliability.cluster.site import BUCKET, LIMIT, Cluster, cluster
from tests.reliability.lab.calls import Caller, Wire
from tests.reliability.lab.checkers.histories import ABSENT, Operation, Outcome
from tests.support.environment import sized
from tests.support.raw_http import Client, make_request
from tests.support.waiting import eventually

pytestmark = pytest.mark.crash

LEASE = "store:default"
KEYS = sized(ci=120, soak=1200)
SLACK = 60.0
"""Seconds over the limit that the machine may be busy with other things."""


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as made:
        made.wait_until(lambda: made.holder(LEASE) is not None, "somebody holds the lease")
        yield made


class Work:
    """Writes and overwrites through gateways that live, so that much waits for its discard, and checks all of it."""

    def __init__(self, found: Cluster) -> None:
        self.found = found
        self.rng = random.Random(3)
        self.bodies: dict[str, bytes] = {}
        self.caller = Caller(Wire(found.endpoints, BUCKET), self.bodies, "worker")
        self.held: dict[str, str] = {}

    def write(self, gateways: list[int], count: int) -> None:
        for _ in range(count):
            key = f"key-{self.rng.randrange(KEYS // 3)}"
            size = 150_000 if self.rng.random() < 0.1 else self.rng.randrange(20_000)
            body = self.rng.randbytes(size)
            self.held[key] = self.insist(lambda at, key=key, body=body: self.caller.put(at, key, body), gateways).value
            if self.rng.random() < 0.2:
                self.insist(lambda at, key=key: self.caller.delete(at, key), gateways)
                del self.held[key]

    def insist(self, call: Callable[[int], Operation], gateways: list[int]) -> Operation:
        """Until it is answered: on a busy machine also a gateway that lives may be taken for dead, and begin anew."""

        def done() -> Operation | None:
            made = call(self.rng.choice(gateways))
            return made if made.outcome is Outcome.DONE else None

        return eventually(done, "an answer")

    def check(self, gateways: list[int]) -> None:
        for number, (key, etag) in enumerate(sorted(self.held.items())):
            found = self.insist(lambda at, key=key: self.caller.read(at, key), gateways[number % len(gateways) :])
            assert found.value == etag, key

    def settle(self) -> None:
        """All that was replaced is collected once, the dead are swept, and the books are right."""
        found = self.found
        found.wait_until(lambda: found.sql("SELECT count(*) FROM discards") == "0", "the queue is empty")
        writers = sum(gateway.workers for gateway in found.gateways if gateway.process is not None)
        found.wait_until(lambda: found.sql("SELECT count(*) FROM writers") == str(writers), "the dead are swept")
        report = found.fsck()
        assert report["code"] == 0, report
        self.caller.wire.close()


def others(found: Cluster, holder: int) -> list[int]:
    return [number for number in range(len(found.gateways)) if number != holder]


def taken_over(found: Cluster, holder: int) -> float:
    """Wait until another gateway holds the lease; how many seconds that took."""
    return found.wait_until(
        lambda: found.holder(LEASE) not in (None, holder), "another gateway took over", LIMIT + SLACK
    )


def test_the_holder_is_killed(found: Cluster) -> None:
    work = Work(found)
    work.write([0, 1, 2], KEYS)
    holder = found.holder(LEASE)
    assert holder is not None
    found.gateways[holder].kill()
    work.write(others(found, holder), KEYS // 2)
    print(f"taken over after {taken_over(found, holder):.1f} s")
    work.write(others(found, holder), KEYS // 2)
    work.check(others(found, holder))
    work.settle()


def test_the_holder_is_stopped_and_goes_on(found: Cluster) -> None:
    """What it was doing when it was stopped it may finish on the mount, but in the index it cannot."""
    work = Work(found)
    for _ in range(sized(ci=2, soak=10)):
        work.write([0, 1, 2], KEYS)
        holder = found.holder(LEASE)
        assert holder is not None
        before = found.sql(f"SELECT term FROM leases WHERE name = '{LEASE}'")
        found.freeze(holder)
        work.write(others(found, holder), KEYS // 2)
        took = taken_over(found, holder)
        work.write(others(found, holder), KEYS // 2)
        time.sleep(2)  # its successor collects
        found.thaw(holder)
        print(f"taken over after {took:.1f} s, term {before} then {found.sql('SELECT max(term) FROM leases')}")
        found.wait_until(lambda gateway=holder: is_new(found, gateway), "its workers were replaced")
        work.caller.wire.close()
        work.write([0, 1, 2], KEYS // 2)
        work.check([0, 1, 2])
    work.settle()


@pytest.mark.parametrize("size", [1000, 3_000_000], ids=["record", "file"])
def test_what_a_stopped_gateway_was_writing_is_never_committed(found: Cluster, size: int) -> None:
    """Its writer was declared dead and swept before the rest of the body came (law 5)."""
    url = found.s3(2).generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "late"})
    with Client(url, patience=120) as late:
        late.begin(make_request("PUT", url, body=b"x" * (size // 2), length=size))
        time.sleep(1)  # most likely the worker waits for the rest by now; any other moment must do too
        names = {path.name for path in (found.runtime(found.gateways[2]) / "writers").glob("*.lock")}
        found.freeze(2)
        found.wait_until(
            lambda: not names & set(found.sql("SELECT lock_name FROM writers WHERE state = 'live'").splitlines()),
            "its writers are declared dead",
        )
        found.thaw(2)
        try:
            late.send(b"x" * (size - size // 2))
            status = late.answer().status
        except OSError:
            status = 503
        assert status == 503
    found.wait_until(lambda: is_new(found, 2), "its workers were replaced")
    work = Work(found)
    for gateway in range(3):
        assert work.insist(lambda at: work.caller.read(at, "late"), [gateway]).value == ABSENT
    work.settle()


def is_new(found: Cluster, number: int) -> bool:
    """Whether every worker of a gateway that the index knows is live."""
    names = [path.name for path in (found.runtime(found.gateways[number]) / "writers").glob("*.lock")]
    states = found.sql("SELECT lock_name, state FROM writers").splitlines()
    known = dict(line.split("|") for line in states)
    return sum(known.get(name) == "live" for name in names) == found.gateways[number].workers
