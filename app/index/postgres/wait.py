"""Waits at a start until Postgres answers, which another container or machine may still bring up."""

from __future__ import annotations

import asyncio
import logging
import time
from urllib.parse import urlsplit

import asyncpg

from sluice_s3.app.index.postgres.errors import is_lost, state_of

logger = logging.getLogger("sluice.index")

CONNECT_SECONDS = 3.0
PAUSE_SECONDS = 0.5
NOT_YET = frozenset({"53300", "3D000"})
"""SQLSTATEs of a server that has no free connection, or whose database something else still makes."""


async def wait_for_postgres(url: str, seconds: float) -> str | None:
    """Wait until Postgres takes connections, for `seconds` at most; return why it did not.

    Returns None when it does, and when it refuses for a reason that time does not change, which the start then
    reports. Logs one line when it has to wait. No message contains the URL.
    """
    deadline = time.monotonic() + seconds
    is_logged = False
    while True:
        try:
            connection = await asyncpg.connect("postgresql" + url[url.index("://") :], timeout=CONNECT_SECONDS)
        except Exception as error:
            if not (is_lost(error) or state_of(error) in NOT_YET):
                return None
            reason = _reason(error)
        else:
            connection.terminate()
            return None
        if time.monotonic() >= deadline:
            return f"Postgres at {_place(url)} did not answer for {seconds:g} s: {reason}"
        if not is_logged:
            logger.info("waiting up to %g s for Postgres at %s: %s", seconds, _place(url), reason)
            is_logged = True
        await asyncio.sleep(min(PAUSE_SECONDS, max(deadline - time.monotonic(), 0)))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.strerror and not error.strerror.startswith("Multiple"):
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]


def _place(url: str) -> str:
    """Return host and port of a URL."""
    return urlsplit(url).netloc.rpartition("@")[2] or "its socket"
