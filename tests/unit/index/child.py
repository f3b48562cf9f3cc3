"""A process beside the test: `python -m tests.unit.index.child WHAT DIRECTORY …` puts until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sluice_s3.app.index.iam.rows import Account
from tests.unit.index.tools import OWNER, new, open_at

CALLERS = 8


async def put_for_ever(directory: Path, bucket_id: int, name: str, durability: str) -> None:
    """Print every key whose commit was answered, and stop when standard input closes."""
    index = open_at(directory, durability=durability)
    await index.start()
    print("ready", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().run_in_executor(None, lambda: (sys.stdin.read(), stop.set()))

    async def put(caller: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"{name}-{caller}-{number}"
            await index.put_version(bucket_id, key, new(f"blob-{key}"))
            print(key, flush=True)
            number += 1

    tasks = [asyncio.create_task(put(caller)) for caller in range(CALLERS)]
    await stop.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await index.close()


async def add_account(directory: Path) -> None:
    """What the command line does beside a server."""
    index = open_at(directory, writer=False)
    await index.start()
    await index.add_account(Account(OWNER, "child", "", False, 0), "CHILD", "secret")
    await index.close()


def main() -> None:
    """Do what the first argument names."""
    what, directory, *more = sys.argv[1:]
    if what == "put":
        asyncio.run(put_for_ever(Path(directory), int(more[0]), more[1], more[2]))
    else:
        asyncio.run(add_account(Path(directory)))


if __name__ == "__main__":
    main()
