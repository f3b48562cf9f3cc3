"""What was claimed and never decided comes back only where nothing says otherwise; what was deleted never does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.objects import renames
from sluice_s3.app.index.objects import transactions as objects_transactions
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import Rename
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.versioning import transactions as versions
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.packs.writer import PackWriter
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, writing
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.store.site import Bytes, opened, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


async def undecided_store(settings: Settings) -> None:
    """Changes that no journal has, behind some that one has."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("undecided", "owner", "us-east-1", 10)
        await put(store, bucket, "overwritten", b"old")
        await put(store, bucket, "deleted", b"deleted")
        await put(store, bucket, "deleted before", b"deleted before")
        await objects.delete(store, bucket.id, "deleted before", None, None, {})
        await JournalWriter(store).run_once()
        await put(store, bucket, "new", b"new")
        await put(store, bucket, "twice", b"one")
        await put(store, bucket, "twice", b"two")
        await put(store, bucket, "large", bytes(300_000))
        await put(store, bucket, "overwritten", b"newer")
        source = Bytes(b"conditional")
        await objects.put(store, bucket.id, "condition", source, source.describe, Conditions(if_none_match=True), {})


async def test_a_claim_without_a_decision_is_restored_only_if_nothing_speaks_against_it(settings: Settings) -> None:
    await undecided_store(settings)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.restored_claims == 4
    assert report.counts["superseded"] == 1, "that which was deleted before"
    assert {(key, reason) for _, key, _, _, reason in lost} == {
        ("condition", "it carried a condition, and what was decided is not known"),
        ("twice", "a newer PUT of its key is restored"),
    }
    async with writing(settings) as store:
        bucket = await store.index.bucket("undecided")
        assert bucket is not None
        page = await store.index.list_current(bucket.id, "", "", "", 100)
        sizes = {entry.key: entry.size for entry in page.entries}
        assert sizes == {"deleted": 7, "large": 300_000, "new": 3, "overwritten": 5, "twice": 3}
        assert (await fsck(store, repair=False)).miscounted == []
        await put(store, bucket, "goes on", b"1")
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.restored_claims == 0
    assert report.counts["versions"] == 6


@pytest.mark.parametrize("versioned", [False, True])
async def test_what_was_deleted_by_a_gateway_whose_clock_is_behind_stays_deleted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, versioned: bool
) -> None:
    """Blobs stay for a while, and their claims must not be newer than what was decided of them."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("undecided", "owner", "us-east-1", 10)
        if versioned:
            await store.index.set_versioning(bucket.id, ENABLED)
        for key in ("deleted", "renamed"):
            await put(store, bucket, key, b"1")
        version = await objects.find(store, bucket.id, "deleted")
        behind = version.modified - 2000
        for module in (objects_transactions, versions, renames):
            monkeypatch.setattr(module, "now_ms", lambda: behind)
        asked = version.version_id if versioned else None
        await objects.delete(store, bucket.id, "deleted", asked, None, {})
        if not versioned:
            await store.index.rename_object(bucket.id, Rename("renamed", "there"))
            await objects.delete(store, bucket.id, "there", None, None, {})
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.restored_claims == 0
    assert lost == []


async def test_what_was_deleted_stays_deleted_when_the_index_is_lost_twice(settings: Settings) -> None:
    """The claims are there still, and a snapshot came in the place of the journals that told of the removals."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("twice", "owner", "us-east-1", 10)
        for key in ("kept", "deleted", "large"):
            await put(store, bucket, key, b"1" * (THRESHOLD + 1 if key == "large" else 1))
        for key in ("deleted", "large"):
            await objects.delete(store, bucket.id, key, None, None, {})
        await JournalWriter(store).run_once()
    for _ in range(3):
        lose_index(settings)
        report, lost = rebuilt(settings)
        assert (report.restored_claims, report.counts["versions"], lost) == (0, 1, [])
        async with writing(settings) as store:
            journal_writer = JournalWriter(store)
            for _ in range(5):
                journal_writer.request_snapshot()
                await journal_writer.run_once()


async def test_what_was_deleted_stays_deleted_when_a_clock_was_ahead_for_a_while(settings: Settings) -> None:
    """Found by the lab: its tombstone was gone as too old, and its claim was new again when the clock was right."""
    shift = 0
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("undecided", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store, lambda: time.time_ns() // 1_000_000 + shift)
        await put(store, bucket, "deleted", b"deleted")
        await objects.delete(store, bucket.id, "deleted", None, None, {})
        await journal_writer.run_once()
        for shift in (600_000, 600_000, 0):  # noqa: B007 - read by the writer
            await put(store, bucket, "other", b"other")
            await journal_writer.run_once()
        journal_writer.request_snapshot()  # which tells of what the index still has
        await journal_writer.run_once()
        await journal_writer.run_once()
    lose_index(settings)
    report, _ = rebuilt(settings)
    assert report.restored_claims == 0
    assert report.counts["versions"] == 1


async def test_what_was_written_again_by_a_gateway_whose_clock_is_behind_stays_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the lab: a body that was deleted has the greater time."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("behind", "owner", "us-east-1", 10)
        for key in ("small", "large"):
            await put(store, bucket, key, bytes(1 if key == "small" else THRESHOLD + 1))
            behind = (await objects.find(store, bucket.id, key)).modified - 800_000
            await objects.delete(store, bucket.id, key, None, None, {})
            with monkeypatch.context() as patch:
                patch.setattr(objects_transactions, "now_ms", lambda behind=behind: behind)
                await put(store, bucket, key, b"newer")
            assert (await objects.find(store, bucket.id, key)).modified == behind
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, _ = rebuilt(settings)
    assert (report.restored_claims, report.counts["versions"]) == (0, 2)
    async with opened(settings) as store:
        assert {(await objects.find(store, bucket.id, key)).size for key in ("small", "large")} == {5}


async def test_a_clock_that_was_ahead_hides_no_later_write(settings: Settings) -> None:
    shift = 600_000
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("ahead", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store, lambda: time.time_ns() // 1_000_000 + shift)
        await put(store, bucket, "a", b"a")
        await journal_writer.run_once()
        await put(store, bucket, "not journaled", b"b")
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (report.restored_claims, report.counts["versions"], lost) == (1, 2, [])


async def test_a_second_rebuild_restores_nothing_that_the_first_did_not(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the lab: clients saw in between that it is not there."""
    await undecided_store(settings)
    lose_index(settings)
    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.app.jobs.journals.rebuild.Rebuild._restore_blobs", lambda *_: None)
        assert rebuilt(settings)[0].counts["versions"] == 2
    async with writing(settings) as store:
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (report.restored_claims, report.counts["versions"], lost) == (0, 2, [])


@pytest.mark.parametrize("size", [1, THRESHOLD + 1], ids=["record", "file"])
async def test_a_write_that_failed_on_a_mount_that_serves_again_is_not_restored(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Found by the lab: its bytes reached the disk, and clients saw since that it is not there."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("failed", "owner", "us-east-1", 10)
        await put(store, bucket, "kept", b"kept")
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise StoreFailed("the mount fails")

            async def put_and_fail(*given: Any, put: Any = store.driver.put) -> None:
                await put(*given)
                fail()

            async def fail_discard(_: int) -> None:
                fail()

            patch.setattr(PackWriter, "_look_again", fail)
            patch.setattr(store.driver, "put", put_and_fail)
            patch.setattr(store.driver, "discard_id", fail_discard)
            with pytest.raises(StoreUnavailable):
                await put(store, bucket, "failed", bytes(size))
        await store.report_rejected_records()
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.files + report.records == 2, "it is there"
    assert (report.restored_claims, report.counts["versions"], lost) == (0, 1, [])


async def test_what_a_writer_that_ended_never_committed_is_not_restored(settings: Settings) -> None:
    """Found by the lab: a worker was killed between record and commit, and clients saw since that it is not there."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("ended", "owner", "us-east-1", 10)
        await put(store, bucket, "kept", b"kept")
        await JournalWriter(store).run_once()
        await put(store, bucket, "never committed", b"record")
    connection = open_connection(settings.index_path)
    connection.execute("DELETE FROM versions WHERE key = 'never committed'")
    connection.close()
    async with writing(settings) as store:
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (report.restored_claims, report.counts["versions"], lost) == (0, 1, [])


async def test_a_refused_claim_never_comes_back(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("undecided", "owner", "us-east-1", 10)
        await JournalWriter(store).run_once()
        source = Bytes(b"refused")
        # a commit that was given up looks like this: its record is there, unconditional, and it is noted as void
        await put(store, bucket, "refused", b"refused")
        version = await objects.find(store, bucket.id, "refused")
        packed = store.driver.packed(version.body)
        assert packed is not None
        await store.index.refuse_blobs([(version.body, *packed)])
        assert source.size == version.size
    connection = open_connection(settings.index_path)
    connection.execute("DELETE FROM versions")
    connection.close()
    async with writing(settings) as store:
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.counts["versions"] == 0
    assert lost == []
    assert report.counts["superseded"] == 0


async def test_a_damaged_claim_is_not_restored(settings: Settings) -> None:
    await undecided_store(settings)
    lose_index(settings)
    for path in (settings.data / "data").glob("*/*.pack"):
        content = bytearray(path.read_bytes())
        at = content.rindex(b"newer")
        content[at] ^= 1
        path.write_bytes(content)
    _, lost = rebuilt(settings)
    assert ("overwritten", "it is damaged, and what was decided is not known") in {(row[1], row[4]) for row in lost}


async def test_what_was_being_written_at_the_end_is_no_damage(settings: Settings) -> None:
    await undecided_store(settings)
    lose_index(settings)
    for name, left in (("ff/00000000000fffff", b"half a body"), ("fe/00000000000ffffe.pack", b"SLUICE")):
        (settings.data / "data" / name).write_bytes(left)
    report, _ = rebuilt(settings)
    assert (report.damage, report.unreadable_files) == ([], 1)
    (settings.data / "data/fe/00000000000ffffe.pack").write_bytes(bytes(5000))
    report, _ = rebuilt(settings, replace=True)
    assert len(report.damage) == 1
    async with opened(settings) as store:
        assert 0xFFFFE not in {pack.id for pack in await store.index.packs()}
