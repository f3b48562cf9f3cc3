"""What is committed under a lease checks it in its own transaction (law 5): one that was read before proves nothing.

The engine wraps each transaction that is begun within `under`, in whatever task that was started there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from app.index.gateways import Lease
from app.index.steps import Transaction
from app.index.transactions.gateways import check_lease

T = TypeVar("T")

_LEASE: ContextVar[Lease | None] = ContextVar("lease", default=None)


@contextmanager
def under(lease: Lease) -> Iterator[None]:
    """What is committed within fails with LeaseLost when the lease is not held any more."""
    token = _LEASE.set(lease)
    try:
        yield
    finally:
        _LEASE.reset(token)


def fenced(function: Callable[..., Transaction[T]]) -> Callable[..., Transaction[T]]:
    """The transaction with the check before it, if it is begun under a lease."""
    lease = _LEASE.get()
    if lease is None:
        return function

    def checked(*arguments: object) -> Transaction[T]:
        yield from check_lease(lease)
        return (yield from function(*arguments))

    return checked
