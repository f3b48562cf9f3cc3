"""The policy simulator in the admin API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.access.authorize import Verdict, authorize, authorize_identity
from sluice_s3.app.access.policy import Malformed
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.admin.simulation.bucket_drafts import replace_policy
from sluice_s3.app.admin.simulation.models import SimulationIn, SimulationOut
from sluice_s3.app.admin.simulation.principals import Found, Unknown, find_principal
from sluice_s3.app.admin.simulation.simulator import answer
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket

router = APIRouter(tags=["simulation"], route_class=StrictRoute)
SIMULATE = "iam:SimulatePrincipalPolicy"
NO_PRINCIPAL = "There is no such principal, or it is in another account: name an access key, a user or a role of yours."


@router.post("/simulation")
async def simulate_request(
    request: Request, body: SimulationIn, caller: Annotated[Caller, Depends(require())]
) -> SimulationOut:
    """Say whether a principal may do an action, and by which statement, without doing it.

    It needs `s3:GetBucketPolicy` for the bucket, and `iam:SimulatePrincipalPolicy` for a principal of the caller's
    account. Only the root account may ask about users, roles and keys of other accounts.
    """
    index: Index = request.app.state.index
    bucket = await index.bucket(body.bucket) if body.bucket else None
    if bucket is not None and not _may_read_policy(caller, bucket):
        raise HTTPException(403, "You need s3:GetBucketPolicy for this bucket to simulate requests to it.")
    found = await _find_principal(index, caller, body.principal)
    try:
        bucket, notes = await replace_policy(index, bucket, body.drafts)
        return await answer(index, body, found, bucket, notes, caller)
    except Malformed as error:
        raise HTTPException(422, f"The draft is no valid policy: {error}") from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


def _may_read_policy(caller: Caller, bucket: Bucket) -> bool:
    if caller.root:
        return True
    verdict = authorize(
        caller.account_id, "s3:GetBucketPolicy", bucket, None, caller.values, principal=caller.principal
    )
    return verdict is Verdict.YES and caller.account_id == bucket.owner_id


async def _find_principal(index: Index, caller: Caller, name: str) -> Found:
    try:
        found = await find_principal(index, name)
    except Unknown:
        raise HTTPException(404, NO_PRINCIPAL) from None
    if caller.root or found.account_id is None:
        return found
    if found.account_id != caller.account_id:
        if found.holder is None and not found.by_key and not found.disabled:
            return found  # policies of every account may name an account, which has none of its own
        raise HTTPException(404, NO_PRINCIPAL)
    if not authorize_identity(caller.account_id, caller.principal, SIMULATE, found.arn, caller.values):
        raise HTTPException(403, f"You need {SIMULATE} for {found.arn} to simulate its requests.")
    return found
