"""The audit trail of the admin API: every change by one of its routes, and every refused one of a known caller."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluice_s3.app.admin.answer_headers import REQUEST_ID
from sluice_s3.app.admin.sessions.guard import CALLER
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.index.audit.rows import SUCCESS, NewAuditEvent
from sluice_s3.app.index.engine.audit_trail import AuditTrail, audited

logger = logging.getLogger("sluice.admin")

API = "/api/v1/"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
CHANGES_NOTHING = frozenset(
    {
        "check_policy",
        "create_archive",
        "preview_lifecycle",
        "preview_load_test",
        "sign_requests",
        "simulate_request",
    }
)
"""Names of routes that take a body and change nothing."""
OF_IAM = frozenset({"call_iam", "run_operation"})
"""Names of routes that run an operation of IAM, which names itself if it changes anything."""
TOKEN = "admin-token"  # noqa: S105 - a name
DENIED = {401: "AccessDenied", 403: "AccessDenied", 404: "NotFound", 409: "Conflict", 422: "InvalidArgument"}
"""Outcomes by status; any other one is the status itself."""
TOO_MANY = 429
MAX_KEY = 128


class RequestTrail(AuditTrail):
    """The trail of a request whose caller the guard of its route finds out."""

    def __init__(self, scope: Scope) -> None:
        super().__init__("admin", "")
        self._scope = scope

    @property
    def is_unknown(self) -> bool:
        """Whether the guard has found no caller."""
        return CALLER not in self._scope

    @property
    def route(self) -> str:
        """The name of the route, empty where there is none."""
        return str(getattr(self._scope.get("route"), "name", ""))

    def event(self, outcome: str = SUCCESS, detail: str = "") -> NewAuditEvent:
        """See `AuditTrail.event`."""
        scope = self._scope
        caller = scope.get(CALLER)
        if caller is not None:
            self.account_id, self.access_key = caller.account_id, caller.access_key
            self.principal = caller.arn if caller.access_key else TOKEN
            self.source = "console" if caller.access_key else "admin"
        else:
            self.source = "console"  # somebody signs in
        client = scope.get("client")
        self.address = (caller.address if caller is not None else "") or (client[0] if client else "")
        if not self.action:
            name = self.route or scope["method"].lower()
            self.action = "sluice:" + "".join(word.capitalize() for word in name.split("_"))
            self.resource = scope["path"].removeprefix(API)
        return super().event(outcome, detail)


class AuditChanges:
    """Middleware that runs each change within its trail, and notes what no transaction has noted."""

    def __init__(self, app: ASGIApp, index: Index) -> None:
        self._app = app
        self._index = index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        path = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] in READS or not path.startswith(API):
            await self._app(scope, receive, send)
            return
        trail = RequestTrail(scope)
        trail.request_id = scope.get(REQUEST_ID, "")
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if not trail.written:  # before the answer, so that who has it finds the event
                    await self._note(trail, status)
            await send(message)

        with audited(trail):
            await self._app(scope, receive, watched)

    async def _note(self, trail: RequestTrail, status: int) -> None:
        if status == TOO_MANY or (trail.is_unknown and not trail.access_key):
            return  # anybody could fill the log with these: only attempts to sign in are counted
        if trail.route in CHANGES_NOTHING or (trail.route in OF_IAM and not trail.action):
            return
        outcome = SUCCESS if status < 400 else DENIED.get(status, str(status))
        try:
            if trail.is_unknown and await self._index.access_key(trail.access_key[:MAX_KEY]) is None:
                trail.access_key = ""  # it may be a secret that was typed in the wrong field
            await self._index.add_audit_events([trail.event(outcome)])
        except DomainError as error:
            logger.warning("audit log: an event is lost: %s", type(error).__name__)
