"""Users, groups, roles and keys in the admin API: IAM's operations, under AWS's names."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import Field, JsonValue

from sluice_s3.app.access.iam.actions import Call
from sluice_s3.app.access.iam.service import IAM, NAMES
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import Given
from sluice_s3.app.admin.people.iam import FAULTS, run_call
from sluice_s3.app.admin.sessions.guard import Caller, require, require_other_account
from sluice_s3.app.index import Index

router = APIRouter(tags=["identities"], route_class=StrictRoute)


class IamIn(Given):
    """The parameters of an operation, under AWS's names."""

    parameters: dict[str, JsonValue] = Field(default_factory=dict, examples=[{"UserName": "ann", "Path": "/staff/"}])


@router.get("/iam", dependencies=[Depends(require())])
async def list_operations() -> list[str]:
    """Return the names of all operations."""
    return sorted(NAMES[IAM])


@router.post("/accounts/{account_id}/iam/{action}", response_model=dict[str, Any], responses=FAULTS)
async def run_operation(
    request: Request,
    account_id: str,
    action: str,
    body: IamIn,
    caller: Annotated[Caller, Depends(require("sluice:ManageAccounts"))],
) -> Response:
    """Run an operation as the account itself and return AWS's answer as JSON.

    The answer contains a secret key only when it is created. 404 when there is no such account; 403 for the first
    account, unless it is the caller; else the status of AWS's error.
    """
    index: Index = request.app.state.index
    require_other_account(caller, account_id)
    if await index.account(account_id) is None:
        raise HTTPException(404, "no such account")
    return await run_call(IAM, action, body.parameters, partial(Call, index, account_id, None))
