"""The preview of lifecycle rules: what is asked, and what is due."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from sluice_s3.app.admin.models import Given

MAX_DRAFT = 512 * 1024
MAX_DAYS_AHEAD = 36_500


class PreviewIn(Given):
    """Which rules, and when."""

    draft: str | None = Field(
        None, max_length=MAX_DRAFT, description="A LifecycleConfiguration as S3 takes it; null: the stored rules."
    )
    minimum: str | None = Field(
        None, max_length=64, description="`x-amz-transition-default-minimum-object-size` of the draft."
    )
    days_ahead: int = Field(
        0, ge=0, le=MAX_DAYS_AHEAD, description="Days after the next run, if nothing else happens until then."
    )


class DueKey(BaseModel):
    """A version or an upload that is due. `size` is bytes, null for uploads."""

    key: str
    version_id: str = Field(description="Of an upload, its id.")
    size: int | None


class DueOut(BaseModel):
    """What a rule does to the versions or uploads that are due."""

    kind: Literal["expire", "noncurrent", "marker", "transition", "noncurrent-transition", "upload"]
    storage_class: str = Field(description="The target of a transition.")
    count: int
    bytes: int | None = Field(description="null for uploads.")
    keys: list[DueKey] = Field(description="The first ones.")


class RulePreview(BaseModel):
    """What a rule does at the next run."""

    id: str
    enabled: bool
    prefix: str
    due: list[DueOut]


class PreviewOut(BaseModel):
    """What would go at the next run. Nothing was changed."""

    at: int = Field(description="The time of that run, in milliseconds since the epoch.")
    rules: list[RulePreview]
    permanent: bool = Field(description="Expired objects are gone; else a delete marker hides them.")
    locked: int = Field(description="Due versions that stay because object lock protects them.")
    looked_at: int = Field(description="Versions and uploads that were looked at.")
    stopped: Literal["", "time", "rows"] = Field(description="Why the preview ends before the bucket does.")
    stopped_at: str = Field(description="The key where it ended.")
    notes: list[str]
