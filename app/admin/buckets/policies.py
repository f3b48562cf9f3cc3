"""What S3 would say to a bucket policy, before it is put: for editors that check while one types."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from sluice_s3.app.access import policy, policy_principals
from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.access.policy import Decision, Malformed, Policy
from sluice_s3.app.access.policy import Request as PolicyRequest
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.models import PolicyIn, PolicyOut
from sluice_s3.app.admin.buckets.rights import BucketRights, find_bucket
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket

router = APIRouter(route_class=StrictRoute)

PUT = "s3:PutBucketPolicy"
BLOCKED = "It lets everybody in, which the bucket's public access block forbids (block public policies)."


@router.post("/buckets/{name}/policy-check")
async def check_policy(
    request: Request, name: str, body: PolicyIn, caller: Annotated[Caller, Depends(require())]
) -> PolicyOut:
    """Return what PutBucketPolicy would say to a policy (`s3:PutBucketPolicy`). Nothing is changed."""
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    rights = BucketRights(caller, request)
    rights.require(PUT, bucket)
    try:
        parsed = policy.parse(body.policy.encode(), bucket.name)
        await policy_principals.bind_principals(index, body.policy, bucket.owner_id)
    except UnknownPrincipal as error:
        return PolicyOut(problem=f"{error}: there is no {error.kind} {error.name}", public=False)
    except Malformed as error:
        return PolicyOut(problem=str(error), public=False)
    public = policy.is_public(parsed)
    problem = BLOCKED if public and access_of(bucket).block.block_policy else ""
    kept = _keeps(parsed, _session_of(caller), bucket, rights)
    return PolicyOut(problem=problem, public=public, locks_out=not kept)


def _keeps(parsed: Policy, principal: Principal, bucket: Bucket, rights: BucketRights) -> bool:
    """Return whether a principal of the owner's account could still change the policy.

    Decides without `access_of`, which would keep each text that is checked in its cache.
    """
    values = rights.values(bucket)
    decision = parsed.decide(PolicyRequest(principal.caller, PUT, bucket.name, values))
    own = principal.decide(PUT, f"arn:aws:s3:::{bucket.name}", values)
    return Decision.DENY not in (own, decision) and Decision.ALLOW in (own, decision)


def _session_of(caller: Caller) -> Principal:
    """Return the principal of the caller's requests to S3: for an account itself, a session of it.

    Only the account's own keys cannot be locked out, and the console has none.
    """
    if caller.principal is not None:
        return caller.principal
    account = caller_of(caller.account_id)
    return Principal(account, None, (), account.arn, account_number(caller.account_id), "", "Account", 0)
