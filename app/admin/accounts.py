"""Accounts in the admin API: the operations of `sluice user`."""

from __future__ import annotations

import secrets
import time

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.access.account_input import NewAccount
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.models import AccountChange, AccountOut, BucketOut, MadeAccount
from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import AccessKey, Account

router = APIRouter(tags=["accounts"], route_class=StrictRoute)
MAX_BUCKETS = 10_000


def _index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


def _render_account(account: Account, keys: list[AccessKey]) -> AccountOut:
    return AccountOut(
        id=account.id,
        display_name=account.display_name,
        email=account.email,
        disabled=account.disabled,
        access_keys=[key.access_key for key in keys],
    )


@router.get("/accounts", dependencies=[Depends(require("sluice:ListAccounts"))])
async def list_accounts(request: Request) -> list[AccountOut]:
    """Return every account with its access keys."""
    return [_render_account(account, keys) for account, keys in await _index(request).accounts()]


@router.post("/accounts", status_code=201, dependencies=[Depends(require("sluice:ManageAccounts"))])
async def add_account(request: Request, body: NewAccount) -> MadeAccount:
    """Create an account with a key; 409 when the key or the email is taken."""
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


@router.patch("/accounts/{account_id}", status_code=204, dependencies=[Depends(require("sluice:ManageAccounts"))])
async def change_account(request: Request, account_id: str, body: AccountChange) -> None:
    """Disable or enable an account, in every worker at once."""
    try:
        await _index(request).set_disabled(account_id, body.disabled)
    except NoSuchAccount:
        raise HTTPException(404, "no such account") from None


@router.delete("/accounts/{account_id}", status_code=204, dependencies=[Depends(require("sluice:ManageAccounts"))])
async def remove_account(request: Request, account_id: str) -> None:
    """Remove an account; 409 while it owns buckets."""
    index = _index(request)
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
