"""Clients that do what a plan says and enter the answers in the ledger."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from tests.reliability.lab import plan
from tests.reliability.lab.calls import Caller, Wire, Wrong
from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Kind, Operation, Outcome
from tests.reliability.lab.checkers.listings import Listing
from tests.reliability.lab.ledger import Ledger
from tests.reliability.lab.plan import PLAIN, Episode, Step

PATIENCE_SECONDS = 20.0
"""How long a client waits for an answer: longer than a gateway needs to say that it has none."""
PAUSE_SECONDS = 0.1
"""After an operation without an answer."""
ENCRYPTED = {"x-amz-server-side-encryption": "AES256"}
PAGE = 40


class Client:
    """One client of an episode."""

    def __init__(self, number: int, episode: Episode, endpoints: Sequence[str], ledger: Ledger, day: float) -> None:
        self._number = number
        self._ledger = ledger
        self._day = day
        self._caller = Caller(Wire(endpoints, patience=PATIENCE_SECONDS), ledger.bodies, f"client {number}")
        self._steps = plan.steps(episode, number, len(endpoints))
        self._prefix = f"{episode.fault}/"
        self._known: dict[str, str] = {}
        self._mine: list[str] = []
        self._count = 0
        self._name = f"{episode.seed}/{number}"
        self._acts: dict[str, Callable[[Step, str], Operation | None]] = {
            "get": lambda step, key: self._caller.read(step.gateway, key),
            "head": lambda step, key: self._caller.read(step.gateway, key, "HEAD"),
            "put": self._put,
            "encrypted": lambda step, key: self._put(step, key, ENCRYPTED),
            "delete": lambda step, key: self._caller.delete(step.gateway, key, self._condition(step, key, "none")),
            "copy": self._copy,
            "multipart": self._multipart,
            "rename": self._rename,
            "remove": self._remove,
            "lock": self._lock,
            "due": self._due,
            "stay": self._stay,
            "look": self._look,
            "list": self._list,
        }

    def act(self) -> bool:
        """Do the next step. Returns whether there was an answer that says something."""
        step = next(self._steps)
        self._count += 1
        key = f"{step.bucket}/{step.key}"
        made = self._acts[step.kind](step, key)
        if made is None:
            return True
        if step.kind not in ("stay", "look"):
            made = self._ledger.enter(key, made)
        if made.outcome is Outcome.DONE:
            self._known[key] = made.value
        return made.outcome not in (Outcome.UNKNOWN, Outcome.UNSENT)

    def close(self) -> None:
        """Close its connections."""
        self._caller.wire.close()

    def _body(self, size: int) -> bytes:
        return f"{self._name}/{self._count} ".encode().ljust(size, b".")

    def _condition(self, step: Step, key: str, none: str = "") -> str | None:
        """The condition of a step, by what this client knows; `none` when it must not be If-None-Match."""
        known = self._known.get(key, ABSENT)
        if step.condition == "mine" and known != ABSENT:
            return known
        return IF_NONE_MATCH if step.condition and not none else None

    def _put(self, step: Step, key: str, headers: dict[str, str] | None = None) -> Operation:
        return self._caller.put(step.gateway, key, self._body(step.size), self._condition(step, key), headers)

    def _copy(self, step: Step, key: str) -> Operation:
        source, etag = list(self._ledger.sources.items())[int(step.pick * plan.SOURCES)]
        return self._caller.copy(step.gateway, key, source, etag, self._condition(step, key))

    def _multipart(self, step: Step, key: str) -> Operation | None:
        body = self._body(step.size)
        upload = self._caller.upload(step.gateway, key, body)
        if upload is None:
            return None
        return self._caller.complete(step.gateway, key, upload, body, self._condition(step, key))

    def _rename(self, step: Step, key: str) -> Operation | None:
        """A key that nobody else knows, to one that all know."""
        source = f"{self._prefix}moved-{self._number}-{self._count}"
        where = f"{PLAIN}/{source}"
        put = self._ledger.enter(where, self._caller.put(step.gateway, where, self._body(step.size)))
        if put.outcome is not Outcome.DONE:
            return None
        made = self._caller.rename(step.gateway, key, source, put.value)
        self._ledger.enter(where, made._replace(kind=Kind.DELETE, value=ABSENT))
        return made

    def _remove(self, step: Step, key: str) -> None:
        if versions := self._ledger.noncurrent(key):
            self._ledger.enter_removal(self._caller.remove(step.gateway, key, versions[int(step.pick * len(versions))]))

    def _lock(self, step: Step, key: str) -> Operation:
        body = self._body(min(step.size, 9000))
        until = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        headers = {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}
        if step.pick < 0.3:
            headers["x-amz-object-lock-legal-hold"] = "ON"
        else:
            mode = "COMPLIANCE" if step.pick < 0.6 else "GOVERNANCE"
            headers |= {"x-amz-object-lock-mode": mode, "x-amz-object-lock-retain-until-date": until}
        made = self._caller.put(step.gateway, key, body, None, headers)
        if made.outcome is Outcome.DONE and made.ended < self._ledger.cut_at:
            self._ledger.enter_lock(key, made)
        return made

    def _due(self, step: Step, key: str) -> Operation:
        made = self._caller.put(step.gateway, key, self._body(min(step.size, 9000)))
        if made.outcome is Outcome.DONE and made.ended < self._ledger.cut_at:
            self._ledger.enter_due(key, self._day, made)
            self._mine.append(key)
        return made

    def _stay(self, step: Step, key: str) -> Operation:
        """Two versions, of which the rules take the first one."""
        self._ledger.enter(key, self._caller.put(step.gateway, key, self._body(step.size // 2 + 1)))
        return self._ledger.enter(key, self._caller.put(step.gateway, key, self._body(step.size)))

    def _look(self, step: Step, key: str) -> Operation | None:
        """At what is due, but not yet."""
        if not self._mine:
            return None
        key = self._mine[int(step.pick * len(self._mine))]
        return self._ledger.enter(key, self._caller.read(step.gateway, key))

    def _list(self, step: Step, key: str) -> None:
        """All keys of the episode in a bucket, page by page, each through the next gateway."""
        found = list_all(self._caller.wire, step.gateway, step.bucket, self._prefix)
        if found is not None:
            self._ledger.enter_listing(f"{step.bucket}/{self._prefix}", found)


def list_all(wire: Wire, gateway: int, bucket: str, prefix: str) -> Listing | None:
    """A whole listing; None when a page was not answered."""
    found: dict[str, str] = {}
    begun = time.monotonic()
    after = ""
    while True:
        where = f"{bucket}?list-type=2&max-keys={PAGE}&prefix={prefix.replace('/', '%2F')}"
        answer = wire.call(gateway, "GET", where + (f"&start-after={after.replace('/', '%2F')}" if after else ""))
        if answer.status in (-1, 0, 503):
            return None
        if answer.status != 200:
            raise Wrong(f"LIST of {bucket}: {answer.status} {answer.body[:300]!r}")
        for entry in answer.tree().iter("Contents"):
            after = entry.findtext("Key", "")
            found[f"{bucket}/{after}"] = entry.findtext("ETag", "").strip('"')
        if answer.all("IsTruncated") == ["false"]:
            return Listing(begun, time.monotonic(), found)
        gateway = (gateway + 1) % wire.gateways


class Crowd:
    """The clients of an episode, each in a thread, until `stop`."""

    def __init__(self, episode: Episode, endpoints: Sequence[str], ledger: Ledger, day: float) -> None:
        self._ledger = ledger
        self._stop = threading.Event()
        self._gate = threading.Event()
        self._idle = threading.Condition()
        self._active = 0
        made = [Client(number, episode, endpoints, ledger, day) for number in range(plan.CLIENTS)]
        self._threads = [threading.Thread(target=self._work, args=(client,), daemon=True) for client in made]

    def start(self) -> None:
        """Begin."""
        self._gate.set()
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Return when nothing runs any more."""
        self._gate.clear()
        with self._idle:
            self._idle.wait_for(lambda: not self._active, PATIENCE_SECONDS * 4)

    def resume(self) -> None:
        """Go on."""
        self._gate.set()

    def stop(self) -> None:
        """End, when each has its last answer."""
        self._stop.set()
        self._gate.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS * 6)
            if thread.is_alive():
                self._ledger.find("wrong", "a client hangs")

    def wait_for(self, more: int, seconds: float) -> bool:
        """Wait until so many more operations are answered, or not so many seconds longer. Tells which."""
        until, wanted = time.monotonic() + seconds, self._ledger.answered + more
        while self._ledger.answered < wanted and time.monotonic() < until and self._alive():
            self._stop.wait(0.01)
        return self._ledger.answered >= wanted

    def wait(self, seconds: float) -> None:
        """Let them work for a while."""
        self._stop.wait(seconds)

    def _alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _work(self, client: Client) -> None:
        try:
            while not self._stop.is_set():
                self._gate.wait()
                with self._idle:
                    self._active += 1
                try:
                    done = client.act()
                finally:
                    with self._idle:
                        self._active -= 1
                        self._idle.notify_all()
                if not done:
                    self._stop.wait(PAUSE_SECONDS)
        except Wrong as wrong:
            self._ledger.find("wrong", str(wrong))
        except Exception:
            self._ledger.find("wrong", traceback.format_exc())
        finally:
            client.close()
