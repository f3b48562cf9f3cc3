"""Conditional changes are a compare-and-swap, whichever gateway they go through."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.reliability.cluster.site import BUCKET, Cluster
from tests.reliability.lab.calls import Caller, Wire
from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Operation, Outcome
from tests.support.environment import sized

CLIENTS = 32
ROUNDS = sized(ci=20, soak=500)

Act = Callable[[str | None], Operation]


class Racers:
    """32 clients that act at one moment, spread over the gateways."""

    def __init__(self, cluster: Cluster) -> None:
        self._gateways = len(cluster.gateways)
        self.bodies: dict[str, bytes] = {}
        self.callers = [
            Caller(Wire(cluster.endpoints, BUCKET), self.bodies, f"racer {number}") for number in range(CLIENTS)
        ]
        self.source = b"what is copied"
        self.source_etag = self.callers[0].put(0, "source", self.source).value

    def ready(self, key: str, round_: int, *, deletes: bool) -> list[Act]:
        """What each will do: PUT, Copy, Complete, and DELETE, in turn."""
        acts: list[Act] = []
        for number, caller in enumerate(self.callers):
            gateway, body = number % self._gateways, b"%d of round %d" % (number, round_)
            kind = ("put", "copy", "complete", "delete" if deletes else "put")[number // self._gateways % 4]
            if kind == "complete":
                upload = caller.upload(gateway, key, body)
                assert upload is not None
                acts.append(lambda c, a=caller, g=gateway, u=upload, b=body: a.complete(g, key, u, b, c))
            elif kind == "copy":
                acts.append(lambda c, a=caller, g=gateway: a.copy(g, key, "source", self.source_etag, c))
            elif kind == "delete":
                acts.append(lambda c, a=caller, g=gateway: a.delete(g, key, c))
            else:
                acts.append(lambda c, a=caller, g=gateway, b=body: a.put(g, key, b, c))
        return acts

    def race(self, acts: list[Act], condition: str) -> list[Operation]:
        """Let all of them act under one condition."""
        barrier = threading.Barrier(len(acts))
        done: list[Operation | None] = [None] * len(acts)

        def run(number: int, act: Act) -> None:
            barrier.wait()
            done[number] = act(condition)

        threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [one for one in done if one is not None]

    def close(self) -> None:
        """Close every connection."""
        for caller in self.callers:
            caller.wire.close()


@pytest.fixture
def racers(shared: Cluster) -> Iterator[Racers]:
    made = Racers(shared)
    yield made
    made.close()


@pytest.mark.timeout(ROUNDS * 20)
def test_one_of_32_replaces_or_deletes(racers: Racers) -> None:
    """PUTs, Copies, Completes and Deletes with If-Match of one ETag."""
    won: Counter[str] = Counter()
    key = "swapped"
    reader = racers.callers[0]
    for number in range(ROUNDS):
        before = reader.put(number % 3, key, b"begin of round %d" % number).value
        done = racers.race(racers.ready(key, number, deletes=True), before)
        assert len(done) == CLIENTS
        (winner,) = [one for one in done if one.outcome is Outcome.DONE]
        lost = Outcome.MISSING if winner.value == ABSENT else Outcome.REFUSED
        assert Counter(one.outcome for one in done) == {Outcome.DONE: 1, lost: CLIENTS - 1}
        for gateway in range(3):
            assert reader.read(gateway, key).value == winner.value
        won[winner.who.split()[-1]] += 1
    print(f"{ROUNDS} rounds, won by {dict(won)}")


@pytest.mark.timeout(ROUNDS * 20)
def test_one_of_32_creates(racers: Racers) -> None:
    """PUTs, Copies and Completes with If-None-Match: *."""
    reader = racers.callers[0]
    for number in range(ROUNDS):
        key = f"created-{number}"
        done = racers.race(racers.ready(key, number, deletes=False), IF_NONE_MATCH)
        assert Counter(one.outcome for one in done) == {Outcome.DONE: 1, Outcome.REFUSED: CLIENTS - 1}
        (winner,) = [one for one in done if one.outcome is Outcome.DONE]
        for gateway in range(3):
            assert reader.read(gateway, key).value == winner.value
