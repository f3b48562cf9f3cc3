"""One test in one Locust process: its options, clients, rows, and its end.

Every scenario takes the same options, from the command line, the environment, or the web UI's form.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from gevent.threadpool import ThreadPool
from locust import events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from sluice_s3.loadtests.clients.filesystem import DirectObjects
from sluice_s3.loadtests.clients.http import Endpoint
from sluice_s3.loadtests.clients.s3 import OperationResult, S3Client, StorageClient
from sluice_s3.loadtests.outcome import note_measured
from sluice_s3.loadtests.request_log import Recorder, TrialId

logger = logging.getLogger(__name__)
FINISHED = "sluice-finished"
FLUSH_SECONDS = 0.5
GAVE_UP = 3
"""Locust's exit code when a scenario gave up.

The reason is in the file `problem` beside the rows.
"""
STOP_SECONDS = 60.0
"""Seconds for users that are in a request when a test ends."""
PAGE_STOP_SECONDS = 20.0
"""The same with a web page.

Locust's workers are away from their master for as long after each test. After MASTER_HEARTBEAT_TIMEOUT (60 s) they
presume it dead and end.
"""
REST_SECONDS = 0.1
"""Seconds that a client rests after it got no answer."""


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _options(parser: Any) -> None:
    add = parser.add_argument
    add("--access-key", env_var="AWS_ACCESS_KEY_ID", default="", include_in_web_ui=False)
    add("--secret-key", env_var="AWS_SECRET_ACCESS_KEY", default="", include_in_web_ui=False)
    add("--region", env_var="AWS_REGION", default="us-east-1")
    add("--bucket", env_var="SLUICE_BENCH_BUCKET", default="sluice-bench", help="Made if it is not there.")
    add("--direct", env_var="SLUICE_BENCH_DIRECT", default="", help="Plain files in this directory instead of S3.")
    add("--unsynced", action="store_true", help="Direct: a write is done when the file is closed.")
    add(
        "--duration",
        type=float,
        default=0.0,
        help="Seconds to measure, after preparation and warm-up; 0: until it is stopped.",
    )
    add("--warm-up", type=float, default=0.0, help="Seconds before them that are not recorded.")
    add("--patience", type=float, default=60.0, help="Seconds without progress after which a request failed.")
    add("--dead-after", type=float, default=10.0, help="Give up when nothing was answered for so many seconds.")
    add("--keep", action="store_true", help="Leave the bucket with its objects; else it is removed at the end.")
    for name, default in (("rows", ""), ("run-name", ""), ("target-name", ""), ("scenario-name", "")):
        add(f"--{name}", default=default, include_in_web_ui=False, help="Directory of rows, and what they say.")
    add("--repeat", type=int, default=1, include_in_web_ui=False)
    add("--epoch", type=float, default=0.0, include_in_web_ui=False)


class Session:
    """What the users of one process share. `of` creates it at its first call."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        options: Any = environment.parsed_options
        self.options = options
        cell = TrialId(options.run_name, options.target_name, options.scenario_name, options.repeat, options.epoch)
        self.recorder = Recorder(Path(options.rows), cell) if options.rows else None
        self.over = False
        self._measured = False
        self._measured_from = 0.0
        self._start_lock = threading.Lock()
        self._ready = Event()
        self._last_good = time.perf_counter()
        self._clients = 0
        self._threads = ThreadPool(10) if options.direct else None
        if self.recorder is not None:
            gevent.spawn(self._flush)

    @staticmethod
    def of(environment: Environment) -> Session:
        """Return the session of the current test."""
        found = getattr(environment, "sluice", None)
        if found is None or found.over:
            found = environment.sluice = Session(environment)  # type: ignore[attr-defined]
        assert isinstance(found, Session)
        return found

    @property
    def users(self) -> int:
        """The number of users of the whole test."""
        runner = self.environment.runner
        return int(self.options.num_users or (runner.target_user_count if runner else 0) or 1)

    @property
    def share(self) -> tuple[int, int]:
        """The number of this process, and how many processes share the work."""
        runner = self.environment.runner
        if isinstance(runner, WorkerRunner):
            return max(0, runner.worker_index), max(1, int(self.options.expect_workers or 1))
        return 0, 1

    def connect(self) -> StorageClient:
        """Return a new client. Raises ValueError for an invalid URL."""
        options = self.options
        if self._threads is not None:
            self._clients += 1
            self._threads.maxsize = max(self._threads.maxsize, self._clients)
            return _InThreads(DirectObjects(Path(options.direct) / options.bucket, synced=not options.unsynced), self)
        return S3Client(self.endpoint(), options.bucket)

    def endpoint(self) -> Endpoint:
        """Return the endpoint of requests.

        Raises ValueError for an invalid URL.
        """
        options = self.options
        host = self.environment.host or "http://127.0.0.1:9000"
        return Endpoint(host, options.access_key, options.secret_key, options.region, options.patience)

    def in_thread(self, work: Callable[[], OperationResult]) -> OperationResult:
        """Run a blocking call in a thread that gevent did not patch."""
        assert self._threads is not None
        result = self._threads.apply(work)
        assert isinstance(result, OperationResult)
        return result

    # begin and end of the measurement

    def start_once(self, prepare: Callable[[], str]) -> None:
        """Have the first user prepare while the others wait; then begin the warm-up.

        Returns why it cannot, or an empty string.
        """
        if not self._start_lock.acquire(blocking=False):
            self._ready.wait()
            return
        problem = prepare()
        if problem:
            self.give_up(problem)
        now = self._last_good = time.perf_counter()
        self._measured_from = now + self.options.warm_up
        if self.options.duration:
            gevent.spawn_later(self.options.warm_up + self.options.duration, self.finish)
        self._ready.set()

    def measure_from(self, moment: float) -> None:
        """Record only operations that begin after this moment (perf_counter)."""
        self._measured_from = moment

    def first(self) -> bool:
        """Return True for the first user that calls it."""
        return self._start_lock.acquire(blocking=False)

    def finish(self) -> None:
        """Note that this process is done.

        The test ends when all processes are.
        """
        if self.over:
            return
        self.over = True
        runner = self.environment.runner
        if isinstance(runner, WorkerRunner):
            runner.send_message(FINISHED)
        elif runner is not None:
            gevent.spawn(runner.quit if self.environment.web_ui is None else runner.stop)

    def give_up(self, why: str) -> None:
        """End the test with an error."""
        logger.error("gave up: %s", why)
        self.environment.process_exit_code = GAVE_UP
        if self.options.rows:
            (Path(self.options.rows) / "problem").write_text(why)
        self.finish()

    # what is recorded

    def note(self, **facts: Any) -> None:
        """Write facts for the report beside the rows."""
        if self.options.rows:
            (Path(self.options.rows) / "notes.json").write_text(json.dumps(facts))

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
    ) -> None:
        """Record an operation that began at `started` (perf_counter), and report it to Locust."""
        now = time.perf_counter()
        if result.status or self.options.direct:
            self._last_good = now
        elif now - self._last_good > self.options.dead_after and not self.over:
            self.give_up(f"nothing was answered for {self.options.dead_after:g} s: {result.error}")
        if started >= self._measured_from:
            if not self._measured:
                self._measured = True
                note_measured(self.environment)
            if self.recorder is not None:
                self.recorder.add(
                    operation, size, started, result.total, ttfb=result.ttfb, moved=result.bytes, status=result.status,
                    error=result.error, phases=result.phases, stage=stage, users=users or self.users, late=late,
                    retries=result.retries,
                )  # fmt: skip
            self.environment.events.request.fire(
                request_type=operation, name=stage or (f"{size} bytes" if size else ""),
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


class Failed(Exception):
    """What Locust counts as a failure; its text is the error's."""


class _InThreads:
    """Objects whose calls block: each runs in a thread while the greenlet waits."""

    def __init__(self, objects: DirectObjects, session: Session) -> None:
        self._objects = objects
        self._session = session
        self.prepare, self.sweep = objects.prepare, objects.sweep
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

    def _run(self, work: Callable[[], OperationResult]) -> OperationResult:
        return self._session.in_thread(work)


def _take_run_time(environment: Environment) -> None:
    """Use `--run-time` as the duration if none is set.

    Locust would count the preparation into it.
    """
    options: Any = environment.parsed_options
    timed = all(getattr(one, "timed", False) for one in environment.user_classes)
    if options.headless and options.run_time and not options.duration and timed:
        options.duration, options.run_time = float(options.run_time), None
        logger.info("measures for %g s after preparation and warm-up (--run-time as --duration)", options.duration)


def _several(environment: Environment) -> str:
    """Return an error if several scenarios were chosen, else an empty string."""
    names = [one.__name__ for one in environment.user_classes if getattr(one, "exclusive", False)]
    return f"one scenario at a time: name one of {', '.join(sorted(names))}" if len(names) > 1 else ""


@events.init.add_listener  # type: ignore[untyped-decorator]
def _on_init(environment: Environment, **_: Any) -> None:
    options: Any = environment.parsed_options
    if not isinstance(environment.runner, WorkerRunner):
        if _several(environment) and not options.class_picker:
            logger.error(_several(environment))
            raise SystemExit(GAVE_UP)
        _take_run_time(environment)
    environment.stop_timeout = environment.stop_timeout or (
        STOP_SECONDS if environment.web_ui is None else PAGE_STOP_SECONDS
    )
    finished: set[str] = set()

    def on_finished(msg: Any, **_: Any) -> None:
        runner = environment.runner
        assert isinstance(runner, MasterRunner)
        finished.add(msg.node_id)
        if len(finished) >= runner.worker_count:
            finished.clear()
            gevent.spawn(runner.quit if environment.web_ui is None else runner.stop)

    if isinstance(environment.runner, MasterRunner):
        environment.runner.register_message(FINISHED, on_finished)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _on_test_start(environment: Environment, **_: Any) -> None:
    runner = environment.runner
    if runner is not None and not isinstance(runner, WorkerRunner) and _several(environment):
        logger.error(_several(environment))  # chosen in the web page, which stays
        gevent.spawn(runner.stop)


@events.test_stopping.add_listener  # type: ignore[untyped-decorator]
def _on_test_stopping(environment: Environment, **_: Any) -> None:
    found: Session | None = getattr(environment, "sluice", None)
    if found is not None:
        found.over = True


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def _on_test_stop(environment: Environment, **_: Any) -> None:
    found: Session | None = getattr(environment, "sluice", None)
    if found is not None:
        found.close()
    options: Any = environment.parsed_options
    if isinstance(environment.runner, WorkerRunner) or options.keep:
        return
    problem = (found or Session(environment)).connect().sweep()
    if problem:
        logger.warning("the bucket is not removed: %s", problem)
