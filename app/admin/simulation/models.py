"""Questions to the policy simulator, and its answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from sluice_s3.app.admin.models import Given

MAX_DRAFTS, MAX_CONDITIONS, MAX_VALUES = 10, 50, 50
MAX_TEXT = 131_072
"""Characters of a draft."""
Name = Annotated[str, StringConstraints(max_length=2048)]
Value = Annotated[str, StringConstraints(max_length=8192)]


class Draft(Given):
    """A policy text that is not stored, in place of a stored one or besides the stored ones."""

    kind: Literal["bucket", "inline", "group", "managed", "session"] = Field(
        description="`bucket` replaces the bucket's policy; `session` limits the principal as in a session."
    )
    name: Name = Field("", description="It replaces the principal's policy of this kind and name, if there is one.")
    owner: Name = Field("", description="The ARN of the user, group or role that has the replaced policy.")
    text: str = Field(max_length=MAX_TEXT)


class SimulationIn(Given):
    """Who wants to do what, to which bucket or object, under which conditions."""

    principal: Name = Field(
        min_length=1,
        description="An access key, the ARN of a user, role or session, an account (id, number, ARN), or `*`.",
    )
    action: Name = Field(min_length=1, description="As IAM writes it, such as `s3:GetObject`.")
    bucket: Name = ""
    key: Name | None = None
    conditions: dict[Name, Value | Annotated[list[Value], Field(max_length=MAX_VALUES)]] = Field(
        default_factory=dict,
        max_length=MAX_CONDITIONS,
        description="Values of condition keys, in place of those of a usual request.",
    )
    drafts: list[Draft] = Field(default_factory=list, max_length=MAX_DRAFTS)


class PolicyRef(BaseModel):
    """Where a policy comes from."""

    kind: str = Field(description="`bucket`, `inline`, `group`, `managed`, `aws` or `session`.")
    owner: str = Field(description="The ARN of the identity that has it.")
    name: str
    draft: bool = False


class StatementRef(BaseModel):
    """A statement that decides."""

    policy: PolicyRef
    index: int = Field(description="Its place in the policy, from 0.")
    sid: str
    effect: Literal["Allow", "Deny"]


class MismatchOut(BaseModel):
    """A part of a statement that does not match."""

    part: Literal["action", "principal", "resource", "condition"]
    text: str = Field(description="The same as a sentence.")
    key: str = ""
    operator: str = ""
    expected: list[str] = Field(default_factory=list)
    found: list[str] | None = Field(None, description="The request's values; null: it has none.")


class StatementOut(BaseModel):
    """A statement, and whether it applies."""

    index: int
    sid: str
    effect: Literal["Allow", "Deny"]
    outcome: Literal["applies", "differs", "not-evaluated", "depends", "too-costly"]
    mismatches: list[MismatchOut]
    statement: dict[str, Any] = Field(description="As the policy has it.")


class PolicyOut(BaseModel):
    """A policy that was evaluated."""

    policy: PolicyRef
    decision: Literal["allow", "deny", "silent"]
    alone: bool = Field(description="A second look: what it allows this principal itself, not its account.")
    statements: list[StatementOut]


class ConditionOut(BaseModel):
    """A condition key that a policy asked for."""

    key: str
    values: list[str] | None = Field(description="null: the request has none.")
    given: bool = Field(description="It is from the question; else it is that of a usual request.")


class GrantOut(BaseModel):
    """A grant of an ACL."""

    grantee: str
    permission: str


class SimulationOut(BaseModel):
    """The decision, and why."""

    decision: Literal["allowed", "denied", "depends"]
    ground: str = Field(description="What decided: `explicit-deny`, `statement`, `owner`, `acl`, `no-statement`, …")
    reason: str
    principal: str = Field(description="The ARN of the principal, or `*`.")
    resource: str
    deciding: list[StatementRef]
    grant: GrantOut | None = None
    policies: list[PolicyOut]
    conditions: list[ConditionOut]
    notes: list[str] = Field(description="What else would stop the request, or the draft from being stored.")
