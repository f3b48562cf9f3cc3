"""Users with their keys and last uses, a page at a time, which would else be two calls of IAM for each."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.authorize import authorize_identity
from sluice_s3.app.access.iam.actions import Call, require_action
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.policy import Work
from sluice_s3.app.admin.models import KeyOut
from sluice_s3.app.admin.people.iam import FAULTS, LIST_ALLOWED, answer_fault, call_of
from sluice_s3.app.admin.people.models import UserOut, UserPage
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.index.iam.rows import USER, Identity, UserUses

router = APIRouter(tags=["people"])
MAX_USERS = 100
NO_USES = UserUses([], 0)


@router.get("/people/users", response_model=UserPage, responses=FAULTS)
async def list_users(
    request: Request,
    caller: Annotated[Caller, Depends(require())],
    after: Annotated[str, Query(max_length=128, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_USERS)] = MAX_USERS,
) -> UserPage | Response:
    """Return users of the caller's account, with keys that the caller may list.

    It needs `iam:ListUsers`; keys need `iam:ListAccessKeys`, and last uses `iam:GetAccessKeyLastUsed`, on the user.
    """
    call = call_of(request, caller, "ListUsers", Parameters({}))
    try:
        require_action(call, "iam:ListUsers", arn(caller.account_id, USER, "/", ""))
    except IamError as error:
        return answer_fault(error)
    found = await call.index.identities_of(caller.account_id, USER, "/", after, limit + 1)
    shown = found[:limit]
    uses: dict[str, UserUses] = {}
    if shown:
        uses = await call.index.uses_of_users(caller.account_id, shown[0].folded, shown[-1].folded)
    since = await call.index.uses_since()
    work, users = Work(LIST_ALLOWED), []
    for user in shown:
        users.append(_render(call, user, uses.get(user.id, NO_USES), work))
        await asyncio.sleep(0)  # policies may take long to decide
    return UserPage(
        users=users,
        next=shown[-1].folded if len(found) > limit else None,
        uses_since=since or None,
    )


def _render(call: Call, user: Identity, uses: UserUses, work: Work) -> UserOut:
    def may(action: str) -> bool:
        return authorize_identity(call.account_id, call.principal, action, arn_of(user), call.values, work)

    keys, last_used = [KeyOut.of(key) for key in uses.keys], max([uses.used, *(key.used for key in uses.keys)])
    if not may("iam:GetAccessKeyLastUsed"):
        keys, last_used = [key.model_copy(update={"last_used": None, "service": None}) for key in keys], 0
    return UserOut(
        name=user.name,
        id=user.id,
        arn=arn_of(user),
        path=user.path,
        created=user.created,
        keys=keys if may("iam:ListAccessKeys") else None,
        last_used=last_used or None,
    )
