"""What a process of the server starts with, and the parts of it that an application may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.access_log import AccessLog, UnwrittenLog
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.processes.deaths import Death, read_deaths
from sluice_s3.app.server.processes.handover import NO_INBOXES, Inboxes
from sluice_s3.app.server.processes.listen import read_addresses
from sluice_s3.app.server.processes.process_metrics import render_processes
from sluice_s3.app.server.shared_memory.bucket_counters import BucketCounters, BucketCounts
from sluice_s3.app.server.shared_memory.counters import Counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests
from sluice_s3.app.server.shared_memory.quota_ledger import QuotaLedger
from sluice_s3.app.server.shared_memory.request_rates import RequestRates
from sluice_s3.app.server.shared_memory.request_tail import TailReader, TailWriter
from sluice_s3.app.server.shared_memory.store_states import StoreStates
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.quotas import NoPeers, PeerUsage

if TYPE_CHECKING:
    from sluice_s3.app.server.processes.traces import RequestTraces

# files of the runtime directory that processes share
COUNTERS = "counters"
BUCKET_COUNTERS = "bucket-counters"
OLDEST = "oldest"
QUOTAS = "quota-shares"
RATES = "request-rates"
WORKER_LOADS = "worker-loads"


@dataclass(frozen=True)
class WorkerSpec:
    """What a child process needs to start. `target` is `module:function`."""

    settings: Settings
    target: str
    kind: str
    """`worker` or `admin`; both are called as target(settings, WorkerContext)."""
    slot: int
    place: int
    places: int
    sockets: tuple[int, ...]
    ready_fd: int
    parent: int
    tls: bool
    clock: tuple[int, int] | None = None
    """When the server started; see `app.index.object_lock.retention_clock`.

    None from a launcher older than this code.
    """
    read_caches: Mapping[str, int] = field(default_factory=dict)
    """Descriptors of the memory that processes share, by stores: see `app.server.shared_memory.read_caches`."""
    inboxes: Inboxes = NO_INBOXES
    """None from a launcher older than this code."""


class WorkerContext:
    """The parts of its process that an application may use."""

    def __init__(self, spec: WorkerSpec) -> None:
        run_dir = spec.settings.run_dir
        self.slot = spec.slot
        self.shared_slot = spec.place
        self.counters = Counters.open(run_dir / COUNTERS, spec.places, spec.place)
        most = spec.settings.metrics_buckets
        self._buckets = BucketCounters(run_dir / BUCKET_COUNTERS, most, spec.places, spec.place) if most else None
        self._run_dir = run_dir
        self._stores = StoreStates(run_dir, list(spec.settings.named_stores), spec.places)
        self.memory = BodyMemoryBudget(spec.settings.max_body_memory)
        """The budget of bytes for request bodies."""
        self._oldest = OldestRequests(run_dir / OLDEST, spec.places)
        self.quotas = _quota_shares(spec)
        self.rates = open_request_rates(spec.settings)
        self.read_caches = getattr(spec, "read_caches", {})  # a launcher older than this code has none
        self._kind, self._places = spec.kind, spec.places
        self._logs = spec.settings.access_log
        self._log = AccessLog() if self._logs else None
        self._ring: TailWriter | None = None
        self._tail: TailWriter | None = None
        """Where answered requests are written; None while nobody watches."""
        self._traces = _open_traces(spec)
        self.thread_share: Callable[[], float] = lambda: 0.0
        """Returns the share of its threads that the busiest store uses; set by the application."""
        self.end_before: Callable[[int], None] = lambda _: None
        """Ends the running requests that began before a CLOCK_BOOTTIME in milliseconds; set by the server."""
        self.leaving = False
        """The server stops soon: readiness is `down`."""

    def gather_log(self, defer: Callable[[Callable[[], None]], object]) -> None:
        """Buffer the access log, and write it in calls scheduled by `defer`, until `end_log`."""
        if self._log is not None:
            self._log.defer = defer

    def end_log(self) -> None:
        """Write the buffered lines, and send the last spans; later lines are written at once."""
        if self._traces is not None:
            self._traces.close()
        if self._log is not None:
            self._log.defer = None
            self._log.flush()

    def leave(self) -> None:
        """Announce that the server stops soon."""
        self.leaving = True

    def cut_requests(self, began: int) -> None:
        """End the running requests of this process that began before `began`, a CLOCK_BOOTTIME in milliseconds."""
        self.end_before(began)

    def oldest_request(self) -> int:
        """Return the CLOCK_BOOTTIME in milliseconds before which no running request of this server began."""
        return self._oldest.oldest()

    def observe(self, request: S3Request, status: int, code: str, sent: int, seconds: float) -> None:
        """Count and log an answered request. `status` is 0 when its connection was lost before an answer."""
        received = request.received
        status = status or 499
        self.counters.count_request(request.operation, status, request.timings, seconds, received, sent, code)
        if self._buckets is not None and (row := request.bucket_row or request.named_bucket) is not None:
            self._buckets.count(row.name, status, received, sent)
        if self._traces is not None:
            self._traces.record(request, status, code, received, sent, seconds)
        log = self._log
        if log is not None:
            line = log.write(
                request.request_id,
                request.method,
                request.operation,
                request.bucket,
                request.key,
                status,
                received,
                sent,
                seconds,
                request.access_key,
                request.client,
                request.timings,
                code,
            )
            if self._tail is not None:
                self._tail.append(line, request.timings)

    def record_refusal(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Count and log an answer of the server without the application."""
        self.counters.count_request("Unknown", status, {}, 0.0, 0, sent, code)
        if self._log is not None:
            line = self._log.write(request_id, "", "Unknown", None, None, status, 0, sent, 0.0, None, client, {}, code)
            if self._tail is not None:
                self._tail.append(line, {})

    def publish_store_state(self, name: str, condition: str, running: int, stuck: int, held_bytes: int) -> None:
        """Publish this process's state of a store to the others."""
        self._stores.publish(self.shared_slot, name, condition, running, stuck, held_bytes)

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Return condition, running and stuck calls, and bytes held, of a store in every process."""
        return self._stores.find(name)

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs that the server listens on, by their names; none for a process without a launcher."""
        try:
            return read_addresses(self._run_dir)
        except FileNotFoundError:
            return {}

    def read_deaths(self) -> list[Death]:
        """Return the processes of this server that died lately, the oldest first. Raises OSError."""
        return read_deaths(self._run_dir)

    def read_buckets(self) -> Mapping[str, BucketCounts] | None:
        """Return what all processes counted of each bucket; None where that is off."""
        return None if self._buckets is None else self._buckets.read()

    def render_processes(self) -> bytes:
        """Return requests by bucket, and what each process uses, in the text format of Prometheus."""
        by_bucket = b"" if self._buckets is None else self._buckets.render()
        return by_bucket + render_processes(self._run_dir)

    def publish(self, now: int, oldest: int | None, running: int, connections: int) -> None:
        """Publish the load of this process to the others."""
        self._oldest.publish(self.shared_slot, now if oldest is None else oldest)
        self.counters.set_gauges(running, connections)
        if self._kind == "worker":
            self._look_for_watchers(now)

    def _look_for_watchers(self, now: int) -> None:
        """Write the tail of requests from now on, or no longer."""
        if self._ring is None:
            self._ring = TailWriter.open(self._run_dir, self._places, self.shared_slot)
        self._tail = self._ring if self._ring is not None and self._ring.is_wanted(now) else None
        if not self._logs:
            self._log = None if self._tail is None else self._log or UnwrittenLog()

    def open_tail(self) -> TailReader:
        """Return a reader of the requests of all processes. Raises OSError."""
        return TailReader(self._run_dir, self._places)


def _open_traces(spec: WorkerSpec) -> RequestTraces | None:
    if spec.kind != "worker" or not spec.settings.traces:
        return None
    from sluice_s3.app.server.processes.traces import RequestTraces  # it needs an extra

    return RequestTraces()


def _quota_shares(spec: WorkerSpec) -> PeerUsage:
    try:
        return QuotaLedger(spec.settings.run_dir / QUOTAS, spec.places, spec.place)
    except FileNotFoundError:  # the launcher is older than this code
        return NoPeers()


def open_request_rates(settings: Settings, *, create: bool = False) -> RequestRates | None:
    """Return the rates that all processes share; None without limits of them. Raises OSError."""
    if not (settings.requests_per_second or settings.anonymous_requests_per_second):
        return None
    return RequestRates(settings.run_dir / RATES, create=create)
