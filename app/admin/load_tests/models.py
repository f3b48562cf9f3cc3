"""Requests and answers of load tests. Times are seconds, moments milliseconds since the epoch, sizes bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from sluice_s3.app.admin.models import Given

MAX_TARGETS = 16
MAX_SCENARIOS = 16
MAX_MINUTES = 240
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
State = Literal["running", "complete", "partial", "failed"]


class TargetOut(BaseModel):
    """What a load test can measure."""

    name: str
    kind: Literal["store", "path", "endpoint"]
    where: str = Field("", description="Directory or URL.")
    driver: str = ""
    mount: str = Field("", description="Mount point.")
    source: str = Field("", description="Device or server of the mount.")
    filesystem: str = ""
    total: int = 0
    free: int = 0
    problem: str = Field("", description="Why it cannot be measured now; empty: it can.")


class TargetsOut(BaseModel):
    """All targets. Without `installed` nothing can be run, and `install` is the command that helps."""

    installed: bool
    install: str
    targets: list[TargetOut]
    running: str | None = Field(None, description="The load test that runs.")
    others_per_second: float = Field(0, description="Requests a second that this server answers now.")


class ScenarioOut(BaseModel):
    """A scenario; `seconds` and `bytes` are what one turn of it takes and writes, estimated."""

    name: str
    about: str
    default: bool
    users: int
    seconds: float
    bytes: int


class LoadTestIn(Given):
    """What is measured, with what, and for how long."""

    targets: list[Name] = Field(min_length=1, max_length=MAX_TARGETS)
    scenarios: list[Name] = Field(min_length=1, max_length=MAX_SCENARIOS)
    minutes: float = Field(5, ge=0.1, le=MAX_MINUTES)
    direct: bool = Field(False, description="Each directory also as plain files, without a gateway.")
    users: int | None = Field(None, ge=1, le=1024, description="Clients of the scenarios that have several.")
    durability: Literal["full", "relaxed"] = "full"


class PlaceOut(TargetOut):
    """A target of a run, with the space that it needs there."""

    needed: int = 0


class PreviewOut(BaseModel):
    """What a load test would do. With `problems` it is refused; `warnings` are reasons to doubt its result."""

    seconds: float
    repeats: int
    places: list[PlaceOut]
    problems: list[str]
    warnings: list[str]


class OthersOut(BaseModel):
    """Requests a second of others that the server answered: before the load test, and while it ran."""

    before: float = 0
    mean: float = 0
    most: float = 0


class LoadTestOut(BaseModel):
    """A load test of the history."""

    id: str
    state: State
    started: int
    ended: int | None = None
    minutes: float
    targets: list[str]
    scenarios: list[str]
    repeats: int
    direct: bool = False
    durability: str = "full"
    by: str = Field("", description="ARN of who started it.")
    headline: list[str] = Field([], description="The verdict in sentences.")
    reason: str = Field("", description="Why it is not complete.")
    others: OthersOut = OthersOut()
    bytes: int = Field(0, description="Size of what is kept of it.")
    report: bool = Field(False, description="Whether there is a report.")


class LoadTestsOut(BaseModel):
    """The history, the newest first."""

    installed: bool = Field(description="Whether load tests can be run; if not, `install` is the command that helps.")
    install: str
    load_tests: list[LoadTestOut]
    bytes: int
    kept: int = Field(description="So many are kept; then the oldest is removed.")


class FiguresOut(BaseModel):
    """Requests and errors a second, bytes a second, and seconds that requests took, of the last second."""

    requests: float
    errors: float
    bytes: float
    p50: float | None
    p99: float | None


class ProgressOut(BaseModel):
    """Where a load test is."""

    id: str
    state: State
    phase: Literal["starting", "preparing", "measuring", "judging", "ending", "ended"]
    what: str = Field("", description="What is measured now, in words.")
    target: str = ""
    scenario: str = ""
    repeat: int = 0
    repeats: int
    done: int = Field(0, description="Cells that ended: a scenario on a target in a repeat.")
    total: int
    elapsed: float = 0
    left: float
    live: FiguresOut | None = None
    others_per_second: float = 0
    messages: list[str] = []


class DifferenceOut(BaseModel):
    """How the second run differs from the first: `ratio` above 1 is faster, with its interval."""

    call: str
    ratio: float | None
    low: float | None
    high: float | None


class PairOut(BaseModel):
    """A use (`figure` is empty) or one figure of a target, in both runs."""

    target: str
    use: str
    figure: str
    a: str
    b: str
    over: DifferenceOut


class ComparisonOut(BaseModel):
    """Two load tests side by side. `remarks` say what was left out, and what else differs."""

    a: str
    b: str
    pairs: list[PairOut]
    remarks: list[str]
