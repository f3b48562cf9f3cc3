"""Journals that are damaged or end too soon cost what they told, and no more; so does a rebuild that dies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.jobs.journals import rebuild as module
from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart
from sluice_s3.app.store import objects, recovery_headers
from sluice_s3.app.store.journals.encoding import parse_header
from sluice_s3.app.store.offline import open_offline_stores
from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.packs import format
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, writing
from tests.unit.jobs.packed import Counts, collect, compact, packed
from tests.unit.jobs.test_rebuild import bodies, lose_index, rebuilt
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


async def test_a_batch_of_many_does_not_tell_of_what_comes_behind_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journals could not be written for a minute; the index is lost when the first batch since then is there."""
    monkeypatch.setattr("sluice_s3.app.index.journals.queries.ROWS_PER_BATCH", 4)
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("behind", "owner", "us-east-1", 10)
        early = JournalWriter(store)
        await early.run_once()
        for number in range(8):
            await put(store, bucket, f"k{number}", b"x")
        first = await objects.find(store, bucket.id, "k0")
        late = JournalWriter(store, now=lambda: first.modified + 60_000)
        append = late._append

        async def dies(*given: Any) -> None:
            await append(*given)
            raise RuntimeError("between two batches")

        monkeypatch.setattr(late, "_append", dies)
        with pytest.raises(RuntimeError, match="between"):
            await late.run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage) == ([], [])
    assert report.counts["versions"] == 8, "four by their claims"
    assert report.restored_claims == 4


def flip(path: Path, at: int) -> None:
    """Damage one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def records(path: Path) -> list[tuple[format.Record, str]]:
    """The records of a journal with their kinds."""
    fd = os.open(path, os.O_RDONLY)
    try:
        salt = format.read_salt(fd, int(path.stem, 16))
        found = []
        for record in format.walk(fd, salt):
            claim, body = format.read_verified(fd, record, salt) or (b"", b"")
            found.append((record, parse_header(JournalRecord(record.blob_id, claim, body)).kind))
        return found
    finally:
        os.close(fd)


@pytest.mark.parametrize("which", ["rows", "the last", "the head of the last"])
async def test_a_damaged_snapshot_costs_no_more_than_what_is_damaged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr("sluice_s3.app.index.journals.queries.ROWS_PER_BATCH", 4)
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("kept", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store, retained=0)
        for number in range(20):
            await put(store, bucket, f"k{number:02}", b"x")
        await objects.delete(store, bucket.id, "k19", None, None, {})
        await journal_writer.run_once()
        journal_writer.request_snapshot()
        await journal_writer.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        await objects.delete(store, bucket.id, "k18", None, None, {})
        await journal_writer.run_once()
        expected = await bodies(store)
    journals = sorted((settings.data / "journals").glob("*.journal"), key=lambda path: path.stem)
    (snapshot,) = [path for path in journals if {kind for _, kind in records(path)} & {"snapshot"}]
    found = records(snapshot)
    if which == "rows":
        flip(snapshot, found[1][0].offset + format.RECORD_HEADER + found[1][0].header_size)
    else:
        end = found[-1][0]
        flip(snapshot, end.offset + (30 if "head" in which else format.RECORD_HEADER + end.header_size))
    lose_index(settings)
    report, _ = rebuilt(settings)
    assert (report.whole, report.restored_claims) == (False, 0)
    assert report.counts["buckets"] == 1
    async with writing(settings) as store:
        there = await bodies(store)
    assert there.items() <= expected.items()
    assert len(there) >= len(expected) - (4 if which == "rows" else 0)


async def test_a_journal_without_a_header_is_damage(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        await put(store, bucket, "deleted", b"x")
        await JournalWriter(store).run_once()
        await objects.delete(store, bucket.id, "deleted", None, None, {})
        await JournalWriter(store).run_once()
    lose_index(settings)
    *_, last = sorted((settings.data / "journals").glob("*.journal"), key=lambda path: path.stem)
    flip(last, 20)
    report, _ = rebuilt(settings)
    assert len(report.damage) == 1
    assert not report.whole


async def test_an_index_that_was_half_moved_aside_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its log it is one of some time ago."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        await put(store, bucket, "k", b"x")
        await JournalWriter(store).run_once()
    rename = os.rename
    monkeypatch.setattr(module.os, "rename", lambda *_: (_ for _ in ()).throw(OSError("power cut")))
    with Rebuild(open_offline_stores(settings), settings.index_path, progress=lambda *_: None) as work:
        work.run()
        with pytest.raises(OSError, match="power cut"):
            work.install(replace=True)
    monkeypatch.setattr(module.os, "rename", rename)
    with pytest.raises(CannotStart, match="generation"):
        await asyncio.to_thread(prepare, settings)
    rebuilt(settings, replace=True)
    await asyncio.to_thread(prepare, settings)


async def test_a_file_whose_sync_took_long_is_restored(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its claim was made before that, and its commit began to wait behind it."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        await JournalWriter(store).run_once()
        monkeypatch.setattr(recovery_headers, "_now", lambda: now_ms() - 30_000)
        await put(store, bucket, "large", bytes(300_000))
    lose_index(settings)
    report, _ = rebuilt(settings)
    assert (report.restored_claims, report.counts["versions"]) == (1, 1)


async def test_what_a_missing_journal_tells_of_is_there_when_it_comes_back(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await put(store, bucket, "k", b"x")
        await journal_writer.run_once()
    lose_index(settings)
    (journal,) = (settings.data / "journals").glob("*.journal")
    aside = journal.rename(settings.data / "aside")
    report, _ = rebuilt(settings)
    assert report.counts["versions"] == 0
    async with packed(settings) as store:
        await compact(store, Counts())
        await collect(store)
    lose_index(settings)
    aside.rename(journal)
    report, lost = rebuilt(settings)
    assert (report.counts["versions"], lost) == (1, [])
