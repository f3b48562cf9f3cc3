"""Runs gateways on one directory and one new Postgres database, on several ports.

    SLUICE_BENCH_POSTGRES='postgresql://sluice@/{database}?host=/run/postgresql' python -m sluice_s3.loadtests.cpu run
        --target 'three={python} -m sluice_s3.loadtests.cpu.gateways {data} {port} {port2} {port3}'
        --beside PID-OF-POSTGRES

SLUICE_BENCH_POSTGRES is the URL of a server whose user may create databases. The gateways run in the foreground; the
database is dropped at the end.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg

SLUICE = (sys.executable, "-m", "sluice_s3.app.cli")
POLL_SECONDS = 0.1


def serve(data: Path, ports: list[str], url: str) -> int:
    """Run gateways with one worker each until SIGTERM, or until one ends.

    `url` contains `{database}` for the database's name.
    """
    name = f"bench_{secrets.token_hex(6)}"
    admin = url.format(database="postgres")
    asyncio.run(_execute(admin, f"CREATE DATABASE {name}"))
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(0))
    environment = {**os.environ, "SLUICE_INDEX": url.format(database=name)}
    gateways: list[subprocess.Popen[bytes]] = []
    try:
        subprocess.run([*SLUICE, "migrate"], env=environment, check=True)
        for port in ports:
            words = ["serve", "--host", "127.0.0.1", "--port", port, "--data", str(data), "--workers", "1"]
            own = {**environment, "SLUICE_RUNTIME_DIR": str(data.parent / f"run-{port}")}
            gateways.append(subprocess.Popen([*SLUICE, *words, "--admin-port", "-1"], env=own))
        while not ended:
            time.sleep(POLL_SECONDS)
            ended += [1 for gateway in gateways if gateway.poll() is not None]
    finally:
        for gateway in gateways:
            gateway.terminate()
        for gateway in gateways:
            gateway.wait()
        asyncio.run(_execute(admin, f"DROP DATABASE {name} WITH (FORCE)"))
    return ended[0]


async def _execute(url: str, command: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2:], os.environ["SLUICE_BENCH_POSTGRES"]))
