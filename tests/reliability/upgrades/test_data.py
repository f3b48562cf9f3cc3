"""A directory that an earlier version left is opened, upgraded with a copy kept, read, rebuilt, and put back.

`written_by_0011.tar.xz` is one, as a kill left it; `older.py` wrote it. With SLUICE_TEST_OLDER, checkouts write others.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from sluice_s3.app.index.schema.tables import REVISION
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.connection import open_connection
from tests.reliability.upgrades.contents import check
from tests.reliability.upgrades.older import CHECKOUTS, older, refusal_of, revision_of, write_archive
from tests.support import postgres
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.skipif(postgres.CHOSEN == "postgres", reason="about files of SQLite")
ARCHIVE, ARCHIVED = Path(__file__).with_name("written_by_0011.tar.xz"), "0011"


def revision(path: Path) -> str | None:
    connection = open_connection(path)
    try:
        return migrate.revision(connection)
    finally:
        connection.close()


def unpacked(archive: Path, directory: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(directory)
    return directory / "data"


def upgrade_and_rebuild(data: Path, before: str) -> Path:
    """Start this version on it twice, the second time with an index made of the data; return the copy that was kept."""
    index = data / "index" / "sluice.db"
    assert revision(index) == before
    with Gateway(data) as gateway:
        check(client(gateway.endpoint), before)
    assert revision(index) == REVISION
    kept = index.with_name(f"sluice.db.of-{before}")
    if before != REVISION:
        assert revision(kept) == before
        assert f"from revision {before} to {REVISION}" in data.with_name("data.log").read_text()
    assert gateway.run("fsck", check=False).returncode == 0
    assert gateway.run("rebuild", "--replace", check=False).returncode == 0
    with gateway:
        check(client(gateway.endpoint), before, rebuilt=True)
    return kept


def test_a_directory_of_an_earlier_version_is_upgraded_read_and_rebuilt(tmp_path: Path) -> None:
    upgrade_and_rebuild(unpacked(ARCHIVE, tmp_path), ARCHIVED)


@pytest.mark.parametrize("checkout", CHECKOUTS, ids=lambda path: path.name)
def test_each_earlier_version_is_upgraded_and_takes_its_copy_back(checkout: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    write_archive(checkout, archive)
    before = revision_of(checkout)
    data = unpacked(archive, tmp_path)
    kept = upgrade_and_rebuild(data, before)
    gateway = older(checkout, tmp_path / "packages", data)
    if before != REVISION:
        with pytest.raises(RuntimeError):  # it says why in its log
            gateway.start()
        assert revision(kept.with_name("sluice.db")) == REVISION
        assert refusal_of(checkout) in "".join(data.with_name("data.log").read_text().splitlines()[-2:])
        shutil.rmtree(data)
        data = unpacked(archive, tmp_path)
        assert Gateway(data).run("migrate").returncode == 0  # nothing is written after it
        index = data / "index" / "sluice.db"
        for name in ("sluice.db-wal", "sluice.db-shm"):
            index.with_name(name).unlink(missing_ok=True)
        index.with_name(f"sluice.db.of-{before}").replace(index)
    with gateway:
        # a gateway of the same revision takes what is there
        check(client(gateway.endpoint), before, rebuilt=before == REVISION)
