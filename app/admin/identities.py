"""Users, groups, roles and keys in the admin API: IAM's operations, under AWS's names."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import Field

from sluice_s3.app.access.iam.actions import Call
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, NAMES, RUN
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import Given
from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.index import Index

router = APIRouter(tags=["identities"], route_class=StrictRoute)


class IamIn(Given):
    """The parameters of an operation, under AWS's names."""

    parameters: dict[str, str] = Field(default_factory=dict, examples=[{"UserName": "ann", "Path": "/staff/"}])


@router.get("/iam", dependencies=[Depends(require())])
async def list_operations() -> list[str]:
    """Return the names of all operations."""
    return sorted(NAMES[IAM])


@router.post("/accounts/{account_id}/iam/{action}", dependencies=[Depends(require("sluice:ManageAccounts"))])
async def run_operation(request: Request, account_id: str, action: str, body: IamIn) -> dict[str, Any]:
    """Run an operation as the account itself and return AWS's answer as JSON.

    The answer contains a secret key only when it is created. 404 when there is no such account; else the status of
    AWS's error.
    """
    index: Index = request.app.state.index
    if await index.account(account_id) is None:
        raise HTTPException(404, "no such account")
    try:
        return await RUN[IAM](action, Call(index, account_id, None, Parameters(body.parameters)))
    except IamError as error:
        raise HTTPException(error.status, {"code": error.code, "message": error.text}) from None
