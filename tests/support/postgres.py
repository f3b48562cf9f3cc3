"""A Postgres server of the tests' own, as a user that is not root, in a directory that this user may enter.

SLUICE_TEST_INDEX=postgres runs the tests of the index, the store, gateways and crashes on it instead of SQLite.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import asyncpg

from sluice_s3.app.index import open_index
from sluice_s3.app.index.schema.tables import metadata
from sluice_s3.app.settings import Settings
from tests.support.environment import lack

CHOSEN = os.environ.get("SLUICE_TEST_INDEX", "sqlite")
if CHOSEN not in ("sqlite", "postgres"):
    raise ValueError("SLUICE_TEST_INDEX must be sqlite or postgres")
ROOM = 2 << 30
"""Free bytes that memory must have for the server to lie there, where its syncs, which are in earnest, cost nothing."""
OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "10s",
    "log_min_messages": "fatal",
}

_numbers = itertools.count(1)


def programs() -> Path | None:
    """The directory of the newest server that is installed."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


class Server:
    """One server. `start` and `stop` may be called again and again."""

    def __init__(self, directory: Path, bin: Path, user: str | None) -> None:
        self._directory = directory
        self._bin = bin
        self._user = user
        self._used: list[str] = []

    def _run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._bin / program, *arguments],
            check=check,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            user=self._user,
            group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
            extra_groups=None if self._user is None else [],
            timeout=60,
        )

    def make(self) -> None:
        """Make its files."""
        self._run(
            "initdb", "-D", str(self._data), "-U", "sluice", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"
        )
        lines = [f"{name} = '{value}'" for name, value in OPTIONS.items()]
        lines.append(f"unix_socket_directories = '{self._directory}'")
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._directory / "log"), "-w", "-t", "60", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop: `immediate` is a crash of it, `fast` cuts its connections."""
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "-t", "60", "stop")

    @property
    def socket(self) -> str:
        """The path of the socket that it listens on."""
        return f"{self._directory}/.s.PGSQL.5432"

    @contextlib.contextmanager
    def standby(self) -> Iterator[Server]:
        """A synchronous standby that runs until the end of the block: from now on no commit is answered without it."""
        with _placed(self._bin, self._user) as made:
            primary = ("-h", str(self._directory), "-U", "sluice")
            self._run("pg_basebackup", *primary, "-D", str(made._data), "-R", "-X", "stream", "--checkpoint=fast")
            with (made._data / "postgresql.auto.conf").open("a") as file:
                file.write(f"unix_socket_directories = '{made._directory}'\n")
            made.start()
            self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.sql("SELECT pg_reload_conf()")
            while self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1":
                time.sleep(0.05)
            yield made

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "promote")

    @property
    def pid(self) -> int:
        """Of its first process."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def processes(self) -> list[int]:
        """All of its processes, the first one first."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [self.pid, *map(int, children.split())]

    def url(self, database: str) -> str:
        """Of a database."""
        return f"postgresql://sluice@/{database}?host={self._directory}"

    def sql(self, command: str, database: str = "postgres") -> str:
        """What `psql` answers, without decoration."""
        answer = subprocess.run(
            [self._bin / "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", command, self.url(database)],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return answer.stdout.strip()

    def empty(self) -> str:
        """The URL of a new database without tables."""
        name = f"test{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    @cached_property
    def _template(self) -> str:
        name = f"template{next(_numbers)}"  # never one that a failed try left
        self.sql(f"CREATE DATABASE {name}")
        with tempfile.TemporaryDirectory() as run_dir:
            settings = Settings(index=self.url(name), runtime_dir=run_dir)  # type: ignore[arg-type]

            async def migrate() -> None:
                index = open_index(settings, writer=False)
                await index.start(migrate=True)
                await index.close()

            asyncio.run(migrate())
        return name

    def fresh(self) -> str:
        """The URL of a new index, which is a copy of one that was migrated once."""
        name = f"test{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        return self.url(name)

    @contextlib.contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of an index that was used before and is empty again, which is sooner had than a new one."""
        url = self._used.pop() if self._used else self.fresh()
        yield url
        asyncio.run(_empty(url))
        self._used.append(url)


async def _empty(url: str) -> None:
    connection = await asyncpg.connect(url)
    tables = [table.name for table in metadata.sorted_tables if table.name != "sequence"]
    await connection.execute("; ".join(f"DELETE FROM {name}" for name in tables))
    await connection.close()


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server until the end of the block. Skips the test where there is none, but fails in CI."""
    found = programs()
    if found is None:
        lack("no PostgreSQL server is installed")
    user = None
    if os.geteuid() == 0:
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = "postgres" if "postgres" in known else "nobody"
    with _placed(found, user) as server:
        server.make()
        server.start()
        yield server


@contextlib.contextmanager
def _placed(bin: Path, user: str | None) -> Iterator[Server]:
    """One without files, whose directory goes at the end of the block; if it runs then, it is stopped."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else Path(tempfile.gettempdir())
    directory = Path(tempfile.mkdtemp(prefix="sluice-postgres-", dir=place))
    server = Server(directory, bin, user)
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        directory.chmod(0o755)
        yield server
    finally:
        with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
            os.kill(server.pid, signal.SIGCONT)
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@cache
def server() -> Server:
    """The one of this process, which ends with it."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running())


@cache
def _index_of(data: Path) -> str:
    return server().fresh()


def environment(data: Path) -> dict[str, str]:
    """Settings of a gateway with the home `data`, whose index is the same one each time when it is in Postgres."""
    return {} if CHOSEN == "sqlite" else environment_here(data)


def environment_here(data: Path) -> dict[str, str]:
    """The same, whatever was chosen."""
    return {"SLUICE_INDEX": _index_of(data), "SLUICE_RUNTIME_DIR": str(data / "index" / "run")}
