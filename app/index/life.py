"""How an index of either engine registers its writer, and is let go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from app.errors import DomainError
from app.index.generation import Generation
from app.index.incarnation import LifeLock
from app.index.steps import Transaction
from app.index.transactions import writers

T = TypeVar("T")


class Life:
    """A part of both engines. Their `start` pushes onto `_opened` what `close` ends, and opens `_generation`."""

    incarnation = 0
    _generation: Generation

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._opened = AsyncExitStack()

    async def _commit(self, function: Callable[..., Transaction[T]], *arguments: object) -> T:
        raise NotImplementedError

    async def _register(self) -> None:
        """Begin an incarnation, which ends when the index is closed."""
        life = LifeLock(self._life_locks)
        try:
            self.incarnation = await self._commit(writers.register, life.name)
        except BaseException:
            life.close(remove=False)
            raise
        self._opened.push_async_callback(self._retire, life)

    async def _retire(self, life: LifeLock) -> None:
        retired = False
        try:
            retired = await self._commit(writers.retire, self.incarnation)
        except DomainError:
            pass  # the sweep finds it
        life.close(remove=retired)

    async def close(self) -> None:
        """Finish what is queued and let go; see `Index.close`."""
        await self._opened.aclose()

    @property
    def _life_locks(self) -> Path:
        """The directory of the locks of this machine's writers."""
        return self._run_dir / "writers"

    @property
    def generation(self) -> int:
        """See `Index.generation`."""
        return self._generation.read()

    async def forget_writer(self, incarnation: int) -> None:
        """See `Index.forget_writer`."""
        lock_name = await self._commit(writers.forget_writer, incarnation)
        if lock_name is not None:
            (self._life_locks / lock_name).unlink(missing_ok=True)
