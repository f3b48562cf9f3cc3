"""The guard of every route: who calls, and whether the caller may do it."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from fastapi import FastAPI, HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext, iter_route_contexts

from sluice_s3.app.access.account import caller_of
from sluice_s3.app.access.admin_actions import DESCRIPTIONS
from sluice_s3.app.access.authorize import authorize_admin, no_values
from sluice_s3.app.access.key_uses import CONSOLE
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import Principal, build_principal
from sluice_s3.app.admin.sessions.cookie import (
    MAX_COOKIES,
    REISSUED_AFTER_SECONDS,
    SessionCookie,
    read_cookies,
    write_cookie,
)
from sluice_s3.app.admin.sessions.origin import FOREIGN, client_address, console_origins, is_foreign, page_origin
from sluice_s3.app.admin.sessions.store import ENDED, OpenSession, SessionStore
from sluice_s3.app.admin.sessions.token import AdminToken
from sluice_s3.app.admin.sessions.values import condition_values
from sluice_s3.app.settings import Settings

CALLER = "sluice.caller"
"""Key of the scope for the caller once it is known."""
SET_COOKIE = "sluice.set_cookie"
"""Key of the scope for a Set-Cookie of the answer."""
CSRF_HEADER = "x-sluice-csrf"
UNATTENDED_HEADER = "x-sluice-unattended"
"""Sent with what a page asks by itself while nobody touches it: such requests do not renew a session."""
API = "/api/v1"
LIVE = f"{API}/live/"
"""Paths of streams of events, which browsers open again by themselves."""
READS = frozenset({"GET", "HEAD"})
SIGN_IN = "Sign in, or send the admin token."
BAD_TOKEN = "This page is out of date. Reload it and try again."  # noqa: S105 - a message


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: somebody signed in to the console, or the holder of the admin token, as the first account."""

    account_id: str
    principal: Principal | None
    """The user; None for the account itself."""
    root: bool
    """The first account itself."""
    arn: str
    address: str
    """The client's IP address."""
    access_key: str
    """The key that was signed in with; empty for the admin token."""
    first_account: str
    name: str = ""
    """The user's name, or the account's."""
    values: Values = field(default=no_values, repr=False)
    """The condition keys of the request, for operations of IAM."""
    session: OpenSession | None = field(default=None, repr=False)

    def may(self, action: str) -> bool:
        """Return whether the caller may do an action of `app.access.admin_actions`."""
        return authorize_admin(self.account_id, self.first_account, self.principal, action, self.values)


class Guard:
    """A dependency that yields the `Caller`, once it may do an action."""

    def __init__(self, action: str | None) -> None:
        if action is not None and action not in DESCRIPTIONS:
            raise ValueError(f"{action} is missing in app/access/admin_actions.py")
        self.action = action

    async def __call__(self, request: Request) -> Caller:
        """Raise HTTPException: 401 for a caller that is not known, 403 for one that may not."""
        caller = await authenticate(request)
        if self.action is not None and not caller.may(self.action):
            raise HTTPException(403, f"You need the permission {self.action} for this. Ask an administrator.")
        return caller


def require(action: str | None = None) -> Guard:
    """Return the dependency for a route: `Depends(require("sluice:ListStores"))`; without an action: signed in."""
    return Guard(action)


def require_other_account(caller: Caller, account_id: str) -> None:
    """Raise HTTPException (403) for the first account, unless it calls itself: its keys may do everything."""
    if account_id == caller.first_account and not caller.root:
        raise HTTPException(403, "Only the first account may change what is its own. Sign in with its key.")


async def require_token(request: Request) -> None:
    """Let only the admin token in, for pages that run foreign scripts. Raises HTTPException."""
    token = _token(request)
    if not (token.is_bearer(request) or token.is_password(request)):
        raise _unknown(request)


async def authenticate(request: Request) -> Caller:
    """Return who sends a request. Raises HTTPException (401, 403)."""
    found = request.scope.get(CALLER)
    if found is None:
        found = request.scope[CALLER] = await _authenticate(request)
    return cast(Caller, found)


async def is_signed_in(request: Request) -> bool:
    """Return whether a request would still be let in: for answers that last, such as streams of events."""
    try:
        await _authenticate(request)
    except HTTPException:
        return False
    return True


async def _authenticate(request: Request) -> Caller:
    token = _token(request)
    if token.is_bearer(request):
        return await _operator(request)
    if (session := await _find_session(request)) is not None:
        return await signed_in(request, session)
    if token.is_password(request):
        _check_password_page(request)
        return await _operator(request)
    raise _unknown(request)


async def _operator(request: Request) -> Caller:
    first = await _sessions(request).first_account()
    values = condition_values(request, first, None)
    return Caller(first, None, True, caller_of(first).arn, client_address(request), "", first, "admin token", values)


def session_cookies(request: Request) -> list[tuple[SessionCookie, str]]:
    """Return the session cookies that a request carries, unchecked, each with its origin."""
    fields = request.headers.getlist("cookie")
    origins = console_origins(request, _settings(request))
    return [(one, origin) for origin in origins for one in read_cookies(fields, origin)]


async def _find_session(request: Request) -> OpenSession | None:
    """Return the session of a request's cookie, checked; None without a cookie. Raises HTTPException."""
    settings = _settings(request)
    if not settings.console or request.headers.get("authorization", "")[:7].lower() == "bearer ":
        return None
    found = session_cookies(request)
    if not found:
        return None
    if is_foreign(request):
        raise HTTPException(403, FOREIGN)
    session, origin = await _choose(_sessions(request), found)
    if request.method not in READS:
        page_origin(request, settings)
        sent = request.headers.get(CSRF_HEADER, "").encode("latin-1")
        if not hmac.compare_digest(sent, session.csrf.encode()):
            raise HTTPException(403, BAD_TOKEN)
    now = int(time.time())
    if now - session.used >= REISSUED_AFTER_SECONDS and _is_attended(request):
        key = session.temporary
        request.scope[SET_COOKIE] = write_cookie(origin, key.access_key, key.secret, now)
    return session


def _is_attended(request: Request) -> bool:
    """Return whether a person's action asks, and not a page or a stream by itself."""
    return UNATTENDED_HEADER not in request.headers and not request.url.path.startswith(LIVE)


async def _choose(sessions: SessionStore, found: list[tuple[SessionCookie, str]]) -> tuple[OpenSession, str]:
    """Return the one open session of some cookies, and its origin. Raises HTTPException.

    A page of another port can set cookies for a path of its choice beside ours: false ones, or of a session of its own.
    """
    valid: list[tuple[OpenSession, str]] = []
    for cookie, origin in found[:MAX_COOKIES]:
        try:
            valid.append((await sessions.find(cookie), origin))
        except HTTPException:
            if len(found) == 1:
                raise
    if not valid:
        raise HTTPException(401, ENDED)
    if len(valid) > 1:
        raise HTTPException(401, "There are two sessions in this browser. Remove this site's cookies, and sign in.")
    return valid[0]


async def signed_in(request: Request, session: OpenSession) -> Caller:
    """Return the caller of a session."""
    key = session.signed_in
    request.app.state.key_uses.note(key, CONSOLE)
    principal = None if key.holder is None else build_principal(key.holder)
    first = await _sessions(request).first_account()
    return Caller(
        account_id=key.account_id,
        principal=principal,
        root=principal is None and key.account_id == first,
        arn=caller_of(key.account_id).arn if principal is None else principal.arn,
        address=client_address(request),
        access_key=key.access_key,
        first_account=first,
        name=key.display_name if principal is None else principal.name,
        values=condition_values(request, key.account_id, principal),
        session=session,
    )


def _check_password_page(request: Request) -> None:
    """Refuse a change for which a browser sends the password that it keeps, from a page of another origin."""
    if request.method in READS:
        return
    if "origin" in request.headers or is_foreign(request):
        page_origin(request, _settings(request))


def _unknown(request: Request) -> HTTPException:
    """Return the error for a caller that is not known; a browser asks for a password only for a page."""
    asks = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    return HTTPException(401, SIGN_IN, {"www-authenticate": 'Basic realm="sluice admin"'} if asks else None)


def _token(request: Request) -> AdminToken:
    return cast(AdminToken, request.app.state.token)


def _sessions(request: Request) -> SessionStore:
    return cast(SessionStore, request.app.state.sessions)


def _settings(request: Request) -> Settings:
    return cast(Settings, request.app.state.settings)


OPEN_ROUTES = frozenset({("POST", f"{API}/session")})
"""Routes of the API without a guard: one signs in there."""


def api_routes(app: FastAPI) -> Iterator[RouteContext]:
    """Yield the routes of the API, those of included routers too."""
    return (route for route in iter_route_contexts(app.routes) if (route.path or "").startswith(API))


def check_routes(app: FastAPI) -> None:
    """Raise ValueError for a route of the API that everybody could call."""
    for route in api_routes(app):
        is_open = all((method, route.path) in OPEN_ROUTES for method in route.methods or [""])
        dependant = getattr(route, "dependant", None)
        if not is_open and (dependant is None or not any(_guards(dependant))):
            raise ValueError(f"{route.path}: a route of the API needs Depends(require(…))")


def _guards(dependant: Dependant) -> Iterable[bool]:
    for one in dependant.dependencies:
        yield isinstance(one.call, Guard)
        yield from _guards(one)
