"""Blocking calls of a driver, in its own threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

from storage_drivers.errors import StoreFailed

P = ParamSpec("P")
T = TypeVar("T")


class Pooled:
    """What has threads of its own."""

    _threads: Executor

    def _submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return self._threads.submit(call, *args, **kwargs)
        except RuntimeError as error:
            raise StoreFailed("the store is closed") from error

    async def _hop(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._submit(call, *args, **kwargs))
