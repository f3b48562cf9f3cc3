"""One test in one Locust process: its options, clients, rows, and its end.

`coordination.py` has what several processes do together.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from gevent.threadpool import ThreadPool
from locust.env import Environment

from sluice_s3.loadtests.clients.credentials import NoCredentials, Source, find_credentials
from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.filesystem import DirectObjects
from sluice_s3.loadtests.clients.s3 import OperationResult, S3Client, StorageClient, run_concurrently
from sluice_s3.loadtests.latencies import Latencies
from sluice_s3.loadtests.outcome import note_measured
from sluice_s3.loadtests.payload import fill_buffer, size_text
from sluice_s3.loadtests.request_log import Recorder, TrialId

logger = logging.getLogger(__name__)
FINISHED = "sluice-finished"
PROGRESS = "sluice-progress"
LOOK_SECONDS = 0.02
PREPARERS = 8
"""Clients that put the objects of the preparation."""
FLUSH_SECONDS = 0.5
GAVE_UP = 3
"""Locust's exit code when a scenario gave up.

The reason is in the file `problem` beside the rows.
"""
REST_SECONDS = 0.1
"""Seconds that a client rests after it got no answer."""


@dataclass(eq=False)
class Window:
    """A part of a test: operations that begin in it are recorded.

    `begin` and `end` are moments (perf_counter). `users` is the number of clients in it, 0: all of the test.
    """

    begin: float = 0.0
    end: float = math.inf
    stage: str = ""
    users: int = 0
    open: int = 0
    """Operations under way that began since the window was set."""
    errors: int = 0
    moved: int = 0
    """Bytes."""
    times: Latencies = field(default_factory=Latencies)
    """Of successful operations."""


CLOSED = Window(math.inf)
"""Nothing is recorded."""


class Session:
    """What the users of one process share in one test."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        options: Any = environment.parsed_options
        self.options = options
        cell = TrialId(options.run_name, options.target_name, options.scenario_name, options.repeat, options.epoch)
        self.recorder = Recorder(Path(options.rows), cell) if options.rows else None
        fill_buffer()
        self.over = False
        self.ready = Event()
        """Set when all processes have prepared their objects."""
        self.window = Window()
        self.problem = ""
        """Why the test was given up."""
        self.any_size = False
        """Whether objects are of too many sizes to be named in Locust's statistics."""
        self.under_way = 0
        """Operations that began and have not ended."""
        self._ending = False
        self._measured = False
        self._start_lock = threading.Lock()
        self._last_good = time.perf_counter()
        self._source: Source | None = None
        self._clients = 0
        self._threads = ThreadPool(10) if options.direct else None
        if self.recorder is not None:
            gevent.spawn(self._flush)

    @staticmethod
    def of(environment: Environment) -> Session:
        """Return the session of the current test."""
        found = environment.sluice  # type: ignore[attr-defined]
        assert isinstance(found, Session)
        return found

    @staticmethod
    def start(environment: Environment) -> Session:
        """Create the session of a test that begins."""
        found = environment.sluice = Session(environment)  # type: ignore[attr-defined]
        return found

    @property
    def users(self) -> int:
        """The number of users of the whole test."""
        runner = self.environment.runner
        return int(self.options.num_users or (runner.target_user_count if runner else 0) or 1)

    @property
    def share(self) -> tuple[int, int]:
        """The number of this process, and how many processes share the work."""
        names: list[str] = getattr(self.options, "node_names", [])
        own = getattr(self.environment.runner, "client_id", "")
        return (names.index(own), len(names)) if own in names else (0, 1)

    def connect(self) -> StorageClient:
        """Return a new client. Raises ValueError for an invalid URL."""
        options = self.options
        if self._threads is not None:
            self._clients += 1
            self._threads.maxsize = max(self._threads.maxsize, self._clients)
            return _InThreads(DirectObjects(Path(options.direct) / options.bucket, synced=not options.unsynced), self)
        return S3Client(self.endpoint(), options.bucket, self.root)

    @property
    def root(self) -> str | None:
        """What all keys begin with in a bucket that is not the test's; None: the bucket is."""
        prefix, token = self.options.prefix, getattr(self.options, "test_token", "")
        return f"{prefix.strip('/')}/sluice-bench-{token}/".lstrip("/") if prefix else None

    def check(self) -> str:
        """Return why no test can begin with these options, or an empty string."""
        options = self.options
        if options.direct:
            return "--prefix is for buckets: --direct has none" if options.prefix else ""
        try:
            self.endpoint()
        except (NoCredentials, ValueError) as error:
            return str(error)
        return ""

    def endpoint(self) -> Endpoint:
        """Return the endpoint of requests.

        Raises ValueError for an invalid URL, NoCredentials.
        """
        options = self.options
        host = self.environment.host or "http://127.0.0.1:9000"
        if self._source is None:
            given = (options.access_key, options.secret_key, options.session_token, options.aws_profile)
            self._source = find_credentials(*given)
        return Endpoint(host, "", "", options.region, options.patience, self._source, options.addressing)

    def in_thread(self, work: Callable[[], Any]) -> Any:
        """Run a blocking call in a thread that gevent did not patch."""
        assert self._threads is not None
        return self._threads.apply(work)

    # begin and end of the measurement

    @property
    def seconds(self) -> float:
        """Seconds to measure after preparation and warm-up; 0: until the test is stopped."""
        return float(getattr(self.options, "measured_seconds", 0.0) or self.options.duration)

    def report_progress(self, what: str, done: int, total: int) -> None:
        """Report how far the preparation is: `preparing 40 of 100 objects`."""
        if self.environment.runner is not None:
            self.environment.runner.send_message(PROGRESS, {"what": what, "done": done, "total": total})

    def put_objects(self, names: Sequence[str], size: int) -> str:
        """Put objects that must be there before the clock starts. Returns why it cannot, or an empty string."""
        done = 0

        def count() -> None:
            nonlocal done
            done += 1
            if done % max(1, len(names) // 100) == 0 or done == len(names):
                self.report_progress("objects", done, len(names))

        self.report_progress("objects", 0, len(names))
        problems = run_concurrently(self.connect, "put", names, PREPARERS, size, done=count, stopped=lambda: self.over)
        return next(filter(None, problems), "")

    def begin(self) -> None:
        """Begin the warm-up, then the measurement: all processes are prepared."""
        now = self._last_good = time.perf_counter()
        self.window = Window(now + self.options.warm_up)
        self.ready.set()

    def measure_from(self, moment: float) -> None:
        """Record only operations that begin after this moment (perf_counter)."""
        self.window = Window(moment)

    def first(self) -> bool:
        """Return True for the first user that calls it."""
        return self._start_lock.acquire(blocking=False)

    def finish(self) -> None:
        """Note that this process is done.

        The test ends when all processes are.
        """
        if self._ending:
            return
        self._ending = self.over = True
        self.ready.set()  # users that wait for it end
        window = self.window
        measured = math.isfinite(window.begin) and window.begin > 0
        gevent.spawn(self._report_end, window, max(0.0, time.perf_counter() - window.begin) if measured else 0.0)

    def _report_end(self, window: Window, seconds: float) -> None:
        """Report the end once no operation is under way: then the bucket may be removed."""
        deadline = time.perf_counter() + float(self.options.patience)
        while self.under_way and time.perf_counter() < deadline:
            gevent.sleep(LOOK_SECONDS)
        if self.environment.runner is not None:
            data = {"problem": self.problem, "times": window.times.pairs(), "seconds": seconds}
            self.environment.runner.send_message(FINISHED, data)

    def give_up(self, why: str) -> None:
        """End the test with an error."""
        logger.error("gave up: %s", why)
        self.problem = why
        self.environment.process_exit_code = GAVE_UP
        if self.options.rows:
            (Path(self.options.rows) / "problem").write_text(why)
        self.finish()

    # what is recorded

    def note(self, **facts: Any) -> None:
        """Write facts for the report beside the rows."""
        write_notes(self.options, facts)

    def record(
        self,
        operation: str,
        result: OperationResult,
        size: int,
        started: float,
        *,
        stage: str = "",
        users: int = 0,
        late: float | None = None,
        rest: bool = True,
        window: Window | None = None,
    ) -> None:
        """Record an operation that began at `started` (perf_counter), and report it to Locust.

        `window` is the one in which it began, if that may be over.
        """
        now = time.perf_counter()
        window = window or self.window
        stage = stage or window.stage
        if result.status or self.options.direct:
            self._last_good = now
        elif now - self._last_good > self.options.dead_after and not self.over:
            self.give_up(f"nothing was answered for {self.options.dead_after:g} s: {result.error}")
        if window.begin <= started < window.end:
            if result.error:
                window.errors += 1
            else:
                window.times.add(result.total)
                window.moved += result.bytes
            if not self._measured:
                self._measured = True
                note_measured(self.environment)
            if self.recorder is not None:
                self.recorder.add(
                    operation, size, started, result.total, ttfb=result.ttfb, moved=result.bytes, status=result.status,
                    error=result.error, phases=result.phases, stage=stage, users=users or window.users or self.users,
                    late=late,
                    retries=result.retries,
                )  # fmt: skip
            self.environment.events.request.fire(
                request_type=operation, name=name_of(operation, 0 if self.any_size else size, stage),
                response_time=result.total * 1000, response_length=result.bytes,
                exception=Failed(result.error) if result.error else None, context={},
            )  # fmt: skip
        if rest and not result.status:
            gevent.sleep(REST_SECONDS)

    def _flush(self) -> None:
        while self.recorder is not None:
            gevent.sleep(FLUSH_SECONDS)
            if self.recorder is not None:
                self.recorder.flush()

    def close(self) -> None:
        """Write all rows."""
        self.over = True
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()


def write_notes(options: Any, facts: Mapping[str, Any]) -> None:
    """Write facts for the report beside the rows, if there are rows."""
    if options.rows:
        directory = Path(options.rows)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "notes.json").write_text(json.dumps(facts))


def name_of(operation: str, size: int, stage: str = "") -> str:
    """Return an operation's name in Locust's statistics, the same in every run: `object 10 MiB`, `object`."""
    name = f"object {size_text(size)}" if size else "object"
    if operation == "LIST":
        name = f"page of {size} keys"
    return f"{name}, {stage}" if stage else name


class Failed(Exception):
    """What Locust counts as a failure; its text is the error's."""


class _InThreads:
    """Objects whose calls block: each runs in a thread while the greenlet waits."""

    def __init__(self, objects: DirectObjects, session: Session) -> None:
        self._objects = objects
        self._session = session
        self.open, self.close = objects.open, objects.close

    def put(self, key: str, size: int) -> OperationResult:
        return self._run(lambda: self._objects.put(key, size))

    def get(self, key: str, size: int) -> OperationResult:
        return self._run(lambda: self._objects.get(key, size))

    def stat(self, key: str) -> OperationResult:
        return self._run(lambda: self._objects.stat(key))

    def delete(self, key: str) -> OperationResult:
        return self._run(lambda: self._objects.delete(key))

    def list(self, prefix: str, after: str, count: int) -> OperationResult:
        return self._run(lambda: self._objects.list(prefix, after, count))

    def prepare(self) -> str:
        return str(self._session.in_thread(self._objects.prepare))

    def sweep(self) -> str:
        return str(self._session.in_thread(self._objects.sweep))

    def _run(self, work: Callable[[], OperationResult]) -> OperationResult:
        result = self._session.in_thread(work)
        assert isinstance(result, OperationResult)
        return result
