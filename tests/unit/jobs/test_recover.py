"""An index that is older than its data is never served, and `recover` brings it up to date."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import IndexBehind, LeaseLost, StoreUnavailable
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.tools.copy import copy_file
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.position import compare
from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.jobs.journals.rebuild_source import Report
from sluice_s3.app.jobs.journals.recover import open_recovery
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart, IndexIsBehind, prepare
from sluice_s3.app.startup import open_store as beside_server
from sluice_s3.app.store import objects
from sluice_s3.app.store.offline import open_offline_stores
from sluice_s3.app.store.store import Store
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, Past, tables, writing
from tests.unit.jobs.packed import PACK, collect, compact, complete, put_part, start_upload
from tests.unit.jobs.test_rebuild import bodies
from tests.unit.store.site import opened, put

pytestmark = pytest.mark.slow

Lost = list[tuple[str, str, int, int, str]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=PACK, pack_threshold=THRESHOLD, durability="full")
    prepare(made)
    return made


async def prepared(settings: Settings) -> None:
    """Start as `sluice serve` does, up to where it starts its workers."""
    await asyncio.to_thread(prepare, settings)


def back_up(settings: Settings) -> Path:
    """Copy the index as `sqlite3 .backup` does, under a running server."""
    kept = settings.index_path.parent.parent / "backup.db"
    kept.unlink(missing_ok=True)
    copy_file(settings.index_path, kept)
    return kept


def restore(settings: Settings, kept: Path) -> None:
    """Put a backup in the place of the index, as a file of its own."""
    for suffix in ("-wal", "-shm"):
        settings.index_path.with_name(settings.index_path.name + suffix).unlink(missing_ok=True)
    os.replace(shutil.copy(kept, kept.with_suffix(".new")), settings.index_path)


def lose_log(settings: Settings, kept: Path) -> None:
    """Leave of the index what it held at the backup, in the file that it is in: as when its log is gone."""
    settings.index_path.write_bytes(kept.read_bytes())


def recovered(settings: Settings) -> tuple[Report, Lost]:
    """Recover as the command does."""
    with open_recovery(settings) as work:
        report = work.run()
        lost = list(work.find_lost())
        work.replace_base()
    return report, lost


async def nothing_more(store: Store, journal_writer: JournalWriter) -> None:
    """Only time goes by."""


async def renewed(store: Store, journal_writer: JournalWriter) -> None:
    """A snapshot takes the place of all journals."""
    journal_writer.request_snapshot()
    await journal_writer.run_once()
    while journal_writer._snapshot is not None:
        await journal_writer.run_once()


async def compacted(store: Store, journal_writer: JournalWriter) -> None:
    """Records move to other packs, and what is dead goes."""
    await store.close_packs()
    store.open_packs()
    await collect(store)
    await compact(store)
    await collect(store)


async def all_of_it(store: Store, journal_writer: JournalWriter) -> None:
    """One after the other."""
    await compacted(store, journal_writer)
    await renewed(store, journal_writer)


@pytest.mark.parametrize("upkeep", [nothing_more, renewed, compacted, all_of_it], ids=lambda one: one.__name__)
async def test_every_change_since_the_backup_is_there(
    settings: Settings, upkeep: Callable[[Store, JournalWriter], Awaitable[None]]
) -> None:
    async with writing(settings) as store:
        journal_writer = JournalWriter(store)
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound)
        past = Past(store, seed=5, keys=sized(80, 10_000))
        await past.begin()
        await past.run(sized(500, 50_000))
        await store.report_rejected_records()
        await journal_writer.run_once()
        await garbage.run_once()
        kept = back_up(settings)
        await past.run(sized(250, 20_000))
        await store.index.create_bucket("new", "owner", "us-east-1", 10)
        await store.report_rejected_records()
        await journal_writer.run_once()
        await upkeep(store, journal_writer)
        await past.run(sized(250, 20_000))
        await store.report_rejected_records()
        await journal_writer.run_once()
        await garbage.run_once()
        hashes = await bodies(store)
    before = tables(settings.index_path)
    restore(settings, kept)
    with pytest.raises(CannotStart, match=r"older than its data: .* `sluice recover`"):
        await prepared(settings)
    report, lost = recovered(settings)
    assert (lost, report.damage) == ([], [])
    after = tables(settings.index_path)
    for name, rows in before.items():
        assert after[name] == rows, name
    await prepared(settings)
    async with opened(settings) as store:
        assert await bodies(store) == hashes
        found = await fsck(store, repair=False)
        assert (found.missing, found.short, found.miscounted, found.overcounted) == ([], [], [], [])


async def test_writes_that_no_journal_tells_are_found_by_their_claims(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "before", b"1")
        await JournalWriter(store).run_once()
        kept = back_up(settings)
        await put(store, bucket, "told", b"22")
        await JournalWriter(store).run_once()
        await put(store, bucket, "small", b"333")
        await put(store, bucket, "large", bytes(THRESHOLD + 1))
        hashes = await bodies(store)
    restore(settings, kept)
    report, lost = recovered(settings)
    assert (lost, report.restored_claims) == ([], 2)
    await prepared(settings)
    async with opened(settings) as store:
        found = await bodies(store)
    assert {place: hash_ for place, (_, hash_) in found.items()} == {
        place: hash_ for place, (_, hash_) in hashes.items()
    }


async def in_the_log_alone(settings: Settings) -> dict[tuple[int, str], str]:
    """Writes that no journal tells, after which the index loses its log; the hashes of all objects."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "before", b"1")
        await put(store, bucket, "written over", b"1")
        await JournalWriter(store).run_once()
        kept = back_up(settings)
        await put(store, bucket, "small", b"333")
        await put(store, bucket, "large", bytes(THRESHOLD + 1))
        await put(store, bucket, "written over", b"22")
        hashes = await bodies(store)
    lose_log(settings, kept)
    return {place: hash_ for place, (_, hash_) in hashes.items()}


async def test_an_index_that_lost_its_log_is_refused(settings: Settings) -> None:
    """The journals beside the data are no newer than it is."""
    hashes = await in_the_log_alone(settings)
    for _ in range(2):
        with pytest.raises(
            IndexIsBehind, match=r"lacks acknowledged writes: it ends at commit \d+, .* `sluice recover`"
        ):
            await prepared(settings)
        with pytest.raises(IndexIsBehind, match="lacks acknowledged writes"):
            async with beside_server(settings):
                pass
    report, lost = recovered(settings)
    assert (lost, report.restored_claims) == ([], 3)
    await prepared(settings)
    async with opened(settings) as store:
        assert {place: hash_ for place, (_, hash_) in (await bodies(store)).items()} == hashes


async def test_a_relaxed_index_that_lost_its_log_is_brought_up_to_date(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_settings(tmp_path, pack_size=PACK, pack_threshold=THRESHOLD)
    await prepared(settings)
    hashes = await in_the_log_alone(settings)
    await prepared(settings)
    assert len([record for record in caplog.records if "brought up to date" in record.message]) == 1
    async with opened(settings) as store:
        assert {place: hash_ for place, (_, hash_) in (await bodies(store)).items()} == hashes


async def test_a_rebuild_is_not_taken_for_an_index_that_lost_its_log(settings: Settings) -> None:
    hashes = await in_the_log_alone(settings)
    with Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None) as work:
        work.run()
        work.install(replace=True)
    await prepared(settings)
    async with opened(settings) as store:
        assert {place: hash_ for place, (_, hash_) in (await bodies(store)).items()} == hashes


async def test_uploads_that_were_open_at_the_backup(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        uploads = {name: await start_upload(store, bucket, name) for name in ("open", "completed", "aborted")}
        for upload in uploads.values():
            await put_part(store, upload, 1, bytes(THRESHOLD + 7))
        await JournalWriter(store).run_once()
        kept = back_up(settings)
        await complete(store, bucket, uploads["completed"])
        await store.index.abort_upload(uploads["aborted"])
        await JournalWriter(store).run_once()
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0)
        await garbage.run_once()
        await garbage.run_once()
    restore(settings, kept)
    _, lost = recovered(settings)
    assert [row[1] for row in lost] == ["aborted"]
    await prepared(settings)
    async with writing(settings) as store:
        assert await store.index.upload(bucket.id, "aborted", uploads["aborted"].upload_id) is None
        await complete(store, bucket, uploads["open"])
        sizes = {key: version.size for (_, key), (version, _) in (await bodies(store)).items()}
        assert sizes == {"open": THRESHOLD + 7, "completed": THRESHOLD + 7}
        found = await fsck(store, repair=False)
        assert (found.missing, found.miscounted) == ([], [])


async def test_settings_alone_are_a_change(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        kept = back_up(settings)
        await store.index.configure_bucket(bucket.id, "tags", {"a": "b"})
        await journal_writer.run_once()
    restore(settings, kept)
    with pytest.raises(IndexIsBehind):
        await prepared(settings)
    recovered(settings)
    await prepared(settings)
    async with opened(settings) as store:
        found = await store.index.bucket("bucket")
        assert found is not None
        assert '"tags"' in found.settings


@pytest.mark.parametrize("point", ["announce", "_write", "advance_watermark"])
async def test_a_crash_while_a_journal_is_written_is_no_older_index(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """What was written and not noted is what the index has already, whatever it has by now."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        await put(store, bucket, "key", b"1")

        async def dies(*given: Any) -> Any:
            if point == "_write":
                await write(*given)
            raise RuntimeError("killed")

        write = journal_writer._write
        target: Any = journal_writer if point == "_write" else store.index
        with monkeypatch.context() as patch:
            patch.setattr(target, point, dies)
            with pytest.raises(RuntimeError, match="killed"):
                await journal_writer.run_once()
        await put(store, bucket, "key", b"2")
        assert (await compare(store)).relation == "current"
    await prepared(settings)
    async with opened(settings) as store:
        await JournalWriter(store).run_once()
        assert (await compare(store)).relation == "current"


async def test_journals_of_another_index_are_foreign(settings: Settings, tmp_path: Path) -> None:
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await JournalWriter(store).run_once()
        kept = back_up(settings)
        journals = settings.data / "journals"
        aside = shutil.copytree(journals, tmp_path / "journals")
        await put(store, bucket, "one", b"1")
        await JournalWriter(store).run_once()
    # the same backup is served beside other journals, and gets ahead
    mine = shutil.copytree(journals, tmp_path / "mine")
    newer = back_up(settings)
    shutil.rmtree(journals)
    shutil.copytree(aside, journals)
    restore(settings, kept)
    await prepared(settings)
    async with opened(settings) as store:
        for key in "abcdefgh":
            await put(store, bucket, key, b"1")
            await JournalWriter(store).run_once()
    for journal in mine.iterdir():
        shutil.copy(journal, journals / journal.name)
    with pytest.raises(CannotStart, match="not those of this index"):
        await prepared(settings)
    restore(settings, newer)
    with pytest.raises(CannotStart, match="older than its data"):
        await prepared(settings)


async def test_a_relaxed_index_after_a_power_cut_is_brought_up_to_date(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_settings(tmp_path, pack_threshold=THRESHOLD)
    await prepared(settings)
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await JournalWriter(store).run_once()
        kept = back_up(settings)
        await put(store, bucket, "key", b"1")
        await JournalWriter(store).run_once()
    restore(settings, kept)
    await prepared(settings)
    assert len([record for record in caplog.records if "brought up to date" in record.message]) == 1
    async with opened(settings) as store:
        assert [key for _, key in await bodies(store)] == ["key"]


async def test_a_relaxed_index_that_is_much_older_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings(tmp_path)
    await prepared(settings)
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        now = [1_700_000_000_000]
        journal_writer = JournalWriter(store, lambda: now[0])
        await journal_writer.run_once()
        kept = back_up(settings)
        for _ in range(2):
            now[0] += 121_000
            await put(store, bucket, "key", b"1")
            await journal_writer.run_once()
    restore(settings, kept)
    with pytest.raises(IndexIsBehind, match="2 records, 121 seconds"):
        await prepared(settings)


async def test_older_than_journals_of_a_version_that_put_them_among_the_blobs(settings: Settings) -> None:
    """As when a backup from before an upgrade is restored, and the new version starts for the first time."""
    now = [1_700_000_000_000]
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        decisions = JournalWriter(store, now=lambda: now[0])
        await decisions.run_once()
        kept = back_up(settings)
        decisions = JournalWriter(store, now=lambda: now[0])
        for _ in range(2):
            now[0] += 121_000
            await put(store, bucket, "key", b"1")
            await decisions.run_once()
    root = settings.named_stores["default"].path
    assert root is not None
    journals = list((root / "journals").glob("*.journal"))
    assert len(journals) == 2
    for journal in journals:
        journal.rename(root / "data" / journal.stem[-2:] / journal.name)
    await prepared(settings)
    restore(settings, kept)
    with pytest.raises(IndexIsBehind, match="2 records, 121 seconds"):
        await prepared(settings)
    report, lost = recovered(settings)
    assert (report.whole, lost) == (True, [])
    await prepared(settings)


async def test_an_index_that_falls_back_while_it_is_served(settings: Settings) -> None:
    """As by a failover to a replica that was behind: who writes the journals notices, and everybody refuses."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        watermark = await store.index.watermark()
        await put(store, bucket, "key", b"1")
        await journal_writer.run_once()
        later = await store.index.watermark()
        await store.index.set_note("decided", str(watermark))
        await store.index.set_note("announced", str(watermark))
        await put(store, bucket, "other", b"1")
        with pytest.raises(IndexBehind):
            await journal_writer.run_once()
        await JournalWriter(store).health.look()
        assert store.journal_failures["default"].reason == f"the watermark of store default is not {later} any more"
        for refused in (store.index.bucket("bucket"), store.index.set_note("a", "b"), store.index.check()):
            with pytest.raises(StoreUnavailable, match="watermark"):
                await refused


async def test_a_round_that_is_cancelled_leaves_no_commit_behind(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last round of a server that stops begins where the one that was cancelled ended."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        await put(store, bucket, "key", b"1")
        decided, began = store.index.advance_watermark, asyncio.Event()

        async def committed_later(*arguments: Any) -> None:
            async def commit() -> None:
                await asyncio.sleep(0.05)
                await decided(*arguments)

            began.set()
            await asyncio.shield(asyncio.create_task(commit()))

        monkeypatch.setattr(store.index, "advance_watermark", committed_later)
        task = asyncio.create_task(journal_writer.run_once())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await put(store, bucket, "other", b"1")
        assert await journal_writer.run_once() == 1, "the first change is in a journal already"
        await journal_writer.health.look()
        assert not store.journal_failures


async def test_a_watermark_that_went_on_is_no_fault_of_the_index(settings: Settings) -> None:
    """As when a commit whose outcome was unknown happened after all: the next round reads the watermark again."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        stale, other = JournalWriter(store), JournalWriter(store)
        await stale.run_once()
        await put(store, bucket, "key", b"1")
        await other.run_once()
        await put(store, bucket, "other", b"1")
        with pytest.raises(LeaseLost):
            await stale.run_once()
        assert await stale.run_once() == 1
        await stale.health.look()
        assert not store.journal_failures


async def test_a_start_with_the_right_index_forgets_that_it_was_wrong(settings: Settings) -> None:
    async with opened(settings) as store:
        await JournalWriter(store).run_once()
        await store.index.set_note("journal-failure", '["it was older", false, true]')
    await prepared(settings)
    async with opened(settings) as store:
        await JournalWriter(store).health.look()
        assert not store.journal_failures
        await store.index.create_bucket("bucket", "owner", "us-east-1", 10)


async def test_fsck_keeps_what_a_journal_names(settings: Settings) -> None:
    """A row that was lost leaves a blob that nobody holds, but the journals know whose it is."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "kept", bytes(THRESHOLD + 1))
        await put(store, bucket, "replaced", bytes(THRESHOLD + 2))
        upload = await start_upload(store, bucket, "parts")
        await put_part(store, upload, 1, bytes(THRESHOLD + 3))
        await complete(store, bucket, upload)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        replaced = await objects.find(store, bucket.id, "replaced")
        await put(store, bucket, "replaced", b"")
        await journal_writer.run_once()
    connection = open_connection(settings.index_path)
    connection.execute("DELETE FROM versions WHERE key != 'replaced'")
    connection.execute("DELETE FROM pieces")
    connection.execute("DELETE FROM discards")
    connection.close()
    async with opened(settings) as store:
        for _ in range(2):
            found = await fsck(store, repair=True)
            assert (len(found.unaccounted), found.clean) == (2, False)
        assert (found.orphans, found.repaired) == ([], 0), "it is in quarantine"
        assert len([path for path in (settings.data / "data").glob("*/*") if not path.suffix]) == 3
        assert [entry.body for entry in await store.index.discards(0, 10)] == [replaced.body]
