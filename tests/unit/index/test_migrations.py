"""Migrations make what the tables say, wherever they are started, whole or not at all."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import sluice_s3.migrations
from sluice_s3.app.errors import StoreFull, StoreUnavailable
from sluice_s3.app.index.postgres import migrate as postgres_migrate
from sluice_s3.app.index.postgres.migrate import _run_alembic as run_on_postgres
from sluice_s3.app.index.schema.tables import ENGINE_ONLY, REVISION, metadata, set_postgres_options
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.connection import open_connection
from tests.support import postgres
from tests.support.environment import PYTHONPATH, ROOT
from tests.unit.index.tools import open_at


def described(path: Path) -> set[tuple[str, str]]:
    """Tables and indexes of a database as SQL, without layout."""
    connection = open_connection(path)
    try:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    finally:
        connection.close()
    return {(name, "".join(sql.split()).replace('"', "")) for name, sql in rows}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that all migrations made, one after the other."""
    path = tmp_path_factory.mktemp("migrated") / "sluice.db"
    open_connection(path, create=True).close()
    migrate._run_alembic(path)
    return path


def test_the_code_needs_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(sluice_s3.migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]


def test_alembic_finds_no_difference_to_the_tables(migrated: Path) -> None:
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(migrated), poolclass=NullPool)
    with engine.connect() as connection:
        assert differences(connection) == []


def differences(connection: Any) -> list[Any]:
    """What Alembic would still have to do."""
    engine = connection.dialect.name
    if engine == "postgresql":
        set_postgres_options()

    def is_compared(item: Any, name: str, *_: Any) -> bool:
        # SQLite does not tell what is descending: see `test_migrations_make_the_very_tables`
        told = engine != "sqlite" or name != "versions_others"
        return told and item.info.get(ENGINE_ONLY, engine) == engine

    return compare_metadata(MigrationContext.configure(connection, opts={"include_object": is_compared}), metadata)


def test_alembic_finds_no_difference_on_postgres() -> None:
    async def look(url: str) -> list[Any]:
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"), poolclass=NullPool)
        async with engine.connect() as connection:
            found: list[Any] = await connection.run_sync(differences)
        await engine.dispose()
        return found

    with postgres.server().lent() as url:
        assert asyncio.run(look(url)) == []


def test_migrations_make_the_very_tables(migrated: Path, template: Path) -> None:
    """Also what Alembic does not compare: partial indexes, tables without rowid, and their rows."""
    assert described(migrated) == described(template)
    assert rows_of(migrated) == rows_of(template) != {}


def rows_of(path: Path) -> dict[str, list[Any]]:
    """The rows of each table that has any."""
    connection = open_connection(path)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    finally:
        connection.close()
    return {table: found for table, found in rows.items() if found}


def test_a_new_index_needs_no_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sluice_s3.app.index.sqlite import migrate;"
        "migrate.upgrade(Path('sluice.db').absolute(), Path('index.lock')); sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": PYTHONPATH}, check=True)


def test_numbers_of_rows_are_rowids(template: Path) -> None:
    connection = open_connection(template)
    for table, column in (("versions", "seq"), ("uploads", "id"), ("discards", "id")):
        connection.execute(f"INSERT INTO {table} SELECT 77{', 1' * (columns(connection, table) - 1)}")
        assert connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall() == [(77, 77)]
        connection.execute(f"DELETE FROM {table}")
    connection.close()


def columns(connection: object, table: str) -> int:
    return len(connection.execute(f"PRAGMA table_info({table})").fetchall())


def test_they_run_from_any_directory(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from sluice_s3.app.index.sqlite import migrate;"
        "migrate.upgrade(Path('sluice.db').absolute(), Path('index.lock'))"
    )
    root = str(ROOT)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": root}, check=True)
    connection = open_connection(tmp_path / "sluice.db")
    assert migrate.revision(connection) == REVISION
    connection.close()


def older(path: Path, revision: str) -> None:
    """Make an index of an earlier revision."""
    open_connection(path, create=True).close()
    config = Config()
    config.set_main_option("script_location", str(Path(sluice_s3.migrations.__file__).parent))
    engine = create_engine("sqlite://", creator=lambda: migrate._connection(path), poolclass=NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()


def test_an_upgrade_keeps_the_older_index_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "sluice.db"
    older(path, "0009")
    before = described(path)
    (tmp_path / "sluice.db.unfinished-copy").write_text("of a start that was killed")
    migrate.upgrade(path, tmp_path / "index.lock")
    kept = tmp_path / "sluice.db.of-0009"
    assert described(path) != before
    assert described(kept) == before
    assert kept.stat().st_mode & 0o777 == 0o600
    assert f"from revision 0009 to {REVISION}" in caplog.text
    assert str(kept) in caplog.text
    assert not (tmp_path / "sluice.db.unfinished-copy").exists()


def test_the_first_revision_is_refused_and_stays(tmp_path: Path) -> None:
    """Its index could be upgraded, but no object of it read."""
    path = tmp_path / "sluice.db"
    older(path, "0001")
    before = described(path)
    with pytest.raises(StoreUnavailable, match=r"revision 0001.*sluice pull"):
        migrate.upgrade(path, tmp_path / "index.lock")
    assert described(path) == before
    assert {one.name for one in tmp_path.iterdir()} == {"sluice.db", "index.lock"}


def test_no_room_for_the_copy_upgrades_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(apsw.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            if not options:
                self.execute("PRAGMA max_page_count = 2")

    path = tmp_path / "sluice.db"
    older(path, "0009")
    monkeypatch.setattr(migrate.apsw, "Connection", Small)
    with pytest.raises(StoreFull):
        migrate.upgrade(path, tmp_path / "index.lock")
    assert {one.name for one in tmp_path.iterdir()} == {"sluice.db", "index.lock"}
    monkeypatch.undo()
    connection = open_connection(path)
    assert migrate.revision(connection) == "0009"
    connection.close()


def test_an_upgrade_again_changes_nothing(directory: Path) -> None:
    path = directory / "sluice.db"
    before = path.read_bytes()
    migrate.upgrade(path, directory / "run" / "index.lock")
    assert path.read_bytes() == before


def test_an_index_of_a_newer_version_says_so_and_stays(directory: Path) -> None:
    path = directory / "sluice.db"
    connection = open_connection(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StoreUnavailable, match=r"newer version.*9999"):
        migrate.upgrade(path, directory / "run" / "index.lock")
    connection = open_connection(path)
    assert migrate.revision(connection) == "9999"
    connection.close()


def test_a_newer_index_in_postgres_says_so() -> None:
    async def look(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
        await connection.close()
        with pytest.raises(StoreUnavailable, match=r"newer version.*9999"):
            await run_on_postgres(lambda: asyncpg.connect(url))

    asyncio.run(look(postgres.server().fresh()))  # nobody else may get it after that


def test_an_upgrade_in_postgres_gives_way_to_the_gateways_that_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for no lock of theirs until one of both must end by a deadlock, but begins again."""
    monkeypatch.setattr(postgres_migrate, "LOCK_MS", 50)

    async def look(url: str) -> None:
        serving = await asyncpg.connect(url)
        await serving.execute("DROP TABLE audit_events; UPDATE alembic_version SET version_num = '0012'")
        async with serving.transaction():
            await serving.execute("LOCK TABLE alembic_version IN SHARE MODE")
            monkeypatch.setattr(postgres_migrate, "UPGRADE_SECONDS", 0.0)
            with pytest.raises(StoreUnavailable, match="locked"):
                await run_on_postgres(lambda: asyncpg.connect(url))
            monkeypatch.setattr(postgres_migrate, "UPGRADE_SECONDS", 60.0)
            upgrade = asyncio.create_task(run_on_postgres(lambda: asyncpg.connect(url)))
            await asyncio.sleep(0.3)
        await upgrade
        assert await serving.fetchval("SELECT version_num FROM alembic_version") == REVISION
        await serving.close()

    asyncio.run(look(postgres.server().fresh()))


def test_no_room_for_the_tables_is_a_full_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = sqlite3.connect

    def small(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = make(*arguments, **named)
        connection.execute("PRAGMA max_page_count = 8")
        return connection

    path = tmp_path / "sluice.db"
    open_connection(path, create=True).close()
    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(StoreFull):
        migrate._run_alembic(path)
    assert described(path) == set()


def test_no_room_for_a_new_index_is_a_full_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(path: Path, **options: Any) -> apsw.Connection:
        connection = open_connection(path, **options)
        connection.execute("PRAGMA max_page_count = 8")
        return connection

    path = tmp_path / "sluice.db"
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "open_connection", small)
        with pytest.raises(StoreFull):
            migrate.upgrade(path, tmp_path / "index.lock")
    assert described(path) == set()
    migrate.upgrade(path, tmp_path / "index.lock")
    assert described(path)


def test_an_index_of_this_revision_is_left_to_one_library(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection of this process may have it open, whose locks the other library's `close` would drop."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("opened by the standard library")

    monkeypatch.setattr(sqlite3, "connect", fail)
    migrate.upgrade(directory / "sluice.db", directory / "run" / "index.lock")


def test_an_upgrade_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sluice.db"
    open_connection(path, create=True).close()
    module = sys.modules.get("sluice_s3.migrations.versions.0001_first_tables")
    assert module is None  # Alembic loads revisions by path
    from alembic.operations import Operations

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(Operations, "execute", fail)
        with pytest.raises(RuntimeError):
            migrate._run_alembic(path)
    assert described(path) == set()
    migrate._run_alembic(path)
    assert described(path)


async def test_workers_do_not_migrate(tmp_path: Path) -> None:
    index = open_at(tmp_path)
    with pytest.raises(StoreUnavailable):
        await index.start()
    assert not (tmp_path / "sluice.db").exists()


async def test_another_revision_is_refused(directory: Path) -> None:
    connection = open_connection(directory / "sluice.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    index = open_at(directory)
    with pytest.raises(StoreUnavailable, match="9999"):
        await index.start()


async def test_start_can_make_everything_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    index = open_at(tmp_path / "not" / "there")
    await index.start(migrate=True)
    await index.set_identity("store", 1)
    files = [path for path in (tmp_path / "not").rglob("*") if path.is_file()]
    assert {"sluice.db", "sluice.db-wal", "sluice.db-shm", "generation"} <= {path.name for path in files}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    await index.close()
