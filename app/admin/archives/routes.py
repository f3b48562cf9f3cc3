"""Archives in the admin API: a ticket that says what an archive costs, and its download."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, cast
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sluice_s3.app.admin.archives.archive import Archive, Selection, TooLarge, measure
from sluice_s3.app.admin.archives.entry_names import EntryNames
from sluice_s3.app.admin.archives.models import ArchiveIn, ArchiveOut, ArchiveProgressOut
from sluice_s3.app.admin.archives.s3_connection import ConnectionFailed
from sluice_s3.app.admin.archives.session_source import open_source
from sluice_s3.app.admin.archives.source import Refused
from sluice_s3.app.admin.archives.tickets import TICKET_SECONDS, Tickets, TooMany
from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.sessions.guard import Caller, require

router = APIRouter(tags=["archives"], route_class=StrictRoute)
RETRY = {"retry-after": "10"}
SignedIn = Annotated[Caller, Depends(require())]


@router.post("/archives")
async def create_archive(request: Request, caller: SignedIn, body: ArchiveIn) -> ArchiveOut:
    """Return what a zip archive of a folder or a selection would cost, and a ticket to download it once.

    It has what the caller may read. 413 for too many objects.
    """
    tickets, owner = _tickets(request), _owner(caller)
    selection = Selection(tuple(dict.fromkeys(body.keys)), tuple(dict.fromkeys(body.prefixes)), body.root)
    try:
        with tickets.running(owner), open_source(request, caller, body.bucket) as source:
            cost = await measure(source, selection)
    except TooMany as error:
        raise HTTPException(429, str(error), RETRY) from None
    except TooLarge as error:
        raise HTTPException(413, str(error)) from None
    except Refused as error:
        raise HTTPException(error.status if error.status in (400, 403, 404) else 503, str(error)) from None
    except ConnectionFailed as error:
        raise HTTPException(503, f"{error}. Try again.") from None
    name = _file_name(body)
    ticket = tickets.issue(owner, body.bucket, selection, name)
    return ArchiveOut(
        ticket=ticket,
        path=f"/api/v1/archives/{ticket}",
        name=name,
        objects=cost.objects,
        bytes=cost.bytes,
        unreadable=cost.unreadable,
        expires_in=TICKET_SECONDS,
    )


@router.get("/archives/{ticket}", response_class=StreamingResponse)
async def get_archive(request: Request, caller: SignedIn, ticket: str) -> StreamingResponse:
    """Return the archive of a ticket, once, to the session that asked for it.

    Its last entry `ERRORS.txt` names what could not be read, if there is any.
    """
    tickets, owner = _tickets(request), _owner(caller)
    with ExitStack() as stack:
        try:
            stack.enter_context(tickets.running(owner))
        except TooMany as error:
            raise HTTPException(429, str(error), RETRY) from None
        found = tickets.redeem(ticket, owner)
        if found is None:
            raise HTTPException(404, "This download was used already, or took too long to begin. Ask for it again.")
        source = stack.enter_context(open_source(request, caller, found.bucket))
        return ArchiveResponse(Archive(source, found.selection, found.progress), found.name, stack.pop_all())


@router.get("/archives/{ticket}/progress")
async def get_archive_progress(request: Request, caller: SignedIn, ticket: str) -> ArchiveProgressOut:
    """Return how far the download of a ticket is, to the session that asked for it."""
    found = _tickets(request).progress(ticket, _owner(caller))
    if found is None:
        raise HTTPException(404, "This download took too long to begin, or the gateway restarted: ask for it again.")
    return ArchiveProgressOut.model_validate(found)


class ArchiveResponse(StreamingResponse):
    """Streams an archive, and frees what it holds when it ends, or its client leaves."""

    def __init__(self, archive: Archive, name: str, held: ExitStack) -> None:
        self._archive = archive
        self._pieces = archive.stream()
        self._held = held
        super().__init__(self._pieces, media_type="application/zip", headers=_headers(name))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and close what the archive reads from."""
        with self._held:
            try:
                await super().__call__(scope, receive, send)
            finally:
                await self._pieces.aclose()
                self._archive.close()  # a stream that never began ends without a word


def _headers(name: str) -> dict[str, str]:
    plain = "".join(one if one.isascii() and one.isprintable() and one not in '"\\%' else "_" for one in name)
    return {
        "content-disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }


def _file_name(body: ArchiveIn) -> str:
    """Return the name of the folder, or of the bucket, with `.zip`."""
    alone = body.prefixes[0] if len(body.prefixes) == 1 and not body.keys else body.root
    segments = [one for one in alone.split("/") if one]
    # as within the archive, so that the name is safe too
    return EntryNames().name(segments[-1] if segments else body.bucket) + ".zip"


def _owner(caller: Caller) -> str:
    """Return what a ticket belongs to: the session. Raises HTTPException."""
    if caller.session is None:
        raise HTTPException(400, "The admin token reads no objects. Sign in with an access key.")
    return caller.session.temporary.access_key


def _tickets(request: Request) -> Tickets:
    state = request.app.state
    if not hasattr(state, "archive_tickets"):
        state.archive_tickets = Tickets()
    return cast(Tickets, state.archive_tickets)
