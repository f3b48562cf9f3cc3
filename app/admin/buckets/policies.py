"""What S3 would say to a bucket policy, before it is put: for editors that check while one types."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request

from sluice_s3.app.access import policy, policy_principals
from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.bucket_access import POLICY, access_of
from sluice_s3.app.access.policy import Malformed
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.models import PolicyIn, PolicyOut
from sluice_s3.app.admin.buckets.rights import BucketRights, find_bucket
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index import Index

router = APIRouter(route_class=StrictRoute)

BLOCKED = "It lets everybody in, which the bucket's public access block forbids (block public policies)."


@router.post("/buckets/{name}/policy-check")
async def check_policy(
    request: Request, name: str, body: PolicyIn, caller: Annotated[Caller, Depends(require())]
) -> PolicyOut:
    """Return what PutBucketPolicy would say to a policy (`s3:PutBucketPolicy`). Nothing is changed."""
    index: Index = request.app.state.index
    bucket = await find_bucket(index, name)
    BucketRights(caller, request).require("s3:PutBucketPolicy", bucket)
    try:
        parsed = policy.parse(body.policy.encode(), bucket.name)
        await policy_principals.bind_principals(index, body.policy, bucket.owner_id)
    except UnknownPrincipal as error:
        return PolicyOut(problem=f"{error}: there is no {error.kind} {error.name}", public=False)
    except Malformed as error:
        return PolicyOut(problem=str(error), public=False)
    public = policy.is_public(parsed)
    problem = BLOCKED if public and access_of(bucket).block.block_policy else ""
    settings = {**orjson.loads(bucket.settings or "{}"), POLICY: body.policy}
    after = bucket._replace(settings=orjson.dumps(settings).decode())
    kept = BucketRights(replace(caller, principal=_session_of(caller)), request).may("s3:PutBucketPolicy", after)
    return PolicyOut(problem=problem, public=public, locks_out=not kept)


def _session_of(caller: Caller) -> Principal:
    """Return the principal of the caller's requests to S3: for an account itself, a session of it.

    Only the account's own keys cannot be locked out, and the console has none.
    """
    if caller.principal is not None:
        return caller.principal
    account = caller_of(caller.account_id)
    return Principal(account, None, (), account.arn, account_number(caller.account_id), "", "Account", 0)
