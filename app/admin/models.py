"""What the admin API takes and gives."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr


class AccountOut(BaseModel):
    """An account; secrets are never given."""

    id: str
    display_name: str
    email: str
    disabled: bool
    access_keys: list[str]


class AccountIn(BaseModel):
    """A new account with its first key, or one more key for the account of that id."""

    id: str | None = Field(None, min_length=1, max_length=128, description="Canonical id; generated when not given.")
    display_name: str = Field("", max_length=256)
    email: str = Field("", max_length=256)
    access_key: str | None = Field(None, min_length=3, max_length=128, pattern=r"^[!-+.0-<>-~-]+$")
    secret_key: SecretStr | None = Field(None, min_length=8, max_length=256, description="Generated when not given.")


class NewAccount(AccountOut):
    """The account that was made; `secret_key` only when it was generated, and only this once."""

    access_key: str
    secret_key: str | None = None


class AccountChange(BaseModel):
    """What can be changed of an account."""

    disabled: bool


class BucketOut(BaseModel):
    """A bucket. `created` is milliseconds since the epoch."""

    name: str
    owner_id: str
    region: str
    created: int


class StoreOut(BaseModel):
    """The backing store; sizes are bytes."""

    store: str
    generation: int
    durability: str
    total: int
    free: int
    inodes: int
    free_inodes: int
