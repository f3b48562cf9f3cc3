"""What is done to a plane behind its requests: the jobs of the elected worker, and the operator's commands and API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from typer.main import get_command

from sluice_s3.app.admin import accounts, identities
from sluice_s3.app.admin.sessions.token import AdminToken
from sluice_s3.app.cli.main import cli
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import other_stores_watermark
from sluice_s3.app.jobs.lifecycle import Lifecycle
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.jobs.relocation.restores import RestoreRunner
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from tests.unit.s3.plane import Plane

COMMAND = get_command(cli)
ADMIN = FastAPI()
for router in (accounts.router, identities.router):
    ADMIN.include_router(router)
TOKEN = "sesame-sesame"
ADMIN.state.token = AdminToken(TOKEN)
FAST = 1 << 40
NEVER = 1 << 62


class Operator:
    """Who has the token acts as an account apart from all others."""

    async def first_account(self) -> str:
        return "operator"


class Jobs:
    """All of one plane; each look at the clock is a second later."""

    def __init__(self, plane: Plane) -> None:
        self._plane, self._store = plane, plane.store
        self._ticks = 0
        self._mover = BucketMigrator(plane.store, lambda: NEVER, self._tick)
        self._pieces = self._garbage(plane.store, blobs=False)
        self._garbages = [
            self._garbage(
                one, plane.journal_writers[name].bound, pieces=False, elsewhere=partial(other_stores_watermark, one)
            )
            for name, one in plane.store.all.items()
        ]
        self._compactors = [
            Compactor(one, 1 << 30, 0, lambda *_: None, lambda: float(self._tick())) for one in plane.store.all.values()
        ]

    def _garbage(self, store: Store, *more: Any, **options: Any) -> GarbageCollector:
        return GarbageCollector(store, lambda: NEVER, self._tick, 0, *more, **options)

    def _tick(self) -> int:
        self._ticks += 1000
        return self._ticks

    async def clean(self, *, repair: bool) -> None:
        """Garbage and compaction of what is written down, and fsck with repair, which walks over all directories."""
        await self._plane.written()
        for _ in range(2):
            for job in (self._pieces, *self._garbages, *self._compactors):
                await job.run_once()
        if repair:
            for one in self._store.all.values():
                assert (await fsck(one, repair=True)).clean

    async def scrub(self) -> list[str]:
        """Where damaged blobs are."""
        found = [await Scrubber(one, 0).run_once() for one in self._store.all.values()]
        return [str(fact["locator"]) for report in found for fact in report.damaged]

    async def move(self, passes: int) -> None:
        """Go on with moves to other stores."""
        for _ in range(passes):
            await self._plane.written()
            await self._mover.run_once()

    async def apply(self, now: Callable[[], int]) -> None:
        """Do what rules of life cycles say is due."""
        await Lifecycle(self._store, LifecycleCalendar(), FAST, lambda *_: None, now).run_once()

    async def restore(self, now: Callable[[], int]) -> None:
        """Bring archived objects back, and away again."""
        await RestoreRunner(self._store, LifecycleCalendar(), FAST, now).run_once()


def damage(store: Store, roots: dict[str, Path], locator: str) -> None:
    """Turn a byte of a blob around; a second time it is whole again. The blob is a file or a record of a pack."""
    name = store_of_locator(locator)
    kind, _, bare = locator.rpartition("/")[2].partition(":")
    pack, *rest = bare.split(".")
    packed = store.of(name).driver.packed(locator) is not None
    assert kind == ("p" if packed else "f")
    at = int(rest[0], 16) + int(rest[1], 16) - 1 if packed else 0
    (path,) = roots[name].glob(f"data/*/{int(pack, 16):016x}{'.pack' * packed}")
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


def sluice(config: Path, *words: str) -> int:
    """Run a command; its exit code. No loop may run in this thread."""
    told = StringIO()
    with redirect_stdout(told), redirect_stderr(told), pytest.raises(SystemExit) as ended:
        COMMAND([*words, "--config", str(config)])
    assert isinstance(ended.value.code, int), told.getvalue()
    return ended.value.code


async def admin(plane: Plane, method: str, path: str, **parameters: str) -> tuple[int, Any]:
    """What the admin API answers: its status and document."""
    ADMIN.state.index, ADMIN.state.sessions = plane.index, Operator()
    headers = {"authorization": f"Bearer {TOKEN}"}
    transport = httpx.ASGITransport(ADMIN)
    async with httpx.AsyncClient(transport=transport, base_url="http://admin", headers=headers) as client:
        answer = await client.request(method, path, json={"parameters": parameters} if parameters else None)
    return answer.status_code, answer.json() if answer.content else None
