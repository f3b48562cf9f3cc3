"""What the index decided is written down beside the data, whole, once, and before anything relies on it."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sluice_s3.app.errors import StoreFull, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.jobs.journals import writer as job
from sluice_s3.app.jobs.journals.writer import NO_BOUND, JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.journals.encoding import CHANGES, END
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.journals import names, records, replayed
from tests.unit.store.site import opened, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with opened(settings) as made:
        yield made


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("decided", "owner", "us-east-1", 10)


def rows(settings: Settings) -> dict[tuple[int, str], list[object]]:
    """What the index holds."""
    connection = open_connection(settings.index_path)
    found = connection.execute("SELECT * FROM versions").fetchall()
    connection.close()
    return {(row[1], row[2]): list(row) for row in found}


async def test_what_was_decided_can_be_read_from_the_journals(settings: Settings, store: Store, bucket: Bucket) -> None:
    journal_writer = JournalWriter(store)
    for key in ("a", "b", "c"):
        await put(store, bucket, key, b"first")
    await journal_writer.run_once()
    assert replayed(settings) == rows(settings)
    assert (await store.index.journal_lag())[:2] == (0, 0)
    await put(store, bucket, "a", b"second")
    await objects.delete(store, bucket.id, "b", None, None, {})
    count, oldest, _ = await store.index.journal_lag()
    assert (count, oldest > 0) == (2, True)
    assert await journal_writer.run_once() == 2
    assert await journal_writer.run_once() == 0
    assert replayed(settings) == rows(settings)
    assert set(rows(settings)) == {(bucket.id, "a"), (bucket.id, "c")}
    (first, second) = [heading for heading, _ in records(settings) if heading.kind == CHANGES]
    assert (first.after, first.until) == (0, second.after)
    assert len(names(settings)) == 1


async def test_accounts_keys_and_buckets_are_written_when_they_change(settings: Settings, store: Store) -> None:
    journal_writer = JournalWriter(store)
    await journal_writer.run_once()
    await store.index.create_bucket("later", "owner", "us-east-1", 10)
    await journal_writer.run_once()
    await journal_writer.run_once()
    written = [fields["settings"] for _, fields in records(settings) if "settings" in fields]
    assert [[row[1] for row in one["buckets"]] for one in written] == [[], ["later"]]
    assert written[0]["access_keys"][0][0] == "ROOTKEY"
    assert len(written[0]["accounts"]) == 1


async def test_batches_are_bounded(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.app.index.journals.queries.ROWS_PER_BATCH", 4)
    journal_writer = JournalWriter(store)
    for number in range(11):
        await put(store, bucket, f"k{number}", b"x")
    for number in range(7):
        await objects.delete(store, bucket.id, f"k{number}", None, None, {})
    await journal_writer.run_once()
    assert replayed(settings) == rows(settings)
    sizes = [len(fields["versions"]) + len(fields["removals"]) for _, fields in records(settings)]
    ended = [row for _, fields in records(settings) for row in fields["removals"] if row[1] == "writer"]
    assert sum(sizes) == 11 + len(ended)
    assert max(sizes) <= 8


@given(text=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20))
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_key(settings: Settings, store: Store, bucket: Bucket, text: str) -> None:
    await put(store, bucket, text, b"x")
    await JournalWriter(store).run_once()
    assert replayed(settings) == rows(settings)


async def test_a_snapshot_replaces_what_is_out_of_date(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MIN_SNAPSHOT_ROWS", 20)
    monkeypatch.setattr(job, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr("sluice_s3.app.index.journals.queries.ROWS_PER_BATCH", 3)
    journal_writer = JournalWriter(store)
    for turn in range(12):
        for number in range(7):
            await put(store, bucket, f"k{number}", b"%d" % turn)
        await journal_writer.run_once()
        assert replayed(settings) == rows(settings)
        await objects.delete(store, bucket.id, f"k{turn % 7}", None, None, {})
    for _ in range(3):
        await journal_writer.run_once()
    assert not [heading for heading, _ in records(settings) if heading.kind == END], "a slice of no time gets nowhere"
    monkeypatch.setattr(job, "SLICE_SECONDS", 10.0)
    await put(store, bucket, "meanwhile", b"x")
    await journal_writer.run_once()
    await put(store, bucket, "k1", b"after")
    await journal_writer.run_once()
    (heading,) = [heading for heading, _ in records(settings) if heading.kind == END]
    assert replayed(settings) == rows(settings)
    assert len(names(settings)) == 2
    assert [journal.snapshot for journal in await store.index.journals()] in ([2, 0], [0, 2])
    assert heading.until <= await store.index.watermark()


async def test_what_changes_before_a_snapshot_has_read_it_is_told_before_older_journals_go(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a newer number by then than the snapshot goes up to."""
    monkeypatch.setattr(job, "SLICE_SECONDS", 60.0)
    await put(store, bucket, "k", b"body")
    journal_writer = JournalWriter(store)
    await journal_writer.run_once()
    look = store.index.changes

    async def late(after: int, *until: Any, **more: Any) -> Any:
        if until:  # the snapshot asks
            found = await objects.find(store, bucket.id, "k")
            await store.index.set_headers(bucket.id, "k", found.seq, '{"tags":{"a":"b"}}')
        return await look(after, *until, **more)

    monkeypatch.setattr(store.index, "changes", late)
    journal_writer.request_snapshot()
    await journal_writer.run_once()
    assert [journal.snapshot for journal in await store.index.journals()] == [2, 0]
    assert replayed(settings) == rows(settings) != {}


async def test_a_snapshot_that_broke_off_is_taken_away(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MIN_SNAPSHOT_ROWS", 1)
    monkeypatch.setattr(job, "SLICE_SECONDS", 0.0)
    journal_writer = JournalWriter(store)
    for turn in range(9):
        await put(store, bucket, "k", b"%d" % turn)
        await journal_writer.run_once()
    assert any(journal.snapshot == 1 for journal in await store.index.journals())
    later = JournalWriter(store)
    await put(store, bucket, "k", b"last")
    monkeypatch.setattr(job, "MIN_SNAPSHOT_ROWS", 1000)
    later._rows_to_check = 1000
    await later.run_once()
    assert {journal.snapshot for journal in await store.index.journals()} == {0}
    assert names(settings) == [journal.id for journal in await store.index.journals()]
    assert replayed(settings) == rows(settings)


async def test_a_journal_that_failed_is_not_written_to_again(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal_writer = JournalWriter(store)
    await put(store, bucket, "k", b"1")
    await journal_writer.run_once()
    watermark = await store.index.watermark()
    await put(store, bucket, "k", b"2")
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "full")

        patch.setattr("sluice_s3.storage_drivers.objects.journals.write_all", full)
        with pytest.raises(StoreFull):
            await journal_writer.run_once()
        assert journal_writer.bound() == NO_BOUND, "else a full store never gets space again"
    assert await store.index.watermark() == watermark
    await journal_writer.run_once()
    assert journal_writer.bound() == await store.index.watermark() > watermark
    assert replayed(settings) == rows(settings)
    assert len(names(settings)) == 2


async def test_a_failed_sync_moves_nothing(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings(tmp_path, durability="full")
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("decided", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        await put(store, bucket, "k", b"1")
        watermark = await store.index.watermark()
        with monkeypatch.context() as patch:

            def fail(_: int) -> None:
                raise OSError(errno.EIO, "rotten")

            patch.setattr("sluice_s3.storage_drivers.objects.journals.os.fdatasync", fail)
            with pytest.raises(StoreUnavailable):
                await journal_writer.run_once()
        assert await store.index.watermark() == watermark
        before = len(os.listdir("/proc/self/fd"))
        await journal_writer.run_once()
        assert len(os.listdir("/proc/self/fd")) == before + 1
        assert replayed(settings) == rows(settings)


async def test_nothing_goes_that_a_journal_may_name(settings: Settings, store: Store, bucket: Bucket) -> None:
    journal_writer = JournalWriter(store)
    garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound)
    await put(store, bucket, "k", b"old")
    await journal_writer.run_once()
    await put(store, bucket, "k", b"new")
    assert await garbage.run_once() == 0
    await journal_writer.run_once()
    assert await garbage.run_once() == 1


class Died(Exception):
    """As if the process ended here."""


@pytest.mark.parametrize("point", ["decisions.announced", "decisions.written", "decisions.moved", "decisions.snapshot"])
async def test_a_process_that_dies_loses_nothing_of_it(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(job, "MIN_SNAPSHOT_ROWS", 5)

    def die(name: str) -> None:
        if name == point:
            raise Died

    died = 0
    for turn in range(30):
        await put(store, bucket, f"k{turn % 4}", b"%d" % turn)
        await objects.delete(store, bucket.id, f"k{(turn + 2) % 4}", None, None, {})
        with monkeypatch.context() as patch:
            if turn % 3 == 1:
                patch.setattr(job, "crash_point", die)
            journal_writer = JournalWriter(store)
            try:
                await journal_writer.run_once()
            except Died:
                died += 1
    assert died
    await JournalWriter(store).run_once()
    assert replayed(settings) == rows(settings)
    assert names(settings) == [journal.id for journal in await store.index.journals()]


async def test_a_bucket_is_written_down_with_what_is_put_into_it(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are new when the job looks for changes. Who puts a locked object waits for these alone."""
    await put(store, bucket, "a", b"first")
    look = store.index.changes
    made: list[int] = []

    async def late(*words: Any, **more: Any) -> Any:
        fresh = await store.index.create_bucket("fresh", "owner", "us-east-1", 10)
        made.append((await put(store, fresh, "k", b"body")).seq)
        return await look(*words, **more)

    monkeypatch.setattr(store.index, "changes", late)
    await JournalWriter(store).run_once()
    assert await store.index.watermark(store.name) >= made[0]
    ((_, fields),) = records(settings)
    assert [row[1] for row in fields["settings"]["buckets"]] == ["decided", "fresh"]
