"""An index that is lost is made anew from the data: exactly what was decided, and nothing that was not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.jobs.journals.rebuild_source import Report
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart
from sluice_s3.app.store import objects, recovery_headers
from sluice_s3.app.store.offline import open_offline_stores
from sluice_s3.storage_drivers.errors import StoreFailed
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, Past, tables, writing
from tests.unit.jobs.packed import (
    PACK,
    Counts,
    collect,
    compact,
    complete,
    content,
    copy,
    delete,
    fill,
    packed,
    put_part,
    start_upload,
)
from tests.unit.store.site import Bytes, opened, prepare, put

pytestmark = pytest.mark.slow

Lost = list[tuple[str, str, int, int, str]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


def lose_index(settings: Settings) -> None:
    shutil.rmtree(settings.index_path.parent)


def rebuilt(settings: Settings, **options: Any) -> tuple[Report, Lost]:
    """Rebuild as the command does."""
    with Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None) as work:
        report = work.run()
        lost = list(work.find_lost())
        work.install(**{"replace": False, **options})
    (settings.run_dir / "writers").mkdir(parents=True, exist_ok=True)
    return report, lost


@pytest.mark.timeout(3600)
async def test_a_store_with_a_past_comes_back_exactly(settings: Settings) -> None:
    async with writing(settings) as store:
        journal_writer = JournalWriter(store)
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound)
        past = Past(store, seed=7, keys=sized(150, 100_000), at_once=sized(8, 64))
        await past.begin()
        for turn in range(20):
            await past.run(sized(100, 12_000))
            if turn == 12:
                journal_writer.request_snapshot()
            await store.report_rejected_records()
            await journal_writer.run_once()
            await garbage.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        assert any(journal.snapshot == 2 for journal in await store.index.journals())
        assert (
            min(past.done.get(name, 0) for name in ("_create refused", "_broken refused", "_copy", "_upload", "_tag"))
            > 3
        )
    async with writing(settings) as store:
        await store.index.create_bucket("last", "owner", "us-east-1", 10)
        await JournalWriter(store).run_once()
        hashes = await bodies(store)
    before = tables(settings.index_path)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage, report.restored_claims) == ([], [], 0)
    after = tables(settings.index_path)
    for name, rows in before.items():
        assert after[name] == rows, name
    async with opened(settings) as store:
        assert await bodies(store) == hashes
        found = await fsck(store, repair=False)
        assert (found.missing, found.short, found.miscounted) == ([], [], [])
        assert (found.uncounted, found.overcounted) == (0, [])
        assert sum(pack.dead for pack in await store.index.packs_of(0)) >= found.dead_bytes > 0


async def bodies(store: Any) -> dict[tuple[int, str], tuple[Any, int]]:
    """Every object's row as readers see it, and a hash of its bytes."""
    from sluice_s3.app.store import reading

    found = {}
    for bucket in await store.index.buckets("owner", "", "", 100):
        after = ""
        while page := (await store.index.list_current(bucket.id, "", "", after, 1000)).entries:
            after = page[-1].key
            for entry in page:
                version = await objects.find(store, bucket.id, entry.key)
                taken = bytearray()
                await reading.feed_bytes(store, version, 0, version.size, taken.extend)
                found[bucket.id, entry.key] = version._replace(body=""), hash(bytes(taken))
    return found


@pytest.mark.parametrize("again", [False, True], ids=["one", "another"])
async def test_parts_of_what_was_copied_away_between_two_batches(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """The Complete is in the first batch, all that holds its parts in the second, which another process may write."""
    monkeypatch.setattr("sluice_s3.app.index.journals.queries.ROWS_PER_BATCH", 4)
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("parts", "owner", "us-east-1", 10)
        upload = await start_upload(store, bucket, "from")
        await put_part(store, upload, 1, bytes(70_000))
        await complete(store, bucket, upload)
        for number in range(6):
            await put(store, bucket, f"filler {number}", b"x")
        await copy(store, bucket, "from", "to")
        await delete(store, bucket, "from")
        journal_writer = JournalWriter(store)
        if again:
            append = journal_writer._append

            async def dies(*given: Any) -> None:
                await append(*given)
                raise RuntimeError("between two batches")

            monkeypatch.setattr(journal_writer, "_append", dies)
            with pytest.raises(RuntimeError, match="between"):
                await journal_writer.run_once()
            journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        await put(store, bucket, "later", b"x")
        await journal_writer.run_once()
        expected = await bodies(store)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage, report.restored_claims) == ([], [], 0)
    async with writing(settings) as store:
        assert await bodies(store) == expected


async def test_what_is_missing_is_listed(settings: Settings) -> None:
    async with writing(settings) as store:
        past = Past(store, seed=3, keys=40)
        await past.begin()
        await past.run(400)
        await store.report_rejected_records()
        await JournalWriter(store).run_once()
        total = len(await bodies(store))
    files = [path for path in (settings.data / "data").glob("*/*") if path.suffix == ""]
    for path in files:
        path.unlink()
    for path in (settings.data / "data").glob("*/*.pack"):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.counts["versions"] + len(lost) == total
    assert {row[4] for row in lost} == {"its blob is missing", "a blob of it is missing"}
    async with opened(settings) as store:
        assert len(await bodies(store)) == report.counts["versions"] > 0
        assert (await fsck(store, repair=False)).missing == []


async def test_a_lost_or_damaged_journal_is_reported(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        for number in range(3):
            await put(store, bucket, f"k{number}", b"x")
            await JournalWriter(store).run_once()  # each begins a journal of its own
    lose_index(settings)
    first, second, third = sorted((settings.data / "journals").glob("*.journal"), key=lambda path: path.stem)
    kept = second.read_bytes()
    second.unlink()
    assert any("are missing" in text for text in rebuilt(settings)[0].damage)
    second.write_bytes(kept[:-3] + bytes([kept[-3] ^ 1]) + kept[-2:])
    report, _ = rebuilt(settings, replace=True)
    assert any("damaged" in text for text in report.damage)
    assert not report.whole
    for path in (first, second, third):
        path.unlink()
    report, lost = rebuilt(settings, replace=True)
    assert (report.whole, report.counts["versions"]) == (False, 0)
    assert {row[4] for row in lost} == {"its bucket is not known"}
    assert len(lost) == 3


async def test_a_torn_end_of_a_journal_is_no_damage(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await put(store, bucket, "k1", b"x")
        await journal_writer.run_once()
        await put(store, bucket, "k2", b"x")
        await journal_writer.run_once()
    lose_index(settings)
    (journal,) = (settings.data / "journals").glob("*.journal")
    with journal.open("r+b") as file:
        file.truncate(journal.stat().st_size - 5)
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    assert (report.counts["versions"], report.restored_claims) == (2, 1), "the second by its claim"


async def test_an_older_index_and_a_missing_one_are_refused(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        await put(store, bucket, "k", b"x")
        await JournalWriter(store).run_once()
    kept = settings.index_path.with_name("kept")
    shutil.copy(settings.index_path, kept)
    settings.index_path.unlink()
    with pytest.raises(CannotStart, match="rebuild"):
        await asyncio.to_thread(prepare, settings)
    settings.index_path.unlink()
    rebuilt(settings)
    await asyncio.to_thread(prepare, settings)
    kept.rename(settings.index_path)
    for suffix in ("-wal", "-shm"):
        settings.index_path.with_name(settings.index_path.name + suffix).unlink(missing_ok=True)
    with pytest.raises(CannotStart, match="generation 2"):
        await asyncio.to_thread(prepare, settings)


async def test_a_store_in_use_is_not_rebuilt(settings: Settings) -> None:
    async with opened(settings):
        with pytest.raises(StoreFailed, match="in use"):
            Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None)


async def test_a_log_that_was_left_behind_is_moved_too(settings: Settings) -> None:
    left = settings.index_path.with_name(settings.index_path.name + "-wal")
    settings.index_path.unlink()
    left.write_bytes(b"not of the new index")
    rebuilt(settings)
    assert not left.exists() or left.read_bytes() != b"not of the new index"
    await asyncio.to_thread(prepare, settings)


def test_claims_have_the_fields_that_rebuild_reads() -> None:
    new = Bytes(b"x").describe("")
    index = SimpleNamespace(drawn=77, incarnation=66)
    header = orjson.loads(recovery_headers.object_header(index, 5, "k", new, False))  # type: ignore[arg-type]
    found = recovery_headers.parse_object(header)
    assert found is not None
    assert found[0][1:] == (5, "k", False, 77, 66)
    assert found[1] == list(new)
    assert recovery_headers.parse_object(header[:5] + header[7:]) is None, "an older version's"


@pytest.mark.parametrize("torn", [False, True])
async def test_what_compaction_moved_is_found_where_it_is(tmp_path: Path, torn: bool) -> None:
    """Journals name the place a blob had; with `torn` compaction died before it gave the old places up."""
    settings = make_settings(tmp_path, pack_size=PACK)
    await asyncio.to_thread(prepare, settings)
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("packed", "owner", "us-east-1", 10)
        there = await fill(store, bucket, range(60))
        dead = [f"k{number:04}" for number in range(60) if number % 3]
        await delete(store, bucket, *dead)
        for key in dead:
            del there[key]
        await copy(store, bucket, "k0000", "copy")
        there["copy"] = there["k0000"]
        await JournalWriter(store).run_once()
        places = {key: (await objects.find(store, bucket.id, key)).body for key in there}
        if torn:
            new = await store.driver.move(list(set(places.values())))
            assert set(new) == set(places.values())
        else:
            await collect(store)
            await compact(store, Counts())
            moved = {key: (await objects.find(store, bucket.id, key)).body for key in there}
            assert moved != places
        await store.close_packs()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage) == ([], [])
    async with packed(settings) as store:
        for key, value in there.items():
            assert await content(store, bucket, key) == value
        found = await fsck(store, repair=False)
        assert found.clean, found
        await compact(store, Counts())
        assert (await fsck(store, repair=False)).clean


@pytest.mark.parametrize("decided", [True, False])
async def test_the_work_grows_with_the_store_and_no_faster(tmp_path: Path, decided: bool) -> None:
    """Counted in steps of SQLite's machine, which do not depend on what else runs."""
    steps = []
    for number in (100, 800):
        settings = make_settings(tmp_path / str(number))
        await asyncio.to_thread(prepare, settings)
        async with writing(settings) as store:
            bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
            journal_writer = JournalWriter(store)
            await journal_writer.run_once()
            for first in range(0, number, 100):
                await asyncio.gather(*(put(store, bucket, f"k{first + more}", b"x") for more in range(100)))
            if decided:
                await journal_writer.run_once()
        count = 0

        def step() -> bool:
            nonlocal count
            count += 1
            return False

        with Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None) as work:
            work._index._connection.set_progress_handler(step, 100)
            report = work.run()
            assert report.counts["versions"] == number
        steps.append(count)
    assert steps[1] < 12 * steps[0], steps
