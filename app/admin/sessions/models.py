"""Requests and answers of signing in."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from sluice_s3.app.admin.models import Given


class SignIn(Given):
    """The keys of an account or of a user."""

    access_key: str = Field(min_length=1, max_length=128)
    secret_key: SecretStr = Field(min_length=1, max_length=1024)


class SessionOut(BaseModel):
    """Who is signed in, what they may administer, and where S3 is."""

    account_id: str
    name: str = Field(description="Of the user, or of the account.")
    arn: str
    kind: Literal["Account", "User", "Token"]
    access_key: str = Field(description="The key that was signed in with; empty for the admin token.")
    root: bool = Field(description="Whether it is the first account itself, which may do everything.")
    actions: list[str] = Field(description="The `sluice:` actions that are allowed.")
    endpoint: str = Field(description="URL of S3, for this browser.")
    region: str
    csrf: str = Field(description="To be sent with every change, as `x-sluice-csrf`; empty for the admin token.")
    expires: int | None = Field(description="When the session ends at the latest, in milliseconds since the epoch.")
    version: str
