"""Answers to errors: no more of a request than is needed, and nothing of the inside."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse

from sluice_s3.app.errors import CommitUnknown, Overloaded, StoreUnavailable

AWAY = "The index or a store does not answer at present. Try again in a moment."


def add_error_answers(app: FastAPI) -> None:
    """Add the handlers of an application's errors."""
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    for away in (StoreUnavailable, Overloaded, CommitUnknown):
        app.add_exception_handler(away, _answer_away)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """Say where the fault is, without what was sent there, which may be a secret."""
    assert isinstance(error, RequestValidationError)
    faults = [{name: fault[name] for name in ("loc", "msg", "type") if name in fault} for fault in error.errors()]
    return JSONResponse({"detail": faults}, 422)


async def _answer_away(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": AWAY}, 503, {"retry-after": "2"})
