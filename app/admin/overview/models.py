"""Models of the overview. Times are milliseconds since the epoch, sizes bytes."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from sluice_s3.app.store.availability.circuit_breaker import Condition

Severity = Literal["error", "warning", "notice"]


class Finding(BaseModel):
    """Something that needs attention, and what to do about it."""

    kind: str = Field(description="What kind of finding it is: the same for every store.")
    severity: Severity
    subject: str = Field("", description="The store, target or process that it is about.")
    title: str
    advice: str = Field(description="What to do.")
    command: str | None = Field(None, description="A command that does it, or says more.")
    link: str | None = Field(None, description="A page of the console, as a path below /console.")
    since: int | None = None


class StoreSummary(BaseModel):
    """A store in a line."""

    name: str
    condition: Condition
    silent_since: int | None = Field(None, description="Since when it does not say how full it is; null when it does.")
    total: int | None = None
    free: int | None = None
    buckets: int | None = None


class OverviewOut(BaseModel):
    """The state of the gateway."""

    at: int
    version: str
    stores: list[StoreSummary]
    attention: list[Finding] = Field(description="The gravest first; empty when all is well.")
    unchecked: list[str] = Field(description="What could not be checked just now.")
