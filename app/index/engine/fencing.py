"""Fencing: each transaction under a lease checks the lease itself (law 5).

An earlier check proves nothing. The engine wraps each transaction that begins within `with_lease`, also in tasks that
were started there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from sluice_s3.app.index.cluster.rows import Lease
from sluice_s3.app.index.cluster.transactions import check_lease
from sluice_s3.app.index.sql.transaction import Transaction

T = TypeVar("T")

_LEASE: ContextVar[Lease | None] = ContextVar("lease", default=None)


@contextmanager
def with_lease(lease: Lease) -> Iterator[None]:
    """Make transactions inside fail with LeaseLost once the lease is lost."""
    token = _LEASE.set(lease)
    try:
        yield
    finally:
        _LEASE.reset(token)


def fenced(function: Callable[..., Transaction[T]]) -> Callable[..., Transaction[T]]:
    """Return the transaction with the check before it, if it begins under a lease."""
    lease = _LEASE.get()
    if lease is None:
        return function

    def checked(*arguments: object) -> Transaction[T]:
        yield from check_lease(lease)
        return (yield from function(*arguments))

    return checked
