"""Request and response models of the admin API."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import KeyUse
from sluice_s3.app.store.quotas import MAX_QUOTA


class Given(BaseModel):
    """A request body. Unknown fields are refused, since their meaning would be lost."""

    model_config = ConfigDict(extra="forbid")


class AccountOut(BaseModel):
    """An account, without secrets."""

    id: str
    display_name: str
    email: str
    disabled: bool
    access_keys: list[str]


class KeyOut(BaseModel):
    """An access key, without its secret. Times are in milliseconds since the epoch."""

    access_key: str
    active: bool
    created: int
    last_used: int | None = Field(description="To about a minute; null when no use is known.")
    service: str | None = Field(description="What it was last used for: s3, iam, sts or console.")

    @classmethod
    def of(cls, key: KeyUse) -> KeyOut:
        """Return the model of a key's row."""
        return cls(
            access_key=key.access_key,
            active=not key.disabled,
            created=key.created,
            last_used=key.used or None,
            service=key.service or None,
        )


class AccountDetail(AccountOut):
    """An account and what it has."""

    root: bool = Field(description="The first account, which administers the gateway.")
    created: int = Field(description="Milliseconds since the epoch.")
    keys: list[KeyOut] = Field(description="Of the account itself; those of its users are not among them.")
    users: int
    groups: int
    roles: int
    policies: int
    buckets: int
    last_used: int | None = Field(description="Of any key, user or role of the account; null when no use is known.")


class MadeAccount(AccountOut):
    """A new account; `secret_key` only when it was generated, and only this once."""

    access_key: str
    secret_key: str | None = None


class AccountChange(Given):
    """Changes of an account."""

    disabled: bool


class BucketOut(BaseModel):
    """A bucket. `created` is milliseconds since the epoch."""

    name: str
    owner_id: str
    region: str
    created: int
    store: str
    moving_from: str | None = Field(None, description="The store that its older data is being moved from.")

    @classmethod
    def of(cls, bucket: Bucket) -> BucketOut:
        """Return the model of a bucket's row."""
        return cls(
            name=bucket.name,
            owner_id=bucket.owner_id,
            region=bucket.region,
            created=bucket.created,
            store=bucket.store,
            moving_from=bucket.source or None,
        )


class QuotaIn(Given):
    """The limits of a bucket; null means unlimited."""

    bytes: int | None = Field(None, ge=0, le=MAX_QUOTA)
    objects: int | None = Field(None, ge=0, le=MAX_QUOTA, description="Versions too.")


class QuotaOut(QuotaIn):
    """The limits of a bucket, and its usage."""

    used_bytes: int = Field(description="Of all versions, and of parts of open uploads.")
    used_objects: int


class StoreOut(BaseModel):
    """A backing store; sizes are bytes."""

    name: str
    default: bool = Field(description="Buckets go there whose LocationConstraint names no store.")
    driver: str
    layout: str
    durability: str
    etag: str = Field(description="What the ETags of new objects are made of.")
    state: Literal["up", "full", "read-only", "failing", "down"] = Field(
        description="`down`: it does not answer, and what it would say is missing; the others: it takes no writes."
    )
    buckets: int
    store: str | None = Field(None, description="Its UUID.")
    generation: int | None = None
    total: int | None = None
    free: int | None = None
    inodes: int | None = None
    free_inodes: int | None = None
    stored: int | None = Field(None, description="Bytes of objects and parts, where `max_bytes` limits them.")
    max_bytes: int | None = None
    min_free: int = 0
