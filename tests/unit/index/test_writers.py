"""Writer incarnations, their ids, and what a sweep asks."""

import asyncio
from pathlib import Path

import pytest

from sluice_s3.app.errors import WriterDead
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.cluster.rows import IdRange
from sluice_s3.app.index.reclaim.queries import Reference
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER, by_hand, new, open_at, part


async def test_each_start_is_an_incarnation_of_its_own(index: SqliteIndex, directory: Path) -> None:
    other = open_at(directory)
    await other.start()
    assert other.incarnation > index.incarnation
    assert [writer.incarnation for writer in await index.writers()] == [index.incarnation, other.incarnation]
    assert not any(index.is_writer_dead(writer) for writer in await index.writers())
    await other.close()


async def test_a_clean_close_leaves_nothing(index: SqliteIndex, directory: Path) -> None:
    other = open_at(directory)
    await other.start()
    ids = await other.reserve_ids(10)
    await other.retire_range(ids)
    await other.close()
    assert [writer.incarnation for writer in await index.writers()] == [index.incarnation]
    assert len(list((directory / "run" / "writers").iterdir())) == 1


@pytest.mark.parametrize("sealed", [True, False])
async def test_a_pack_that_is_open_leaves_the_incarnation_to_the_sweep(
    index: SqliteIndex, directory: Path, sealed: bool
) -> None:
    other = open_at(directory)
    await other.start()
    pack = await other.open_pack()
    if sealed:
        await other.seal_pack(pack, 100)
    incarnations = [index.incarnation] if sealed else [index.incarnation, other.incarnation]
    await other.close()
    assert [writer.incarnation for writer in await index.writers()] == incarnations


async def test_unsettled_ids_leave_the_incarnation_to_the_sweep(index: SqliteIndex, directory: Path) -> None:
    other = open_at(directory)
    await other.start()
    ids = await other.reserve_ids(10)
    incarnation = other.incarnation
    await other.close()
    left = next(writer for writer in await index.writers() if writer.incarnation == incarnation)
    assert left.state == "live"
    assert index.is_writer_dead(left)
    assert await index.ranges(incarnation) == [ids]

    await index.forget_writer(incarnation)
    assert await index.ranges(incarnation) == [ids]  # not before it was declared dead
    await index.declare_dead(incarnation)
    await index.forget_writer(incarnation)
    assert await index.ranges(incarnation) == []
    assert [writer.incarnation for writer in await index.writers()] == [index.incarnation]
    assert not (directory / "run" / "writers" / left.lock_name).exists()


async def test_a_writer_without_its_lock_file_is_gone(index: SqliteIndex) -> None:
    """Where there is one host; else it may be another gateway's."""
    (writer,) = await index.writers()
    assert not index.is_writer_dead(writer)
    assert index.is_writer_dead(writer._replace(lock_name="missing.lock")) == (not index.many_hosts)


async def test_ids_are_never_given_twice(index: SqliteIndex, bucket: Bucket) -> None:
    first = await index.reserve_ids(100)
    committed = await index.put_version(bucket.id, "k", new())
    second = await index.reserve_ids(1)
    assert first == IdRange(index.incarnation, first.first, first.first + 99)
    assert first.last < committed.seq < second.first == second.last
    await index.retire_range(first)
    assert await index.ranges(index.incarnation) == [second]


async def test_without_a_writer_there_are_commits_but_no_ids(index: SqliteIndex, directory: Path) -> None:
    beside = open_at(directory, writer=False)
    await beside.start()
    before = index.generation
    await beside.create_bucket("bucket", OWNER, "r", 10)
    assert await index.bucket("bucket") is not None
    assert index.generation > before
    with pytest.raises(WriterDead):
        await beside.reserve_ids(1)
    assert len(await beside.writers()) == 1
    await beside.close()


async def fill(index: SqliteIndex, bucket: Bucket) -> None:
    """A blob in every kind of row."""
    source = await index.put_version(bucket.id, "version", new("v", size=7))
    await index.copy_version(source.seq, bucket.id, "copy", new(size=7))
    await index.put_version(bucket.id, "replaced", new("d"))
    await index.put_version(bucket.id, "replaced", new())
    for key, locators in (("completed", ("p1", "p2")), ("opened", ("o",)), ("aborted", ("a",))):
        upload = await index.create_upload(bucket.id, key, "{}", "STANDARD", "", "", OWNER)
        await index.put_part(upload, part(1, *locators))
        if key == "completed":
            await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=10, parts=1))
        if key == "aborted":
            await index.abort_upload(upload)


ALL = {"v", "d", "p1", "p2", "o", "a"}


async def test_held_finds_every_kind_of_row(index: SqliteIndex, bucket: Bucket) -> None:
    since = (await index.reserve_ids(10)).first
    await fill(index, bucket)
    assert await index.find_referenced([*ALL, "other"]) == ALL
    assert await index.find_referenced([*ALL, "other"], since) == ALL
    assert await index.find_referenced([]) == set()


async def test_held_since_leaves_older_versions_out(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "old", new("old"))
    since = (await index.reserve_ids(10)).first
    await index.put_version(bucket.id, "new", new("new"))
    assert await index.find_referenced(["old", "new"], since) == {"new"}


async def test_references_name_every_blob_once_a_row(index: SqliteIndex, bucket: Bucket) -> None:
    await fill(index, bucket)
    found = [reference async for reference in index.references()]
    assert sorted(found) == sorted(
        [
            Reference("version", "v", 7, "bucket", "version"),
            Reference("version", "v", 7, "bucket", "copy"),
            Reference("piece", "p1", 5, "bucket", "completed"),
            Reference("piece", "p2", 5, "bucket", "completed"),
            Reference("part", "o", 5, "bucket", "opened"),
            Reference("part", "a", 5, "bucket", "aborted"),
            Reference("discard", "d", 0, "", ""),
        ]
    )


async def test_references_of_many_rows(index: SqliteIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.index.reclaim.queries.ROWS_PER_BATCH", 3)
    await fill(index, bucket)
    for number in range(10):
        await index.put_version(bucket.id, f"k{number}", new(f"more{number}"))
    upload = await index.create_upload(bucket.id, "parts", "{}", "STANDARD", "", "", OWNER)
    for number in range(1, 8):
        await index.put_part(upload, part(number, f"part{number}", f"part{number}too"))
    found = [reference.locator async for reference in index.references()]
    parts = [f"part{number}{suffix}" for number in range(1, 8) for suffix in ("", "too")]
    assert sorted(found) == sorted([*ALL, "v", *(f"more{number}" for number in range(10)), *parts])


async def test_a_wrong_count_is_found(index: SqliteIndex, bucket: Bucket, directory: Path) -> None:
    await fill(index, bucket)
    assert await index.miscounted() == []
    await by_hand(index, "UPDATE shared SET holders = 3 WHERE body = 'v'")
    await by_hand(index, "INSERT INTO shared VALUES ('nobody', 2), ('p1', 2)")
    await by_hand(index, "INSERT INTO discards VALUES (1, 'o', 0)")
    assert sorted(await index.miscounted()) == [("nobody", 2, 0), ("o", 0, 1), ("p1", 2, 1), ("v", 3, 2)]


async def test_who_was_declared_dead_is_told_once(directory: Path) -> None:
    told: list[str] = []
    index: SqliteIndex = open_at(directory, lost=lambda: told.append("lost"))
    await index.start()
    try:
        await index.reserve_ids(1)
        await asyncio.sleep(0)
        assert told == []
        await index.declare_dead(index.incarnation)
        for _ in range(2):
            with pytest.raises(WriterDead):
                await index.reserve_ids(1)
        await asyncio.sleep(0)
        assert told == ["lost"]
    finally:
        await index.close()
