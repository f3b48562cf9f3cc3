"""Requests and answers about people. Times are in milliseconds since the epoch."""

from __future__ import annotations

from pydantic import BaseModel, Field, JsonValue

from sluice_s3.app.admin.models import Given, KeyOut


class IamCall(Given):
    """An operation of IAM or STS, with AWS's names. Lists are lists: `{"PolicyArns": [{"arn": "…"}]}`."""

    action: str = Field(min_length=1, max_length=64, examples=["CreateUser"])
    parameters: dict[str, JsonValue] = Field(default_factory=dict, examples=[{"UserName": "ann", "Path": "/staff/"}])


class IamFault(BaseModel):
    """An error of IAM or STS."""

    detail: str
    code: str = Field(description="AWS's name of the error.")


class UserOut(BaseModel):
    """A user."""

    name: str
    id: str
    arn: str
    path: str
    created: int
    keys: list[KeyOut] | None = Field(description="Null when the caller may not list them.")
    last_used: int | None = Field(description="Of its keys and temporary keys; null when no use is known, or hidden.")


class UserPage(BaseModel):
    """Users in the order of their names."""

    users: list[UserOut]
    next: str | None = Field(description="`after` of the next page.")
    uses_since: int | None = Field(description="Since when uses are recorded: earlier ones are not known.")
