"""An index whose stores are over fsspec: damage is found, and it is made anew, by the same code as on a mount."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD
from tests.unit.jobs.packed import content
from tests.unit.jobs.test_rebuild_stores import LARGE, fill, make, rebuilt, stores
from tests.unit.store.site import prepare, put


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    far = {"driver": "fsspec", "url": f"file://{tmp_path}/far", "durability": "relaxed", "io_threads": 4}
    settings = make_settings(
        tmp_path,
        pack_threshold=THRESHOLD,
        stores={"near": {"path": tmp_path / "near"}, "far": far},
        index=f"sqlite:///{tmp_path}/index/sluice.db",
    )
    prepare(settings)
    return settings


async def test_an_index_of_a_remote_store(settings: Settings, tmp_path: Path) -> None:
    async with stores(settings) as store:
        far = store.of("far")
        bucket = await make(store, "far")
        await fill(far, bucket)
        for one in store.all.values():
            await JournalWriter(one).run_once()
        await put(far, bucket, "last", b"not decided yet")
        assert (await fsck(far, repair=False)).clean
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    assert report.restored_claims == 1
    async with stores(settings) as store:
        far = store.of("far")
        for key, body in (("last", b"not decided yet"), ("large", LARGE), ("k1", b"1 of on-far")):
            assert await content(far, bucket, key) == body
        assert (await Scrubber(far, 0).run_once()).clean
        version = await objects.find(far, bucket.id, "k1")
        assert version.body.startswith("far/f:")
        path = tmp_path / f"far/data/{version.body[-2:]}/{version.body[-16:]}"
        path.write_bytes(b"x" + path.read_bytes()[1:])
        found = await Scrubber(far, 0).run_once()
        assert [fact["locator"] for fact in found.damaged] == [version.body]
        path.unlink()
        checked = await fsck(far, repair=False)
        assert [fact["locator"] for fact in checked.missing] == [version.body]
        left = tmp_path / "far/data/aa/00000000000fffaa"
        left.write_bytes(b"left by a crash")
        assert "far/f:00000000000fffaa" in (await fsck(far, repair=True)).orphans
        assert left.exists(), "it is in quarantine"
        assert (await fsck(far, repair=False)).orphans == []
