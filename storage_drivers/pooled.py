"""Blocking calls of a driver, in its own threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from storage_drivers.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")


class Pooled:
    """What has threads of its own."""

    _threads: Threads

    def _hop(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin a call now, awaited or not. Raises as `Threads.call`; awaited, what the call raises."""
        return self._threads.call(call, *args, **kwargs)
