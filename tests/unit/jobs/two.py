"""Two stores, fast and slow, with one index: what the tests of several stores work on."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sluice_s3.app.index import open_index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.jobs.journals.rebuild_source import Report
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import start_store
from sluice_s3.app.store import objects
from sluice_s3.app.store.offline import open_offline_stores
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_stores
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD
from tests.unit.jobs.packed import complete, put_part, start_upload
from tests.unit.store.site import put

LARGE = b"large " * THRESHOLD


def settings_of(path: Path) -> Settings:
    return make_settings(
        path,
        pack_threshold=THRESHOLD,
        stores={"fast": {"path": path / "fast"}, "slow": {"path": path / "slow"}},
        index=f"sqlite:///{path}/index/sluice.db",
    )


@asynccontextmanager
async def stores(settings: Settings) -> AsyncIterator[Store]:
    """All stores, with a writer of their own; the default one is given."""
    index = open_index(settings)
    await index.start()
    store = make_stores(index, settings)
    known = await index.identities()
    try:
        for one in store.all.values():
            await start_store(one, known)
            one.open_packs()
        yield store
    finally:
        for one in store.all.values():
            await one.close_packs()
        await store.ids.close()
        for one in store.all.values():
            await one.driver.close()
        await index.close()


def rebuilt(settings: Settings) -> tuple[Report, list[tuple[str, str, int, int, str]]]:
    """Rebuild as the command does."""
    shutil.rmtree(settings.index_path.parent)
    with Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None) as work:
        report = work.run()
        lost = list(work.find_lost())
        work.install(replace=False)
    (settings.run_dir / "writers").mkdir(parents=True, exist_ok=True)
    return report, lost


async def make(store: Store, name: str) -> Bucket:
    return await store.index.create_bucket(f"on-{name}", "owner", "us-east-1", 10, name)


async def fill(store: Store, bucket: Bucket) -> None:
    """Small and large objects, one deleted, one of parts."""
    own = store.of(bucket.store)
    for number in range(5):
        await put(own, bucket, f"k{number}", b"%d of " % number + bucket.name.encode())
    await put(own, bucket, "large", LARGE)
    await objects.delete(own, bucket.id, "k3", None, None, {})
    upload = await start_upload(own, bucket, "parts")
    for number in (1, 2):
        await put_part(own, upload, number, b"%d" % number * THRESHOLD * number)
    await complete(own, bucket, upload)
