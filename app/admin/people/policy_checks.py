"""Checks the text of a policy before it is stored, for editors that tell of faults as one types."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from sluice_s3.app.access.iam.policies import MAX_SENT_CHARACTERS
from sluice_s3.app.access.policy import Malformed, parse_identity, parse_trust
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import Given
from sluice_s3.app.admin.sessions.guard import require

router = APIRouter(tags=["people"], route_class=StrictRoute)
PARSERS = {"identity": parse_identity, "trust": parse_trust}


class PolicyCheck(Given):
    """A policy of a user, group or role, or the trust policy of a role."""

    kind: Literal["identity", "trust"]
    document: str = Field(max_length=MAX_SENT_CHARACTERS)


class PolicyFault(BaseModel):
    """What is wrong with it."""

    problem: str = Field(description="In IAM's words; empty for a policy that can be stored.")


@router.post("/policy-checks", dependencies=[Depends(require())])
async def check_policy(body: PolicyCheck) -> PolicyFault:
    """Return what is wrong with a policy. Its size, and whether those that it names exist, is checked at storing it."""
    try:
        PARSERS[body.kind](body.document.encode())
    except Malformed as error:
        return PolicyFault(problem=str(error) or "This is no policy.")
    return PolicyFault(problem="")
