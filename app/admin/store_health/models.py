"""Models of what the console shows of a store. Times are milliseconds since the epoch, sizes bytes."""

from __future__ import annotations

from pydantic import BaseModel, Field

from sluice_s3.app.admin.store_health.timed_part import Part
from sluice_s3.app.store.availability.circuit_breaker import Condition


class MountOut(BaseModel):
    """The mount of a store, as its driver found it at its start."""

    kind: str = Field(description="Its file system; empty for a store that is reached without a mount.")
    device: str
    point: str
    options: str
    findings: str = Field(description="What the probe of the mount found, in one line.")
    trials: list[TrialOut]
    latencies: list[CallOut] = Field(description="Calls that the probe timed.")


class TrialOut(BaseModel):
    """One thing that was tried on a mount."""

    name: str
    works: bool | None = Field(description="Null: it could not be tried.")
    detail: str


class CallOut(BaseModel):
    """A call on a mount, in seconds."""

    call: str
    median: float
    worst: float


class SpaceOut(BaseModel):
    """The space of a file system; null where it is not known."""

    total: int | None
    free: int | None
    inodes: int | None
    free_inodes: int | None


class LatencyOut(BaseModel):
    """A small read and a small sync, now and then, in seconds."""

    points: list[tuple[int, float | None, float | None]] = Field(
        description="When, how long opening and reading a small file took, and writing and syncing 4 KiB. Null: failed."
    )
    silent_since: int | None = Field(description="Since when the store does not answer; null when it does.")


class TransitionOut(BaseModel):
    """A change of a store's condition."""

    at: int
    condition: Condition
    processes: int = Field(description="Processes that saw it.")
    of: int = Field(description="Processes that used the store.")
    reason: str


class BreakerOut(BaseModel):
    """The circuit breaker of a store, in all processes of this gateway."""

    condition: Condition = Field(description="The worst that a process sees.")
    processes: int = Field(description="Processes that see it.")
    of: int = Field(description="Processes that use the store.")
    since: int | None
    reason: str
    running_calls: int
    stuck_calls: int = Field(description="Calls that run for longer than `hang_timeout`.")
    history: list[TransitionOut]


class PacksOut(BaseModel):
    """Packs: files of many small objects."""

    open: int = Field(description="Packs that are being written.")
    sealed: int
    live_bytes: int
    dead_bytes: int
    worthwhile: int = Field(description="Packs of which at least half is dead: what compaction may move.")
    compaction_rate: int = Field(description="Bytes a second at most; 0: off.")


class JournalsOut(BaseModel):
    """Journals: what was decided, written down beside the data."""

    behind_changes: int = Field(description="Changes that are not written down yet.")
    behind_seconds: float = Field(description="How long the oldest of them has waited.")
    files: int
    bytes: int
    failing: str | None = Field(description="Why they cannot be written; null when they can.")


class FindingOut(BaseModel):
    """Data that was found damaged."""

    locator: str = Field(description="Where it lies in the store.")
    reason: str
    found: int


class ScrubOut(BaseModel):
    """The scrubber of a store."""

    rate: int = Field(description="Bytes a second at most; 0: off.")
    began: int | None = Field(description="When the last pass began; null before the first one.")
    running: bool
    kind: str = Field(description="What it reads now: versions, pieces or parts.")
    share: float | None = Field(description="How much of the versions it has read, from 0 to 1.")
    damaged: int
    findings: list[FindingOut] = Field(description="The newest of what is damaged, a hundred at most.")


class StoreHealthOut(BaseModel):
    """Everything about one store. Each part is read apart: one that does not answer delays no other."""

    name: str
    default: bool
    driver: str
    layout: str
    durability: str
    etag: str
    place: str = Field(description="Its directory, or the kind of its URL.")
    hang_timeout: float
    mount: MountOut | None = Field(description="Null: it was not in service here since the last start.")
    latency: LatencyOut
    breaker: BreakerOut
    space: Part[SpaceOut]
    buckets: Part[int]
    packs: Part[PacksOut] | None = Field(description="Null: it has none.")
    journals: Part[JournalsOut]
    scrub: Part[ScrubOut]
