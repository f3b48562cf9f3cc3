"""Requests and answers about buckets."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from sluice_s3.app.admin.models import BucketOut, Given

MAY_NOT = "Null where the caller may not read it."


class ContentsOut(BaseModel):
    """The contents of a bucket. Sizes are bytes; a copy counts like its source."""

    objects: int
    bytes: int = Field(description="Of all versions, and of parts of open uploads, as quotas count them.")
    older_versions: int = Field(description="Noncurrent versions, without delete markers.")
    older_bytes: int
    delete_markers: int
    uploads: int = Field(description="Open multipart uploads.")
    upload_bytes: int
    counted: int = Field(description="When it was counted, in milliseconds since the epoch.")


class Limits(BaseModel):
    """A quota; null means unlimited."""

    bytes: int | None
    objects: int | None = Field(description="Versions too.")


class ListedBucket(BaseModel):
    """A bucket of a list."""

    name: str
    region: str
    created: int = Field(description="Milliseconds since the epoch.")
    store: str | None = Field(description=MAY_NOT)
    moving_from: str | None = Field(None, description="The store that its older data is being moved from.")
    contents: ContentsOut | None = Field(description="Null where the caller may not list it, or until it is counted.")
    quota: Limits | None = Field(description="Null without a quota, or where the caller may not list it.")
    versioning: Literal["off", "enabled", "suspended"] | None = Field(description=MAY_NOT)
    object_lock: bool | None = Field(description=MAY_NOT)
    public: bool | None = Field(
        description="Its policy or its ACL lets everybody in, and no public access block stops that. " + MAY_NOT
    )
    encryption: str | None = Field(description="The default encryption; empty without one. " + MAY_NOT)


class BucketPage(BaseModel):
    """A page of buckets, by name."""

    buckets: list[ListedBucket]
    next: str | None = Field(None, description="The `after` of the next page.")
    counting: bool = Field(description="Contents are missing that are being counted: ask again in a second.")


class BucketDetail(BucketOut):
    """A bucket with its contents and with what its store and the gateway can do."""

    owned: bool = Field(description="The caller's account owns it.")
    signing_region: str
    contents: ContentsOut | None = Field(description="Null until it is counted.")
    quota: Limits | None
    plain_files: bool = Field(
        description="It lies on plain files: no versions, locks, ACLs, encryption, lifecycle rules or notifications."
    )
    encryption_available: bool = Field(description="The gateway has keys to encrypt objects with.")
    storage_classes: list[str] = Field(description="Storage classes with a store, to which rules can move objects.")
    archives: bool = Field(description="Some of them are archives, from which objects are restored.")
    website: str | None = Field(description="The address of its website, once it is configured.")
    may_move: bool
    may_set_quota: bool


class StoreChoice(BaseModel):
    """A store on which a bucket can be made."""

    name: str
    default: bool
    plain_files: bool


class Choices(BaseModel):
    """What a new bucket can have."""

    region: str
    any_region: bool = Field(description="The gateway accepts any name of a region.")
    stores: list[StoreChoice]
    object_ownership: str = Field(description="That of new buckets.")
    public_access_block: bool = Field(description="New buckets block public access.")
    encryption: str = Field(description="The default encryption of new buckets; empty without one.")
    targets: list[StoreChoice] = Field(default_factory=list, description="Stores to which buckets can be moved.")


class MoveIn(Given):
    """Where a bucket is to lie."""

    store: str = Field(max_length=64)


class MoveOut(BaseModel):
    """The state of a move."""

    moving: bool
    store: str = Field(description="The store of the bucket, to which it moves.")
    source: str | None = Field(None, description="The store that its older data is being moved from.")
    rows: int = Field(0, description="Rows looked at in this pass.")
    total_rows: int = Field(0, description="Rows of the bucket when the pass began.")
    bytes: int = Field(0, description="Bytes copied so far by the process that moves it.")
    stuck: int = Field(0, description="Blobs that cannot be read and stay where they are.")


class TestMessage(Given):
    """Which target is to get a test message."""

    target: str = Field(max_length=255)


class QueuedMessage(BaseModel):
    """A test message that waits to be sent."""

    queued: int = Field(description="Milliseconds since the epoch; a delivery after it is that of the test or later.")


class BucketTarget(BaseModel):
    """A notification target as the settings of a bucket may name it."""

    name: str
    kind: str | None = Field(description="Null: the settings do not name it any more, and its messages wait.")
    arn: str
    used: bool = Field(description="A rule of the bucket names it. Only then is the rest filled in.")
    backlog: int = Field(0, description="Messages that wait, of all buckets.")
    oldest_seconds: float = 0.0
    delivered: int | None = Field(None, description="Milliseconds since the epoch of the last delivery, or null.")
    error: str | None = Field(None, description="Why it did not take what it was sent last; null when it did.")
    failing_since: int | None = None
    refused: int = 0
    expired: int = 0


class PolicyIn(Given):
    """A bucket policy to check."""

    policy: str = Field(max_length=64 * 1024)


class PolicyOut(BaseModel):
    """What S3 would say to it."""

    problem: str = Field(description="Empty where it would be accepted.")
    public: bool = Field(description="It lets everybody in.")
    locks_out: bool = Field(False, description="The caller's session could not change it any more.")
