"""Buckets that keep versions: what writes and deletes leave there, which version is the newest, and listings."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator

import pytest

from sluice_s3.app.errors import BucketNotEmpty, NoSuchBucket, NoSuchKey, PreconditionFailed
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Part, extents_of
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, NONCURRENT, OLD_MARKER, SUSPENDED
from sluice_s3.app.index.sql import transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.versioning import listing as listing_versions
from sluice_s3.app.index.versioning import version_ids
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion, VersionsPage
from tests.unit.index.tools import OWNER, new


@pytest.fixture
async def versioned(index: SqliteIndex, bucket: Bucket) -> Bucket:
    await index.set_versioning(bucket.id, ENABLED)
    return bucket


async def states(index: SqliteIndex, bucket: Bucket, key: str = "key") -> list[tuple[str, int]]:
    """ETag and state of each version of a key, as listed."""
    page = await index.list_versions(bucket.id, key, "", "", "", 1000)
    return [(entry.etag, entry.state) for entry in page.entries if entry.key == key]


async def discarded(index: SqliteIndex) -> list[str]:
    return [entry.body for entry in await index.discards(0, 1000)]


async def put_three(index: SqliteIndex, bucket: Bucket) -> list[CommitResult]:
    return [await index.put_version(bucket.id, "key", new(f"blob{number}", etag=f"e{number}")) for number in range(3)]


async def delete(index: SqliteIndex, bucket: Bucket, key: str, version_id: str | None = None) -> DeleteResult:
    done = await index.delete_version(bucket.id, key, version_id)
    assert isinstance(done, DeleteResult)
    return done


async def test_a_bucket_tells_whether_it_keeps_versions(index: SqliteIndex, bucket: Bucket) -> None:
    assert bucket.versioning == 0
    before = index.generation
    await index.set_versioning(bucket.id, ENABLED)
    assert index.generation != before
    found = await index.bucket("bucket")
    assert found is not None
    assert found.versioning == ENABLED
    with pytest.raises(NoSuchBucket):
        await index.set_versioning(bucket.id + 1, ENABLED)


async def test_a_write_keeps_what_it_replaces(index: SqliteIndex, versioned: Bucket) -> None:
    made = await put_three(index, versioned)
    assert len({one.version_id for one in made}) == 3
    assert await states(index, versioned) == [("e2", CURRENT), ("e1", NONCURRENT), ("e0", NONCURRENT)]
    for number, one in enumerate(made):
        found = await index.version(versioned.id, "key", one.version_id)
        assert found is not None
        assert (found.seq, found.version_id, found.modified) == one
        assert found.body == f"blob{number}"
    assert [entry.key for entry in (await index.list_current(versioned.id, "", "", "", 10)).entries] == ["key"]
    assert await discarded(index) == []
    with pytest.raises(BucketNotEmpty):
        await index.delete_bucket(versioned.id)


async def test_an_id_of_another_key_is_none_of_this(index: SqliteIndex, versioned: Bucket) -> None:
    made = await index.put_version(versioned.id, "key", new())
    await index.put_version(versioned.id, "other", new())
    assert await index.version(versioned.id, "other", made.version_id) is None
    assert await index.version(versioned.id, "key", version_ids.new_version_id(made.modified, made.seq + 1)) is None
    assert await index.version(versioned.id, "key", "3HL4kqtJlcpXroDTDmJ") is None
    assert await index.version(versioned.id, "key", NULL_VERSION) is None


async def test_a_delete_marks_and_the_removed_marker_brings_it_back(index: SqliteIndex, versioned: Bucket) -> None:
    put = await index.put_version(versioned.id, "key", new("blob", etag="e"))
    marker = await delete(index, versioned, "key")
    assert marker.marker
    assert marker.modified > put.modified
    assert await index.version(versioned.id, "key") is None
    assert (await index.list_current(versioned.id, "", "", "", 10)).entries == []
    found = await index.current_marker(versioned.id, "key")
    assert found is not None
    assert (found.version_id, found.is_marker, found.owner_id) == (marker.version_id, True, OWNER)
    assert await index.version(versioned.id, "key", marker.version_id) == found
    removed = await delete(index, versioned, "key", marker.version_id)
    assert removed == marker
    assert await index.current_marker(versioned.id, "key") is None
    back = await index.version(versioned.id, "key")
    assert back is not None
    assert back.version_id == put.version_id
    assert await discarded(index) == []


async def test_every_delete_makes_a_marker_also_of_what_never_was(index: SqliteIndex, versioned: Bucket) -> None:
    for _ in range(3):
        await delete(index, versioned, "key")
    assert await states(index, versioned) == [("", MARKER), ("", OLD_MARKER), ("", OLD_MARKER)]
    with pytest.raises(BucketNotEmpty):
        await index.delete_bucket(versioned.id)


async def test_a_removed_version_gives_up_its_blob_and_the_next_is_the_newest(
    index: SqliteIndex, versioned: Bucket
) -> None:
    made = await put_three(index, versioned)
    assert await delete(index, versioned, "key", made[1].version_id) == (*made[1], False)
    assert await states(index, versioned) == [("e2", CURRENT), ("e0", NONCURRENT)]
    assert await delete(index, versioned, "key", made[2].version_id) == (*made[2], False)
    assert await states(index, versioned) == [("e0", CURRENT)]
    assert await index.delete_version(versioned.id, "key", made[2].version_id) is None
    assert await delete(index, versioned, "key", made[0].version_id) == (*made[0], False)
    assert sorted(await discarded(index)) == ["blob0", "blob1", "blob2"]
    await index.delete_bucket(versioned.id)


async def test_what_was_discarded_is_forgotten(index: SqliteIndex, versioned: Bucket) -> None:
    """The queue of a bucket of which it is known by then that it keeps versions."""
    made = await put_three(index, versioned)
    await delete(index, versioned, "key", made[1].version_id)
    (entry,) = await index.discards(0, 10)
    await index.forget_discards([(entry.id, 0, 0)])
    assert await discarded(index) == []


async def test_what_was_there_before_has_the_id_null(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "key", new("old", etag="old"))
    await index.set_versioning(bucket.id, ENABLED)
    await index.put_version(bucket.id, "key", new("new", etag="new"))
    found = await index.version(bucket.id, "key", NULL_VERSION)
    assert found is not None
    assert found.body == "old"
    await delete(index, bucket, "key")
    assert (await delete(index, bucket, "key", NULL_VERSION)).version_id == NULL_VERSION
    assert await states(index, bucket) == [("", MARKER), ("new", NONCURRENT)]
    assert await discarded(index) == ["old"]


async def test_while_suspended_writes_take_the_place_of_null(index: SqliteIndex, versioned: Bucket) -> None:
    kept = await index.put_version(versioned.id, "key", new("kept", etag="kept"))
    await index.set_versioning(versioned.id, SUSPENDED)
    for number in range(2):
        made = await index.put_version(versioned.id, "key", new(f"null{number}", etag=f"null{number}"))
        assert made.version_id == NULL_VERSION
    assert await states(index, versioned) == [("null1", CURRENT), ("kept", NONCURRENT)]
    for _ in range(2):
        marker = await delete(index, versioned, "key")
        assert (marker.version_id, marker.marker) == (NULL_VERSION, True)
    assert await states(index, versioned) == [("", MARKER), ("kept", NONCURRENT)]
    await index.put_version(versioned.id, "key", new("null2", etag="null2"))
    assert await states(index, versioned) == [("null2", CURRENT), ("kept", NONCURRENT)]
    assert await discarded(index) == ["null0", "null1"]
    await index.set_versioning(versioned.id, ENABLED)
    await index.put_version(versioned.id, "key", new("last", etag="last"))
    await index.set_versioning(versioned.id, SUSPENDED)
    await index.put_version(versioned.id, "key", new("null3", etag="null3"))
    assert await states(index, versioned) == [("null3", CURRENT), ("last", NONCURRENT), ("kept", NONCURRENT)]
    assert await discarded(index) == ["null0", "null1", "null2"]
    found = await index.version(versioned.id, "key", kept.version_id)
    assert found is not None
    assert found.body == "kept"


async def test_a_clock_that_is_set_back_changes_no_order(
    index: SqliteIndex, versioned: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluice_s3.app.index.versioning import transactions as versions

    monkeypatch.setattr(versions, "now_ms", itertools.count(10**12, -1000).__next__)
    assert transaction.now_ms() > 10**12
    for number in range(3):
        await index.put_version(versioned.id, "key", new(etag=f"e{number}"))
    await delete(index, versioned, "key")
    assert [etag for etag, _ in await states(index, versioned)] == ["", "e2", "e1", "e0"]


async def test_conditions_look_at_the_current_object(index: SqliteIndex, versioned: Bucket) -> None:
    new_only = Conditions(if_none_match=True)
    await index.put_version(versioned.id, "key", new(etag="e0"), new_only)
    with pytest.raises(PreconditionFailed):
        await index.put_version(versioned.id, "key", new(), new_only)
    await index.put_version(versioned.id, "key", new(etag="e1"), Conditions(if_match="e0"))
    with pytest.raises(PreconditionFailed):
        await index.put_version(versioned.id, "key", new(), Conditions(if_match="e0"))
    with pytest.raises(PreconditionFailed):
        await index.delete_version(versioned.id, "key", None, Conditions(if_match="e0"))
    await delete(index, versioned, "key")
    with pytest.raises(NoSuchKey):
        await index.put_version(versioned.id, "key", new(), Conditions(if_match="*"))
    await index.put_version(versioned.id, "key", new(etag="e2"), new_only)
    assert [etag for etag, _ in await states(index, versioned)] == ["e2", "", "e1", "e0"]


async def test_many_deletes_are_answered_each_alone(index: SqliteIndex, versioned: Bucket) -> None:
    first = await index.put_version(versioned.id, "first", new("blob1"))
    await index.put_version(versioned.id, "second", new("blob2", etag="e"))
    no = Conditions()
    done = await index.delete_versions(
        versioned.id,
        [
            Deletion("first", first.version_id, no),
            Deletion("second", None, Conditions(if_match="other")),
            Deletion("second", None, no),
            Deletion("third", version_ids.new_version_id(1, 1), no),
        ],
    )
    assert done[0] == (*first, False)
    assert isinstance(done[1], PreconditionFailed)
    assert isinstance(done[2], DeleteResult)
    assert done[2].marker
    assert done[3] is None
    assert await discarded(index) == ["blob1"]


async def test_copies_of_versions_share_their_blob(index: SqliteIndex, versioned: Bucket) -> None:
    first = await index.put_version(versioned.id, "key", new("blob"))
    second = await index.put_version(versioned.id, "key", new("other"))
    third = await index.copy_version(first.seq, versioned.id, "key", new("blob"))
    await index.set_versioning(versioned.id, SUSPENDED)
    for _ in range(2):  # onto what is null, and then onto the very one it copies
        fourth = await index.copy_version(third.seq, versioned.id, "key", new("blob"))
        third = fourth
    for one in (first, second):
        await delete(index, versioned, "key", one.version_id)
    assert await discarded(index) == ["other"]
    assert await index.miscounted() == []
    while rows := (await index.list_versions(versioned.id, "", "", "", "", 10)).entries:
        for row in rows:
            await delete(index, versioned, "key", row.version_id)
    assert sorted(await discarded(index)) == ["blob", "other"]
    assert await index.miscounted() == []


async def test_a_complete_makes_a_version(index: SqliteIndex, versioned: Bucket) -> None:
    before = await index.put_version(versioned.id, "key", new("before"))
    upload = await index.create_upload(versioned.id, "key", "{}", "STANDARD", "", "", OWNER)
    part = Part(1, 4, "etag", 0, "", "", extents_of("part", 4))
    await index.put_part(upload, part)
    chosen = await index.parts(upload, 0, 10)
    made = await index.complete_upload(upload, chosen, new("", etag="whole-1", parts=1))
    assert version_ids.time_of(made.version_id) == made.modified
    assert await index.complete_upload(upload, chosen, new("", etag="whole-1", parts=1)) == made
    ended = await index.upload(versioned.id, "key", upload.upload_id)
    assert ended is not None
    assert ended.completed_version_id == made.version_id
    assert await index.version(versioned.id, "key", before.version_id) is not None
    assert (await states(index, versioned))[0] == ("whole-1", CURRENT)


async def test_headers_of_an_older_version_change_and_its_place_does_not(index: SqliteIndex, versioned: Bucket) -> None:
    made = [await index.put_version(versioned.id, "key", new(etag=f"e{number}")) for number in range(3)]
    await index.set_headers(versioned.id, "key", made[1].seq, '{"acl":[]}')
    found = await index.version(versioned.id, "key", made[1].version_id)
    assert found is not None
    assert found.headers == '{"acl":[]}'
    assert found.modified == made[1].modified
    assert [etag for etag, _ in await states(index, versioned)] == ["e2", "e1", "e0"]


async def pages(
    index: SqliteIndex, bucket: Bucket, limit: int, prefix: str, delimiter: str
) -> AsyncIterator[VersionsPage]:
    key = version_id = ""
    while True:
        page = await index.list_versions(bucket.id, prefix, delimiter, key, version_id, limit)
        yield page
        if not page.truncated:
            return
        key, version_id = page.last_key, page.last_version_id


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("prefix", "delimiter"), [("", ""), ("a", ""), ("", "/"), ("a/", "/"), ("b", "/")])
async def test_pages_together_are_all_there_is(
    index: SqliteIndex, bucket: Bucket, limit: int, prefix: str, delimiter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_versions, "MAX_PAGE_KEYS", 2 + limit % 5)
    chance = random.Random(limit)
    keys = ["a", "a/1", "a/2", "a/b/1", "a/b/2", "b", "b/1", "c", "é", "𝄞"]
    expected: list[tuple[str, str]] = []
    made: dict[str, list[str]] = {key: [] for key in keys}
    for number in range(60):
        if number in (10, 40):
            await index.set_versioning(bucket.id, ENABLED)
        if number == 30:
            await index.set_versioning(bucket.id, SUSPENDED)
        key = chance.choice(keys)
        one: CommitResult | DeleteResult | None = None
        if chance.random() < 0.7 or number < 10:
            one = await index.put_version(bucket.id, key, new())
        else:
            one = await index.delete_version(bucket.id, key)
        assert one is not None
        made[key] = [other for other in made[key] if other != one.version_id] + [one.version_id]
    rolled: set[str] = set()
    for key in keys:
        at = key.find(delimiter, len(prefix)) if delimiter else -1
        if not key.startswith(prefix):
            continue
        if at >= 0:
            rolled.update([key[: at + 1]] if made[key] else [])
        else:
            expected += [(key, version_id) for version_id in reversed(made[key])]
    found: list[tuple[str, str]] = []
    prefixes: list[str] = []
    async for page in pages(index, bucket, limit, prefix, delimiter):
        assert len(page.entries) + len(page.prefixes) <= limit
        found += [(entry.key, entry.version_id) for entry in page.entries]
        prefixes += page.prefixes
    assert found == expected
    assert prefixes == sorted(rolled)


@pytest.mark.parametrize("delimiter", ["", "/"])
async def test_a_marker_behind_the_prefix_shows_nothing(index: SqliteIndex, versioned: Bucket, delimiter: str) -> None:
    """Not the older versions of its key either: who may list only a prefix would see others' keys."""
    made = [await index.put_version(versioned.id, key, new()) for key in ("a", "a/1", "b", "b", "b")]
    for prefix in ("a", "a/"):
        page = await index.list_versions(versioned.id, prefix, delimiter, "b", made[-1].version_id, 10)
        assert page == VersionsPage([], [], False, "", "", [])
    page = await index.list_versions(versioned.id, "b", delimiter, "b", made[-1].version_id, 10)
    assert [entry.version_id for entry in page.entries] == [made[3].version_id, made[2].version_id]


@pytest.mark.parametrize("delimiter", ["", "/"])
async def test_listings_tell_headers_when_they_are_asked(index: SqliteIndex, versioned: Bucket, delimiter: str) -> None:
    for number, key in enumerate(["a", "b", "b", "c/d", "e"]):
        await index.put_version(versioned.id, key, new(f"blob{number}", headers=f'{{"n":"{number}"}}'))
    await index.delete_version(versioned.id, "a")
    asked = (versioned.id, "", delimiter, "", 10)
    plain = await index.list_current(*asked)
    told = await index.list_current(*asked, headers=True)
    numbers = "24" if delimiter else "234"
    assert (plain.headers, told.headers) == ((), [f'{{"n":"{number}"}}' for number in numbers])
    assert told._replace(headers=()) == plain
    for limit in (3, 10):
        every = (versioned.id, "", delimiter, "", "", limit)
        all_plain, all_told = await index.list_versions(*every), await index.list_versions(*every, headers=True)
        assert not all_plain.headers
        assert all_told._replace(headers=all_plain.headers) == all_plain
        pairs = zip(all_told.entries, all_told.headers, strict=True)
        found = [(entry.key, headers) for entry, headers in pairs if entry.etag]
        expected = [("a", "0"), ("b", "2"), ("b", "1")] + [("c/d", "3")] * (not delimiter) + [("e", "4")]
        assert found == [(key, f'{{"n":"{number}"}}') for key, number in expected[: len(found)]]
        assert len(found) == (2 if limit == 3 else len(expected))


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_a_bucket_is_emptied_page_by_page(index: SqliteIndex, bucket: Bucket, limit: int) -> None:
    for key in ("a", "b"):
        await index.put_version(bucket.id, key, new())
    await index.set_versioning(bucket.id, ENABLED)
    for _ in range(3):
        for key in ("a", "b"):
            await index.put_version(bucket.id, key, new())
            await index.delete_version(bucket.id, key)
    await index.set_versioning(bucket.id, SUSPENDED)
    await index.delete_version(bucket.id, "b")
    seen = 0
    async for page in pages(index, bucket, limit, "", ""):
        for entry in page.entries:
            await delete(index, bucket, entry.key, entry.version_id)
            seen += 1
    assert seen == 14
    await index.delete_bucket(bucket.id)


async def test_a_page_goes_on_behind_a_version_that_is_gone(index: SqliteIndex, versioned: Bucket) -> None:
    made = [await index.put_version(versioned.id, "key", new(etag=f"e{number}")) for number in range(4)]
    for gone in (3, 2):
        await delete(index, versioned, "key", made[gone].version_id)
    page = await index.list_versions(versioned.id, "", "", "key", made[3].version_id, 10)
    assert [entry.etag for entry in page.entries] == ["e1", "e0"]
    page = await index.list_versions(versioned.id, "", "", "key", "", 10)
    assert page.entries == []
