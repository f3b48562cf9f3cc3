"""Blocking calls of a driver, in its own threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.threads import StoreThreadPool

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPoolMixin:
    """The thread pool of a driver."""

    _threads: StoreThreadPool

    def _run_in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin a call now, awaited or not.

        Raises as `StoreThreadPool.call`; the future raises what the call raises.
        """
        return self._threads.call(call, *args, **kwargs)
