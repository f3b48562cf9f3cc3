"""What the errors of Postgres and of the way to it mean. No message ever holds the URL or its password."""

from __future__ import annotations

import logging

import asyncpg

from sluice_s3.app.errors import DomainError, Overloaded, StoreFull, StoreUnavailable
from sluice_s3.app.private_files import UnsafeFile

logger = logging.getLogger("sluice.index")

RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})
"""Serialisation failure, deadlock, lock timeout: undone by the server, and worth another try."""
BUSY = frozenset({"53300", "53200"}) | RETRYABLE_STATES
"""Too many connections, out of memory (of locks too)."""
FULL = frozenset({"53100"})
CONNECTION = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    TimeoutError,
    EOFError,
)
"""The connection is of no use any more, or there was none. InternalClientError: the server has said why it ends it, and
its end is not here yet."""


def state_of(error: BaseException) -> str:
    """The SQLSTATE of what the server said, else empty."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Whether a connection that raised this must not be used again."""
    # 57P01, 57P02, 57P03: the server is stopping, crashed, or is starting. 25006: it is no primary any more
    return isinstance(error, CONNECTION) or state_of(error) in ("57P01", "57P02", "57P03", "25006", "25P03", "57P05")


def is_retryable(error: BaseException) -> bool:
    """Whether the server undid the transaction for a reason that passes."""
    return state_of(error) in RETRYABLE_STATES


def to_domain_error(error: BaseException) -> DomainError:
    """The domain error for it. Details go to the log only."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, UnsafeFile):
        return StoreUnavailable(reason=str(error))
    state = state_of(error)
    logger.error("index: %s %s: %s", type(error).__name__, state, error)
    if state in BUSY:
        return Overloaded(reason="the index is busy")
    if state in FULL:
        return StoreFull(reason="the index has no space left")
    return StoreUnavailable(reason="the index cannot be used")
