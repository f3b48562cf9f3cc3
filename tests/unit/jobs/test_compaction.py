"""Compaction: what lives is moved and reads as before, and the space of the rest comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import DataDamaged, Overloaded
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs import pacing
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import AppendRequest
from tests.support.settings import make_settings
from tests.unit.jobs.packed import (
    BODY,
    PACK,
    Counts,
    allocated,
    body,
    collect,
    compact,
    complete,
    content,
    copy,
    copy_part,
    delete,
    files,
    fill,
    packed,
    packs_of,
    put_part,
    start_upload,
)
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=PACK)
    prepare(made)
    return made


async def a_bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("packed", "owner", "us-east-1", 10)


async def check(store: Store, bucket: Bucket, expected: dict[str, bytes]) -> None:
    for key, value in expected.items():
        assert await content(store, bucket, key) == value, key
    page = await store.index.list_current(bucket.id, "", "", "", 10_000)
    assert [entry.key for entry in page.entries] == sorted(expected)
    report = await fsck(store, repair=False)
    assert report.clean, report


async def test_what_lives_moves_and_the_pack_goes(settings: Settings) -> None:
    counts = Counts()
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(60))  # the first pack is full
        (first, *_) = files(settings)
        dead = [f"k{number:04}" for number in range(60) if number % 3]
        await delete(store, bucket, *dead)
        for key in dead:
            del there[key]
        places = {key: (await objects.find(store, bucket.id, key)).seq for key in there}
        await collect(store)
        await compact(store, counts)
        assert first not in files(settings)
        assert await store.index.discards(0, 10) == []
        assert {key: (await objects.find(store, bucket.id, key)).seq for key in there} == places
        await check(store, bucket, there)
    assert 0 < counts.moved <= counts.freed, "a byte moved a byte freed at most"


async def test_a_pack_that_lives_stays(settings: Settings) -> None:
    counts = Counts()
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(70))
        before = files(settings)
        await delete(store, bucket, *(f"k{number:04}" for number in range(0, 70, 3)))
        await collect(store)
        await compact(store, counts)
        assert files(settings) == before
        assert counts.moved == 0
        await check(store, bucket, {key: there[key] for number, key in enumerate(there) if number % 3})


async def test_everything_that_can_hold_a_record(settings: Settings) -> None:
    """Parts, pieces, copies with and without their original, one body many times in one upload."""
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        await fill(store, bucket, range(50), "dead")
        there = await fill(store, bucket, range(3))
        await copy(store, bucket, "k0000", "copy")
        await copy(store, bucket, "k0001", "widow")
        await delete(store, bucket, "k0001")
        whole = await start_upload(store, bucket, "whole")
        await put_part(store, whole, 1, body("part one"))
        await copy_part(store, bucket, "k0002", whole, 2)
        await copy_part(store, bucket, "k0002", whole, 3)
        await complete(store, bucket, whole)
        opened = await start_upload(store, bucket, "open")
        await put_part(store, opened, 1, body("of the open one"))
        await copy_part(store, bucket, "k0000", opened, 2)
        await copy_part(store, bucket, "whole", opened, 3)
        await fill(store, bucket, range(20), "next")
        (first, *_) = files(settings)
        await delete(store, bucket, *(f"dead{number:04}" for number in range(50)))
        await delete(store, bucket, *(f"next{number:04}" for number in range(20)))
        await collect(store)
        await compact(store)
        assert first not in files(settings)
        two, zero = body("k0002"), body("k0000")
        expected = {
            **{key: there[key] for key in ("k0000", "k0002")},
            "copy": zero,
            "widow": there["k0001"],
            "whole": body("part one") + two + two,
        }
        await check(store, bucket, expected)
        await complete(store, bucket, opened)
        expected["open"] = body("of the open one") + zero + body("part one") + two + two
        await check(store, bucket, expected)
        await delete(store, bucket, *expected)
        await collect(store)
        await collect(store)
        await compact(store)
        assert await store.index.miscounted() == []
        totals = {pack.id: pack.size - 64 - pack.dead for pack in (await packs_of(store)).values() if pack.sealed}
        assert all(left == 0 for left in totals.values()), totals


async def test_complete_of_parts_that_were_moved_meanwhile(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        await fill(store, bucket, range(40), "dead")
        upload = await start_upload(store, bucket, "moved")
        await put_part(store, upload, 1, body("part"))
        chosen = await store.index.parts(upload, 0, 10)
        await fill(store, bucket, range(30), "dead too")
        await delete(store, bucket, *(f"dead{number:04}" for number in range(40)))
        await delete(store, bucket, *(f"dead too{number:04}" for number in range(30)))
        await collect(store)
        await compact(store)
        assert await store.index.parts(upload, 0, 10) != chosen
        made = Bytes(b"").describe("")._replace(size=chosen[0].size, parts=1)
        await store.index.complete_upload(upload, chosen, made)
        await check(store, bucket, {"moved": body("part")})


async def test_a_copy_of_what_was_moved_meanwhile(settings: Settings) -> None:
    """The copy looked at its source before the move and commits behind it."""
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        await fill(store, bucket, range(40), "dead")
        await put(store, bucket, "source", body("source"))
        await fill(store, bucket, range(30), "more")
        await delete(store, bucket, *(f"dead{number:04}" for number in range(40)))
        await delete(store, bucket, *(f"more{number:04}" for number in range(30)))
        await collect(store)
        upload = await start_upload(store, bucket, "target")
        commit, calls = store.index.copy_part, []

        async def late(*arguments: object) -> object:
            calls.append(arguments)
            if len(calls) == 1:
                await compact(store)
            return await commit(*arguments)  # type: ignore[arg-type]

        store.index.copy_part = late  # type: ignore[method-assign,assignment]
        await copy_part(store, bucket, "source", upload, 1)
        assert len(calls) == 2, "the source had moved and was looked at again"
        await complete(store, bucket, upload)
        await check(store, bucket, {"source": body("source"), "target": body("source")})


async def test_changes_between_look_and_commit_are_left_for_the_next_round(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(66))
        dead = [key for number, key in enumerate(there) if number % 4]
        await delete(store, bucket, *dead)
        await collect(store)
        commit, seen = store.index.move_records, []

        async def late(moves: list[object]) -> list[bool]:
            if not seen:
                await copy(store, bucket, "k0000", "copied")
                await delete(store, bucket, "k0004")
                await put(store, bucket, "k0008", b"overwritten")
            done = await commit(moves)  # type: ignore[arg-type]
            seen.extend(done)
            return done

        monkeypatch.setattr(store.index, "move_records", late)
        await compact(store)
        assert seen.count(False) == 3
        expected = {key: value for key, value in there.items() if key not in (*dead, "k0004")}
        expected |= {"copied": there["k0000"], "k0008": b"overwritten"}
        await check(store, bucket, expected)
        assert not [pack for pack in (await packs_of(store)).values() if pack.sealed], "the old one went at last"


async def test_a_failed_commit_costs_nothing_but_space(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(66))
        dead = [key for number, key in enumerate(there) if number % 4]
        await delete(store, bucket, *dead)
        await collect(store)

        async def fail(moves: list[object]) -> list[bool]:
            raise Overloaded(reason="test")

        with monkeypatch.context() as patch:
            patch.setattr(store.index, "move_records", fail)
            with pytest.raises(Overloaded):
                await compact(store, rounds=1)
        await compact(store)
        await check(store, bucket, {key: value for key, value in there.items() if key not in dead})


async def test_the_rate_holds(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(66))
        await delete(store, bucket, *(key for number, key in enumerate(there) if number % 3))
        await collect(store)
        counts, clock = Counts(), [0.0]

        async def sleep(seconds: float) -> None:
            clock[0] += seconds

        off = Compactor(store, 0, 0, counts, lambda: clock[0])
        await off.run_once()
        assert counts.moved == 0
        monkeypatch.setattr(pacing.asyncio, "sleep", sleep)
        await Compactor(store, 100_000, 0, counts, lambda: clock[0]).run_once()
        assert counts.moved > 10 * BODY
        assert clock[0] == pytest.approx(counts.moved / 100_000)


async def test_an_open_reader_keeps_its_bytes(settings: Settings) -> None:
    """The old place stays as long as a request that began before may read it."""
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(66))
        version = await objects.find(store, bucket.id, "k0000")
        await delete(store, bucket, *(key for number, key in enumerate(there) if number % 4))
        await collect(store)
        assert await store.driver.read(version.body, 0, version.size) == there["k0000"]
        await compact(store)
        assert (await objects.find(store, bucket.id, "k0000")).body != version.body
        # unlinked by now: the descriptor that the reader has open serves on
        assert await store.driver.read(version.body, 0, version.size) == there["k0000"]
        await store.driver.close_unlinked()
        with pytest.raises(Exception, match="p:"):
            await store.driver.read(version.body, 0, version.size)


async def test_what_a_dead_writer_never_committed_is_found(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(10))
        for number in range(20):
            await _lose(store, number)
        await delete(store, bucket, *(f"k{number:04}" for number in range(8)))
        await collect(store)

        async def die(pack_id: int, size: int, *, swept: bool = False) -> None:
            """The process ends before it can seal."""

        store.index.seal_pack = die  # type: ignore[method-assign]
    async with packed(settings) as store:
        await sweep(store, lambda writer: writer.incarnation != store.index.incarnation)  # type: ignore[attr-defined]
        report = await fsck(store, repair=False)
        assert report.clean
        assert report.uncounted > 20 * BODY
        await compact(store)
        assert (await fsck(store, repair=False)).uncounted == 0
        await check(store, bucket, {key: there[key] for key in ("k0008", "k0009")})
        assert allocated(settings) < 5 * BODY


async def _lose(store: Store, number: int) -> None:
    """A record that no commit ever names."""
    done = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    piece = body(f"lost{number}")
    source = Bytes(piece)

    def end(entry: AppendRequest) -> None:
        loop.call_soon_threadsafe(done.set_result, entry)

    store.driver.append(AppendRequest(await store.ids.take_for_record(), piece, source, lambda: b"no claim", end, {}))
    assert (await done).error is None


async def test_a_record_on_its_way_is_never_buried(settings: Settings) -> None:
    """The pack is sealed and mostly dead, and the commit of its last record still waits."""
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        await fill(store, bucket, range(60), "dead")
        last: list[Any] = []
        written, loop = asyncio.Event(), asyncio.get_running_loop()
        begin = store.index.start_put

        def held(*arguments: Any) -> Any:
            chained = begin(*arguments)

            class Held:
                future = chained.future
                fail = chained.fail
                abandon = chained.abandon

                def proceed(self, locator: str) -> None:
                    last.extend((chained.proceed, locator))
                    loop.call_soon_threadsafe(written.set)

            return Held()

        store.index.start_put = held  # type: ignore[method-assign,assignment]
        waiting = asyncio.create_task(put(store, bucket, "late", body("late")))
        await written.wait()
        store.index.start_put = begin  # type: ignore[method-assign]
        await fill(store, bucket, range(60, 130), "dead")
        place = store.driver.packed(last[1])
        assert place is not None
        assert (await packs_of(store))[place[0]].sealed
        await delete(store, bucket, *(f"dead{number:04}" for number in range(130)))
        await collect(store)
        await compact(store, rounds=10)
        last[0](last[1])
        await waiting
        await compact(store)
        await check(store, bucket, {"late": body("late")})


async def test_damage_is_never_moved_nor_thrown_away(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(66))
        dead = [key for number, key in enumerate(there) if number % 4]
        await delete(store, bucket, *dead)
        await collect(store)
        place = store.driver.packed((await objects.find(store, bucket.id, "k0004")).body)
        assert place is not None
        (file,) = [path for path in files(settings) if int(path.stem, 16) == place[0]]
        whole = bytearray(file.read_bytes())
        at = whole.index(there["k0004"]) + 100
        whole[at] ^= 1
        file.write_bytes(bytes(whole))
        await compact(store)
        assert file.exists()
        with pytest.raises(DataDamaged):
            await content(store, bucket, "k0004")
        for key, value in there.items():
            if key not in dead and key != "k0004":
                assert await content(store, bucket, key) == value


async def test_a_look_that_was_cut_short_buries_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows hold records of the pack than one look brings home."""
    monkeypatch.setattr("sluice_s3.app.jobs.reclaim.compaction.REFERENCES_PER_SCAN", 3)
    async with packed(settings) as store:
        bucket = await a_bucket(store)
        there = await fill(store, bucket, range(20))
        await fill(store, bucket, range(50), "dead")
        for key in there:
            await copy(store, bucket, key, f"copy of {key}")
            await copy(store, bucket, key, f"second copy of {key}")
            await delete(store, bucket, key)
        await delete(store, bucket, *(f"dead{number:04}" for number in range(50)))
        await collect(store)
        await compact(store, rounds=40)
        expected = {f"{name} of {key}": value for key, value in there.items() for name in ("copy", "second copy")}
        await check(store, bucket, expected)
        assert not [pack for pack in (await packs_of(store)).values() if pack.sealed]
