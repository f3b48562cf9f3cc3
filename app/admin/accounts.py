"""Accounts in the admin API: the operations of `sluice user`."""

from __future__ import annotations

import re
import secrets
import time
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from sluice_s3.app.access.account_input import NewAccount
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import AccountChange, AccountDetail, BucketOut, KeyOut, MadeAccount
from sluice_s3.app.admin.sessions.guard import Caller, require, require_other_account
from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, Account, AccountSummary

router = APIRouter(tags=["accounts"], route_class=StrictRoute)
MAX_BUCKETS = 10_000
MAX_ACCOUNTS = 200
MARKER = re.compile(r"^([0-9]{1,15}:[!-~]{1,128})?$")
"""Creation and id of the last account of a page."""
FIRST = "This is the first account, which administers the gateway: it cannot be disabled or removed."


def _index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


def _render_account(found: AccountSummary, first_account: str) -> AccountDetail:
    account = found.account
    return AccountDetail(
        id=account.id,
        display_name=account.display_name,
        email=account.email,
        disabled=account.disabled,
        access_keys=[key.access_key for key in found.keys],
        root=account.id == first_account,
        created=account.created,
        keys=[KeyOut.of(key) for key in found.keys],
        users=found.identities.get(USER, 0),
        groups=found.identities.get(GROUP, 0),
        roles=found.identities.get(ROLE, 0),
        policies=found.identities.get(POLICY, 0),
        buckets=found.buckets,
        last_used=found.used or None,
    )


@router.get("/accounts")
async def list_accounts(
    request: Request,
    response: Response,
    caller: Annotated[Caller, Depends(require("sluice:ListAccounts"))],
    after: Annotated[str, Query(pattern=MARKER.pattern, description="Of the link to the next page.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_ACCOUNTS)] = MAX_ACCOUNTS,
) -> list[AccountDetail]:
    """Return accounts with their access keys, oldest first; the header `link` has the address of the next page."""
    created, _, account_id = after.partition(":")
    found = await _index(request).accounts_page((int(created or 0), account_id), limit + 1)
    if len(found) > limit:
        last = found[limit - 1].account
        marker = quote(f"{last.created}:{last.id}")
        response.headers["link"] = f'<{request.url.path}?limit={limit}&after={marker}>; rel="next"'
    return [_render_account(one, caller.first_account) for one in found[:limit]]


@router.get("/accounts/{account_id}")
async def get_account(
    request: Request, account_id: str, caller: Annotated[Caller, Depends(require("sluice:ListAccounts"))]
) -> AccountDetail:
    """Return an account with its access keys."""
    found = await _index(request).account_summary(account_id)
    if found is None:
        raise HTTPException(404, "no such account")
    return _render_account(found, caller.first_account)


@router.post("/accounts", status_code=201)
async def add_account(
    request: Request, body: NewAccount, caller: Annotated[Caller, Depends(require("sluice:ManageAccounts"))]
) -> MadeAccount:
    """Create an account with a key, or one more key of an account; 409 when the key or the email is taken."""
    require_other_account(caller, body.id or "")
    access_key = body.access_key or "SL" + secrets.token_hex(9).upper()
    secret = body.secret_key.get_secret_value() if body.secret_key else secrets.token_urlsafe(30)
    account_id = body.id or secrets.token_hex(32)
    account = Account(account_id, body.display_name or access_key, body.email, False, int(time.time() * 1000))
    try:
        await _index(request).add_account(account, access_key, secret)
    except AccountExists:
        raise HTTPException(409, "the access key or the email is taken") from None
    return MadeAccount(
        id=account_id,
        display_name=account.display_name,
        email=account.email,
        disabled=False,
        access_keys=[access_key],
        access_key=access_key,
        secret_key=None if body.secret_key else secret,
    )


@router.patch("/accounts/{account_id}", status_code=204)
async def change_account(
    request: Request,
    account_id: str,
    body: AccountChange,
    caller: Annotated[Caller, Depends(require("sluice:ManageAccounts"))],
) -> None:
    """Disable or enable an account, in every worker at once; 409 for the first account, which cannot be disabled."""
    if body.disabled and account_id == caller.first_account:
        raise HTTPException(409, FIRST)
    try:
        await _index(request).set_disabled(account_id, body.disabled)
    except NoSuchAccount:
        raise HTTPException(404, "no such account") from None


@router.delete("/accounts/{account_id}", status_code=204)
async def remove_account(
    request: Request, account_id: str, caller: Annotated[Caller, Depends(require("sluice:ManageAccounts"))]
) -> None:
    """Remove an account with all its users and keys; 409 while it owns buckets, and for the first account."""
    index = _index(request)
    if account_id == caller.first_account:
        raise HTTPException(409, FIRST)
    if await index.buckets(account_id, "", "", 1):
        raise HTTPException(409, "the account owns buckets")
    try:
        await index.remove_account(account_id)
    except NoSuchAccount:
        raise HTTPException(404, "no such account") from None


@router.get("/accounts/{account_id}/buckets", dependencies=[Depends(require("sluice:ListAccounts"))])
async def list_buckets(request: Request, account_id: str) -> list[BucketOut]:
    """Return the buckets of an account."""
    found = await _index(request).buckets(account_id, "", "", MAX_BUCKETS)
    return [BucketOut.of(bucket) for bucket in found]
