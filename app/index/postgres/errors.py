"""The meaning of Postgres and connection errors.

No message ever holds the URL or its password.
"""

from __future__ import annotations

import logging

import asyncpg

from sluice_s3.app.errors import DomainError, Overloaded, StoreFull, StoreUnavailable
from sluice_s3.app.private_files import UnsafeFile

logger = logging.getLogger("sluice.index")

RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03"})
"""Serialization failure, deadlock, lock timeout: the server undid the transaction, and a retry may succeed."""
BUSY = frozenset({"53300", "53200"}) | RETRYABLE_STATES
"""Too many connections, out of memory (also for locks)."""
FULL = frozenset({"53100"})
CONNECTION = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    TimeoutError,
    EOFError,
)
"""The connection is unusable, or there was none. InternalClientError: the server has announced that it ends the
connection, and the end has not arrived yet."""


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE of a server error, or an empty text."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Return whether a connection that raised this error must not be reused."""
    # 57P01, 57P02, 57P03: the server is stopping, crashed, or is starting. 25006: it is no longer the primary
    return isinstance(error, CONNECTION) or state_of(error) in ("57P01", "57P02", "57P03", "25006", "25P03", "57P05")


def is_retryable(error: BaseException) -> bool:
    """Return whether the server undid the transaction for a transient reason."""
    return state_of(error) in RETRYABLE_STATES


def to_domain_error(error: BaseException) -> DomainError:
    """Return the domain error for a Postgres error.

    Details go to the log only.
    """
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
