"""The end of a process of the server: with its exit code, or killed and stuck in the kernel for ever."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from sluice_s3.app.server.processes import child as children
from sluice_s3.app.server.processes.child import Child, Role
from sluice_s3.app.server.processes.launcher import Launcher
from tests.support.waiting import eventually_async

SLOT = 3


class Process:
    """One that ends when a test wants it."""

    pid = 1

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.returncode: int | None = None

    async def wait(self) -> int:
        await self.ended.wait()
        self.returncode = 7
        return 7


@pytest.fixture
async def process() -> Process:
    return Process()


@pytest.fixture
def child(process: Process, monkeypatch: pytest.MonkeyPatch) -> Child:
    monkeypatch.setattr(children, "DOOMED_CHECK_SECONDS", 0.01)
    return Child(Role("worker", 0, "", (), False), SLOT, process, -1, retired=True)  # type: ignore[arg-type]


async def test_one_that_was_killed_and_hangs_frees_its_slot(child: Child, process: Process, monkeypatch: Any) -> None:
    """Else the begin of its oldest request would keep discarded data on all stores for ever."""
    doomed = False
    monkeypatch.setattr(children, "is_dead_or_dying", lambda pid: doomed and pid == process.pid)
    tasks: list[asyncio.Task[None]] = []

    def background(work: Coroutine[None, None, None]) -> None:
        tasks.append(asyncio.create_task(work))

    oldest = Mock()
    launcher: Any = SimpleNamespace(
        _children={child}, _counters=Mock(), _stores=Mock(), _quotas=Mock(), _oldest=oldest, _freed=asyncio.Event()
    )
    launcher._background = background
    launcher._reap = lambda one: Launcher._reap(launcher, one)
    watching = asyncio.create_task(Launcher._watch(launcher, child))
    await asyncio.sleep(0.1)
    assert not oldest.release.called, "it only takes its time"
    doomed = True
    await watching
    oldest.release.assert_called_once_with(SLOT)
    assert launcher._children == {child}, "it holds the lock of the server"
    process.ended.set()
    await eventually_async(lambda: not launcher._children)


async def test_one_that_ends_meanwhile_has_its_own_exit_code(
    child: Child, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_: int) -> bool:
        process.ended.set()
        return True

    monkeypatch.setattr(children, "is_dead_or_dying", ends)
    assert await child.wait_until_dead() == 7


async def test_one_that_hangs_was_killed(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "is_dead_or_dying", lambda _: True)
    assert await child.wait_until_dead() == -signal.SIGKILL
