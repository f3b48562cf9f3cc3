"""Clients that do random things to few keys through all gateways, and remember what they were told."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping
from itertools import count

from tests.reliability.cluster.calls import Caller, Wire, Wrong
from tests.reliability.cluster.histories import ABSENT, IF_NONE_MATCH, Kind, ObjectChange, Operation
from tests.reliability.cluster.listings import Listing
from tests.reliability.cluster.site import BUCKET, Cluster

KEYS = 5
"""Keys that are in use at one time."""
LENGTH = 80
"""Operations on a key until another takes its place: so that histories stay short enough to be checked."""
SOURCES = 4
LARGE = 200_000
"""Bytes of a body that gets a file of its own."""


class Crowd:
    """`threads` clients that work until `stop`. Histories are by key; `faults` are what must not have been answered."""

    def __init__(self, cluster: Cluster, threads: int, seed: int) -> None:
        self._cluster = cluster
        self._seed = seed
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._bodies: dict[str, bytes] = {}
        self._keys: list[str] = []
        self._begun: dict[str, int] = defaultdict(int)
        self.histories: dict[str, list[Operation]] = defaultdict(list)
        self.listings: list[Listing] = []
        self.faults: list[str] = []
        self._sources: dict[str, str] = {}
        caller = self._caller("maker")
        for number in range(SOURCES):
            key, body = f"{seed}/source-{number}", self._body(random.Random(number))
            made = caller.put(0, key, body)
            assert made.told is ObjectChange.DONE
            self._sources[key] = made.value
            self.histories[key].append(made)
        caller.wire.close()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]
        self._threads.append(threading.Thread(target=self._list))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, when each has its last answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a client hangs"

    @property
    def answered(self) -> int:
        """Operations of known outcome so far."""
        with self._lock:
            return sum(not one.is_open for history in self.histories.values() for one in history)

    def _caller(self, name: str) -> Caller:
        return Caller(Wire(self._cluster.endpoints), self._bodies, name)

    def _work(self, number: int) -> None:
        rng = random.Random(f"{self._seed}/{number}")
        caller = self._caller(f"client {number}")
        seen: dict[str, str] = {}
        try:
            while not self._stop.is_set():
                key = self._key(rng)
                gateway = rng.randrange(len(self._cluster.gateways))
                made = self._act(rng, caller, gateway, key, seen.get(key, ABSENT))
                if made is None:
                    self._stop.wait(0.05)
                    continue
                if made.told is ObjectChange.DONE:
                    seen[key] = made.value
                with self._lock:
                    self.histories[key].append(made)
                if made.is_open:
                    self._stop.wait(0.05)
        except Wrong as wrong:
            self.faults.append(str(wrong))
            self._stop.set()
        except BaseException:
            self.faults.append(traceback.format_exc())
            self._stop.set()
        finally:
            caller.wire.close()

    def _key(self, rng: random.Random) -> str:
        with self._lock:
            if len(self._keys) < KEYS:
                self._keys.append(f"{self._seed}/key-{next(self._numbers)}")
            key = rng.choice(self._keys)
            self._begun[key] += 1
            if self._begun[key] >= LENGTH:
                self._keys.remove(key)
            return key

    def _act(self, rng: random.Random, caller: Caller, gateway: int, key: str, last: str) -> Operation | None:
        act = rng.random()
        if act < 0.3:
            return caller.read(gateway, key)
        if act < 0.4:
            return caller.read(gateway, key, "HEAD")
        condition = rng.choice([None, IF_NONE_MATCH, last or IF_NONE_MATCH, last or None])
        if act < 0.65:
            return caller.put(gateway, key, self._body(rng), condition)
        if act < 0.75:
            return caller.delete(gateway, key, None if condition == IF_NONE_MATCH else condition)
        if act < 0.87:
            return caller.copy(gateway, key, *rng.choice(list(self._sources.items())), condition)
        body = self._body(rng)
        upload = caller.upload(gateway, key, body)
        if upload is None:
            return None
        return caller.complete(rng.randrange(len(self._cluster.gateways)), key, upload, body, condition)

    def _body(self, rng: random.Random) -> bytes:
        size = LARGE if rng.random() < 0.1 else rng.randrange(1, 9000)
        return (b"%d/%d " % (self._seed, next(self._numbers))).ljust(size, b".")

    def _list(self) -> None:
        rng = random.Random(f"{self._seed}/list")
        try:
            while not self._stop.wait(0.5):
                found = self._list_all(rng)
                if found is not None:
                    self.listings.append(found)
        except BaseException:
            self.faults.append(traceback.format_exc())

    def _list_all(self, rng: random.Random) -> Listing | None:
        """All keys, page by page, each through another gateway."""
        found: dict[str, str] = {}
        begun = time.monotonic()
        after = ""
        while True:
            s3 = self._cluster.s3(rng.randrange(len(self._cluster.gateways)))
            try:
                page = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{self._seed}/", StartAfter=after, MaxKeys=50)
            except Exception:
                return None  # that gateway is gone just now
            for entry in page.get("Contents", []):
                found[entry["Key"]] = entry["ETag"].strip('"')
                after = entry["Key"]
            if not page["IsTruncated"]:
                return Listing(begun, time.monotonic(), found)

    def finish(self) -> None:
        """Read every key once more, so that what became of it is checked, too."""
        caller = self._caller("last")
        for number, (key, history) in enumerate(sorted(self.histories.items())):
            history.append(caller.read(number % len(self._cluster.gateways), key))
        caller.wire.close()


def told(histories: Mapping[str, list[Operation]]) -> str:
    """How many operations of which outcome there are."""
    every = [one for history in histories.values() for one in history]
    by_kind = ", ".join(f"{sum(one.kind is kind for one in every)} {kind.value}s" for kind in Kind)
    by_told = ", ".join(f"{sum(one.told is told for one in every)} {told.value}" for told in ObjectChange)
    return f"{len(histories)} keys, {len(every)} operations ({by_kind}; {by_told})"
