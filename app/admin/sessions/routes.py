"""Signing in and out."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app import __version__
from sluice_s3.app.access.account import caller_of
from sluice_s3.app.access.admin_actions import DESCRIPTIONS
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.sessions.cookie import MAX_COOKIES, clear_cookie, read_cookies, write_cookie
from sluice_s3.app.admin.sessions.endpoint import s3_endpoint
from sluice_s3.app.admin.sessions.guard import SET_COOKIE, Caller, require, signed_in
from sluice_s3.app.admin.sessions.models import SessionOut, SignIn
from sluice_s3.app.admin.sessions.origin import check_confidential, client_address, console_origins, page_origin
from sluice_s3.app.admin.sessions.sign_in import KeyCheck
from sluice_s3.app.admin.sessions.store import SessionStore
from sluice_s3.app.index.engine.audit_trail import name_caller
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.regions import FIRST


async def _require_console(request: Request) -> None:
    """Raise HTTPException where the console is off."""
    if not _settings(request).console:
        raise HTTPException(404, "The console is turned off (SLUICE_CONSOLE).")


router = APIRouter(tags=["session"], route_class=StrictRoute, dependencies=[Depends(_require_console)])


@router.get("/session")
async def get_session(request: Request, caller: Annotated[Caller, Depends(require())]) -> SessionOut:
    """Return who is signed in; 401 for nobody."""
    return _describe(request, caller)


@router.post("/session")
async def sign_in(request: Request, body: SignIn) -> SessionOut:
    """Sign in with the keys of an account or of a user: the answer sets the cookie of a new session.

    403 for wrong keys, for keys that are disabled, from another page, and without TLS beyond this machine; 429 after
    too many attempts.
    """
    settings = _settings(request)
    origin = page_origin(request, settings)
    check_confidential(request, origin, settings)
    check = cast(KeyCheck, request.app.state.key_check)
    name_caller("", "", body.access_key)
    key = await check.check(body.access_key, body.secret_key.get_secret_value(), client_address(request))
    arn = caller_of(key.account_id).arn if key.holder is None else build_principal(key.holder).arn
    name_caller(arn, key.account_id, key.access_key)
    sessions = _sessions(request)
    session = await sessions.open(key)
    await _end_earlier(request, settings, sessions)
    made = session.temporary
    request.scope[SET_COOKIE] = write_cookie(origin, made.access_key, made.secret, session.used)
    return _describe(request, await signed_in(request, session))


def _describe(request: Request, caller: Caller) -> SessionOut:
    settings = _settings(request)
    return SessionOut(
        account_id=caller.account_id,
        name=caller.name,
        arn=caller.arn,
        kind="Token" if caller.session is None else "Account" if caller.principal is None else "User",
        access_key=caller.access_key,
        root=caller.root,
        actions=[action for action in DESCRIPTIONS if caller.may(action)],
        endpoint=s3_endpoint(request, settings, request.app.state.s3_listener),
        region=FIRST if settings.region == "auto" else settings.region,
        csrf="" if caller.session is None else caller.session.csrf,
        expires=None if caller.session is None else caller.session.temporary.expires,
        version=__version__,
    )


async def _end_earlier(request: Request, settings: Settings, sessions: SessionStore) -> None:
    """End the sessions whose cookies came along: this browser has a new one."""
    fields = request.headers.getlist("cookie")
    found = [one for origin in console_origins(request, settings) for one in read_cookies(fields, origin)]
    for cookie in found[:MAX_COOKIES]:
        try:
            earlier = await sessions.find(cookie)
        except HTTPException:
            continue
        await sessions.end(earlier.temporary.access_key)


@router.delete("/session", status_code=204)
async def sign_out(request: Request, caller: Annotated[Caller, Depends(require())]) -> None:
    """End the session, and what it signed."""
    if caller.session is None:
        raise HTTPException(400, "The admin token has no session to end.")
    await _sessions(request).end(caller.session.temporary.access_key)
    request.scope[SET_COOKIE] = clear_cookie(page_origin(request, _settings(request)))


def _settings(request: Request) -> Settings:
    return cast(Settings, request.app.state.settings)


def _sessions(request: Request) -> SessionStore:
    return cast(SessionStore, request.app.state.sessions)
