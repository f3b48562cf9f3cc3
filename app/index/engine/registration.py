"""Registration and release of the writer, for an index of either engine."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.engine.generation import Generation
from sluice_s3.app.index.engine.liveness_lock import LivenessLock
from sluice_s3.app.index.interface import Index


class RegisteredIndex(Index):
    """The common base of both engines.

    `start` pushes onto `_opened` what `close` ends. It opens `_generation`, too.
    """

    _generation: Generation

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._opened = AsyncExitStack()

    async def _register(self) -> None:
        """Begin an incarnation, which ends when the index closes."""
        life = LivenessLock(self._life_locks)
        try:
            self.incarnation = await self._register_writer(life.name)
        except BaseException:
            life.close(remove=False)
            raise
        self._opened.push_async_callback(self._retire, life)

    async def _retire(self, life: LivenessLock) -> None:
        retired = False
        try:
            retired = await self._retire_writer()
        except DomainError:
            pass  # the orphan sweeper finds the incarnation
        life.close(remove=retired)

    async def close(self) -> None:
        """Finish queued commits and unregister the writer; see `Index.close`."""
        await self._opened.aclose()

    @property
    def _life_locks(self) -> Path:
        """The directory of the liveness locks of this machine's writers."""
        return self._run_dir / "writers"

    @property
    def generation(self) -> int:
        """See `Index.generation`."""
        return self._generation.words[0]

    async def forget_writer(self, incarnation: int) -> None:
        """See `Index.forget_writer`."""
        lock_name = await self._forget_writer(incarnation)
        if lock_name is not None:
            (self._life_locks / lock_name).unlink(missing_ok=True)
