"""What the caller may do with IAM, so that the console shows no more than that."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field, StringConstraints

from sluice_s3.app.access.authorize import authorize_identity
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, NAMES
from sluice_s3.app.access.policy import Work
from sluice_s3.app.admin.people.iam import LIST_ALLOWED, call_of
from sluice_s3.app.admin.sessions.guard import Caller, require

router = APIRouter(tags=["people"])
MAX_RESOURCES = 8
OPERATIONS = NAMES[IAM] | {"SimulatePrincipalPolicy"}
"""The last is the right to the console's simulator."""
Arn = Annotated[str, StringConstraints(min_length=1, max_length=2048)]


class Rights(BaseModel):
    """Operations of IAM that the caller may do."""

    rights: dict[str, list[str]] = Field(description="By the ARN of what they concern. It need not exist.")


@router.get("/people/rights")
async def list_rights(
    request: Request,
    caller: Annotated[Caller, Depends(require())],
    resource: Annotated[list[Arn], Query(min_length=1, max_length=MAX_RESOURCES)],
) -> Rights:
    """Return which operations of IAM the caller may do on resources, as its policies say for this request.

    An operation may still be refused, by a condition on its parameters.
    """
    call = call_of(request, caller, "GetUser", Parameters({}))
    found: dict[str, list[str]] = {}
    work = Work(LIST_ALLOWED)
    for arn in resource:
        found[arn] = []
        for name in sorted(OPERATIONS):
            if authorize_identity(call.account_id, call.principal, f"iam:{name}", arn, call.values, work):
                found[arn].append(name)
            await asyncio.sleep(0)  # policies may take long to decide
    return Rights(rights=found)
