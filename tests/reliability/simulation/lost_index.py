"""The loss of an index whose journals have caught up, and its rebuild, out of simulated time."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.settings import StoreSettings
from sluice_s3.app.store.offline import open_offline

COMPARED = "bucket_id, key, version_id, state, modified, size, etag"


def rows(place: Path) -> set[tuple[object, ...]]:
    """Return what the index says of each version."""
    connection = apsw.Connection(str(place / "index/sluice.db"))
    try:
        return set(connection.execute(f"SELECT {COMPARED} FROM versions"))
    finally:
        connection.close()


def rebuild(place: Path) -> None:
    """Lose the index and make another one, as `sluice rebuild` does."""
    shutil.rmtree(place / "index")
    store = open_offline("default", StoreSettings(path=place / "data"))
    with Rebuild([store], place / "index/sluice.db", progress=lambda *_: None) as work:
        work.run()
        work.install(replace=False)
    shutil.rmtree(place / "run")
    (place / "run").mkdir(mode=0o700)
