"""Scrubbing finds what is damaged, keeps readers from it, and lets go of what is whole again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sluice_s3.app.errors import DataDamaged
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.jobs.integrity import scrub
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.pacing import Pacer
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.etags import Crc64Hash
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import LARGE, THRESHOLD, Past, writing
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_threshold=THRESHOLD)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with writing(settings) as made:
        yield made


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("scrubbed", "owner", "us-east-1", 10)


async def read(store: Store, bucket: Bucket, key: str) -> bytes:
    version = await objects.find(store, bucket.id, key)
    taken = bytearray()
    await reading.feed_bytes(store, version, 0, version.size, taken.extend)
    return bytes(taken)


def blob(settings: Settings, suffix: str) -> Path:
    lies = "journals/*" if suffix == ".journal" else "data/*/*"
    (found,) = [path for path in settings.data.glob(lies) if path.suffix == suffix]
    return found


def change(path: Path, body: bytes, how: Callable[[bytes], bytes]) -> None:
    content = path.read_bytes()
    assert content.count(body) == 1
    path.write_bytes(content.replace(body, how(body)))


async def test_a_whole_store_is_clean(settings: Settings, store: Store) -> None:
    past = Past(store, seed=11, keys=40)
    await past.begin()
    await past.run(300)
    await JournalWriter(store).run_once()
    report = await Scrubber(store, 0).run_once()
    assert report.clean
    assert report.rows > report.blobs > 20, "copies are not read twice"
    assert report.bytes > 5 * LARGE


@pytest.mark.parametrize("size", [500, LARGE])
@pytest.mark.parametrize("how", ["bit", "zero"])
async def test_damage_is_found_kept_from_readers_and_let_go_when_mended(
    settings: Settings, store: Store, bucket: Bucket, size: int, how: str
) -> None:
    body = hashlib.shake_128(b"body").digest(size)
    await put(store, bucket, "damaged", body)
    await put(store, bucket, "whole", b"whole")
    assert await read(store, bucket, "damaged") == body
    path = blob(settings, ".pack" if size < 1000 else "")
    before = path.read_bytes()
    change(path, body, (lambda old: bytes(len(old))) if how == "zero" else lambda old: old[:99] + b"?" + old[100:])
    scrubber = Scrubber(store, 0)
    report = await scrubber.run_once()
    assert [(fact["bucket"], fact["key"]) for fact in report.damaged] == [("scrubbed", "damaged")]
    path.write_bytes(before)
    with pytest.raises(DataDamaged):
        await read(store, bucket, "damaged")
    with pytest.raises(DataDamaged):
        await reading.read_body(store, await objects.find(store, bucket.id, "damaged"), 0, 10, {})
    assert await read(store, bucket, "whole") == b"whole"
    report = await scrubber.run_once()
    assert (len(report.healed), report.damaged) == (1, [])
    assert await read(store, bucket, "damaged") == body


async def test_a_blob_that_is_not_its_rows_is_found(settings: Settings, store: Store, bucket: Bucket) -> None:
    for key in ("one", "two", "short"):
        await put(store, bucket, key, f"body of {key}".encode())
    connection = open_connection(settings.index_path)
    ((body,),) = connection.execute("SELECT body FROM versions WHERE key = 'two'").fetchall()
    connection.execute("UPDATE versions SET body = ? WHERE key = 'one'", (body,))
    connection.execute("DELETE FROM versions WHERE key = 'two'")
    connection.execute("UPDATE versions SET size = 999 WHERE key = 'short'")
    connection.close()
    report = await Scrubber(store, 0).run_once()
    assert {fact["key"]: fact["reason"] for fact in report.damaged} == {
        "one": "its MD5 is not the ETag",
        "short": "13 bytes, where the row says 999",
    }


@pytest.mark.parametrize("size", [500, LARGE])
async def test_a_blob_is_compared_with_an_etag_by_crc64nvme(
    settings: Settings, store: Store, bucket: Bucket, size: int
) -> None:
    for key in ("one", "two", "short"):
        hashed, body = Crc64Hash(), hashlib.shake_128(key.encode()).digest(size)
        hashed.update(body)
        source = Bytes(body)
        await objects.put(
            store,
            bucket.id,
            key,
            source,
            lambda locator, etag=hashed.etag, source=source: source.describe(locator)._replace(etag=etag),
            None,
            {},
        )
    assert (await Scrubber(store, 0).run_once()).damaged == []
    connection = open_connection(settings.index_path)
    ((body,),) = connection.execute("SELECT body FROM versions WHERE key = 'two'").fetchall()
    connection.execute("UPDATE versions SET body = ? WHERE key = 'one'", (body,))
    connection.execute("DELETE FROM versions WHERE key = 'two'")
    connection.execute("UPDATE versions SET size = size - 1 WHERE key = 'short'")
    connection.close()
    report = await Scrubber(store, 0).run_once()
    assert {fact["key"]: fact["reason"] for fact in report.damaged} == {
        "one": "its CRC64NVME is not the ETag",
        "short": f"{size} bytes, where the row says {size - 1}",
    }


async def test_a_missing_blob_is_found_until_nobody_holds_it(settings: Settings, store: Store, bucket: Bucket) -> None:
    await put(store, bucket, "k", bytes(LARGE))
    blob(settings, "").unlink()
    scrubber = Scrubber(store, 0)
    (fact,) = (await scrubber.run_once()).damaged
    assert fact["reason"] == "missing"
    assert len(await store.index.quarantine()) == 1
    await objects.delete(store, bucket.id, "k", None, None, {})
    assert await GarbageCollector(store, lambda: 2, lambda: 1, 0).run_once() == 1
    assert len((await scrubber.run_once()).healed) == 1
    assert await store.index.quarantine() == []


async def test_a_read_checks_the_quarantine(settings: Settings, store: Store, bucket: Bucket) -> None:
    await put(store, bucket, "k", b"body")
    assert await read(store, bucket, "k") == b"body"
    version = await objects.find(store, bucket.id, "k")
    assert await reading.read_body(store, version, 0, 4, {}) == b"body"
    await store.index.add_quarantine(version.body, "for a test")
    for _ in range(2):
        with pytest.raises(DataDamaged):
            await reading.read_body(store, version, 0, 4, {})


async def test_a_pass_goes_on_where_it_ended(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.app.index.integrity.scrub.ROWS_PER_BATCH", 3)
    for number in range(10):
        await put(store, bucket, f"k{number}", b"x%d" % number)
    scrubber = Scrubber(store, 0)
    judge = scrubber._check_rows
    batches = 0

    async def two_batches(*arguments: object) -> None:
        nonlocal batches
        batches += 1
        if batches == 3:
            raise asyncio.CancelledError
        await judge(*arguments)  # type: ignore[arg-type]

    scrubber._check_rows = two_batches  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await scrubber.go_on()
    report = await Scrubber(store, 0).go_on()
    assert report is not None
    assert report.blobs == 4
    assert await Scrubber(store, 0).go_on() is None, "the next pass is not due"
    monkeypatch.setattr(scrub, "PASS_MS", 0)
    report = await Scrubber(store, 0).go_on()
    assert report is not None
    assert report.blobs == 10


async def test_it_keeps_to_its_rate(
    settings: Settings, store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(store, bucket, "large", bytes(40 * LARGE))
    for number in range(10):
        await put(store, bucket, f"k{number}", b"x")
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    rate = 100_000
    scrubber = Scrubber(store, rate)
    monkeypatch.setattr(scrubber, "_pacer", Pacer(rate=rate, now=lambda: clock[0], sleep=sleep))
    await scrubber.run_once()
    assert clock[0] == pytest.approx((40 * LARGE + 10 * scrub.MIN_READ_BYTES) / rate)


async def test_a_damaged_journal_is_written_anew(settings: Settings, store: Store, bucket: Bucket) -> None:
    journal_writer = JournalWriter(store)
    await put(store, bucket, "k", b"x")
    await journal_writer.run_once()
    path = blob(settings, ".journal")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    report = await Scrubber(store, 0, journal_writer.request_snapshot).run_once()
    assert report.damaged_journals == [path.stem]
    await journal_writer.run_once()
    assert not path.exists()
    assert (await Scrubber(store, 0).run_once()).clean
