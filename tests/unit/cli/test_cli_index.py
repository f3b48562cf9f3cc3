"""`sluice migrate`, and an index copied from one engine to the other and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sluice_s3.app.cli.main import cli
from sluice_s3.app.index import open_index
from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.settings import Settings
from tests.support import postgres
from tests.unit.index.tools import OWNER, new, part

pytestmark = pytest.mark.slow

KEYS = ["a", "b\0c", "\1", "ü", '["\\u0001"]', "z" * 1024]


def sluice(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.server().lent() as lent:
        yield lent


async def fill(settings: Settings) -> None:
    """Something in most tables."""
    index = open_index(settings)
    await index.start(migrate=True)
    await index.add_account(Account(OWNER, "name", "mail", False, 0), "KEY", "secret")
    bucket = await index.create_bucket("bucket", OWNER, "us-east-1", 10)
    for key in KEYS:
        await index.put_version(bucket.id, key, new(f"blob of {KEYS.index(key)}"))
    found = await index.version(bucket.id, "a")
    assert found is not None
    await index.copy_version(found.seq, bucket.id, "copy", new())
    await index.delete_version(bucket.id, "ü")
    upload = await index.create_upload(bucket.id, "multipart", "{}", "STANDARD", "", "", OWNER)
    await index.put_part(upload, part(1, "part1"))
    await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=5, parts=1))
    await index.open_pack()
    await index.reserve_ids(10)
    await index.add_quarantine("bad", "it is")
    await index.close()


async def seen(settings: Settings) -> tuple[list[Version | None], int]:
    """What is in an index, and that it goes on."""
    index = open_index(settings)
    await index.start()
    bucket = await index.bucket("bucket")
    assert bucket is not None
    found = [await index.version(bucket.id, key) for key in [*KEYS, "copy", "multipart"]]
    assert await index.miscounted() == []
    made = await index.put_version(bucket.id, "after", new("after"))
    await index.close()
    return found, made.seq


def settings_of(url: str, path: Path) -> Settings:
    path.mkdir(exist_ok=True)
    return Settings(index=url, runtime_dir=path, durability="relaxed", data=path)  # type: ignore[arg-type, call-arg]


def test_there_and_back(tmp_path: Path, url: str) -> None:
    first, last = f"sqlite:///{tmp_path}/first/i.db", f"sqlite:///{tmp_path}/last/i.db"
    asyncio.run(fill(settings_of(first, tmp_path / "run1")))
    for source, target in ((first, url), (url, last)):
        copied = sluice("index", "copy", source, target)
        assert copied.exit_code == 0, copied.output
        assert "DIFFERS" not in copied.output
    compared = sluice("index", "compare", first, last)
    assert compared.exit_code == 0, compared.output
    before, seq = asyncio.run(seen(settings_of(first, tmp_path / "run2")))
    for number, other in enumerate((url, last)):
        found, later = asyncio.run(seen(settings_of(other, tmp_path / f"run-{number}")))
        assert found == before
        assert later > max(version.seq for version in found if version is not None)
    differs = sluice("index", "compare", first, url)
    assert differs.exit_code == 8
    assert "versions" in differs.output
    assert seq


def test_an_index_in_use_is_not_copied_over(tmp_path: Path, url: str) -> None:
    first = f"sqlite:///{tmp_path}/first/i.db"
    asyncio.run(fill(settings_of(first, tmp_path / "run1")))
    asyncio.run(fill(settings_of(url, tmp_path / "run2")))
    refused = sluice("index", "copy", first, url)
    assert refused.exit_code == 1
    assert "not empty" in refused.output


def test_migrate_makes_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = postgres.server().empty()
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("SLUICE_INDEX_URL", empty)
    for _ in range(2):
        assert sluice("migrate").exit_code == 0
    assert postgres.server().sql("SELECT version_num FROM alembic_version", empty.split("/")[3].split("?")[0]) != ""


def test_a_password_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path))
    nobody = "postgresql://user:hush-hush@127.0.0.1:1/index"
    settings = Settings(index=nobody)  # type: ignore[arg-type, call-arg]
    assert "hush" not in repr(settings) + str(settings.model_dump()) + repr(open_index(settings))
    for command in (
        ("migrate", "--index", nobody),
        ("user", "list", "--index", nobody),
        ("index", "copy", nobody, nobody),
        ("migrate", "--index", "postgresq://user:hush-hush@host/index"),
    ):
        answer = sluice(*command)
        assert answer.exit_code != 0
        assert "hush" not in answer.output
        assert answer.exception is None or "hush" not in repr(answer.exception)
