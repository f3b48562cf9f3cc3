"""Who waits for the journals is heard by whoever writes them, in whatever process of the host."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from sluice_s3.app.store.journals.wakeup import JournalWakeup

RING = (
    "import sys; from pathlib import Path; from sluice_s3.app.store.journals.wakeup import JournalWakeup; "
    "JournalWakeup(Path(sys.argv[1]), 'default').wake()"
)


async def test_heard_by_one(tmp_path: Path) -> None:
    heard, other, elsewhere = JournalWakeup(tmp_path, "a"), JournalWakeup(tmp_path, "a"), JournalWakeup(tmp_path, "b")
    other.wake()  # nobody listens
    assert not await heard.wait(0.01)
    for _ in range(1000):
        other.wake()  # more than a socket holds
    assert await heard.wait(60)
    assert not await heard.wait(0.01)
    elsewhere.wake()
    assert not await heard.wait(0.01)
    waiting = asyncio.create_task(other.wait(60))
    await asyncio.sleep(0)
    heard.wake()
    assert await heard.wait(60)  # who came first listens
    heard.stop_listening()
    waiting.cancel()
    assert not await other.wait(0.01)
    heard.wake()
    assert await other.wait(60)
    for wakeup in (heard, other, elsewhere):
        wakeup.close()


async def test_rung_by_another_process(tmp_path: Path) -> None:
    wakeup = JournalWakeup(tmp_path, "default")
    assert not await wakeup.wait(0)
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", RING, str(tmp_path)], check=True)
    assert await wakeup.wait(60)
    wakeup.close()
