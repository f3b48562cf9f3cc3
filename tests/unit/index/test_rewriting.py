"""Renames and appends: what they hold to, on both engines."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from sluice_s3.app.errors import (
    InvalidBucketState,
    NoSuchBucket,
    NoSuchKey,
    PreconditionFailed,
    SourceGone,
    TokenReused,
)
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions, Wanted
from sluice_s3.app.index.objects.rows import Appended, CommitResult, Rename, Version
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.test_versions import discarded
from tests.unit.index.tools import new, part


async def current(index: SqliteIndex, bucket: Bucket, key: str) -> Version:
    found = await index.version(bucket.id, key)
    assert found is not None
    return found


async def append(
    index: SqliteIndex, bucket: Bucket, key: str, locator: str, found: Version | None = None, size: int = 3
) -> CommitResult:
    old = found or await current(index, bucket, key)
    parts = max(old.parts, 1) + 1
    described = new(size=old.size + size, etag=f"appended-{parts}", parts=parts)
    more = Appended(locator, size, f"sum-{parts}", parts)
    return await index.append(bucket.id, key, old, described, more, None)


async def pieces(index: SqliteIndex, bucket: Bucket, key: str) -> list[tuple[int, int, int, str]]:
    found = await index.pieces((await current(index, bucket, key)).body, 0, 100)
    return [(piece.start, piece.size, piece.part_number, piece.locator) for piece in found]


# renames


async def test_an_object_gets_another_key(index: SqliteIndex, bucket: Bucket) -> None:
    made = await index.put_version(bucket.id, "a", new("blob"))
    before = await current(index, bucket, "a")
    done = await index.rename_object(bucket.id, Rename("a", "b"))
    assert done is not None
    after = await current(index, bucket, "b")
    assert await index.version(bucket.id, "a") is None
    assert (after.seq, after.modified) == (done.seq, done.modified)
    assert after.seq > made.seq
    assert after.modified > before.modified
    assert before._replace(key="b", seq=after.seq, modified=after.modified) == after
    assert await discarded(index) == []
    changes = await index.changes(made.seq)
    assert [row[2] for row in orjson.loads(changes.versions)] == ["b"]
    assert [row[3] for row in orjson.loads(changes.removals)] == ["a"]


async def test_what_it_replaces_is_released(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "a", new("blob"))
    old = await index.put_version(bucket.id, "b", new("old"))
    done = await index.rename_object(bucket.id, Rename("a", "b"))
    assert done is not None
    assert done.modified > old.modified
    assert await discarded(index) == ["old"]
    copied = await current(index, bucket, "b")
    await index.copy_version(copied.seq, bucket.id, "c", new())
    await index.rename_object(bucket.id, Rename("c", "b"))  # onto its own bytes
    assert await discarded(index) == ["old"]
    assert await index.miscounted() == []
    await index.delete_version(bucket.id, "b")
    assert await discarded(index) == ["old", "blob"]


async def test_conditions_of_both_ends(index: SqliteIndex, bucket: Bucket) -> None:
    made = await index.put_version(bucket.id, "a", new("blob", etag="one"))
    at = made.modified // 1000
    refused = [
        Rename("a", "b", of_source=Wanted(if_match="two")),
        Rename("a", "b", of_source=Wanted(if_none_match="one")),
        Rename("a", "b", of_source=Wanted(if_none_match="*")),
        Rename("a", "b", of_source=Wanted(modified_since=at)),
        Rename("a", "b", of_source=Wanted(unmodified_since=at - 1)),
        Rename("a", "b", of_target=Wanted(if_match="*")),
        Rename("a", "b", of_target=Wanted(modified_since=0)),
    ]
    for rename in refused:
        with pytest.raises(PreconditionFailed):
            await index.rename_object(bucket.id, rename)
    with pytest.raises(NoSuchKey):
        await index.rename_object(bucket.id, Rename("missing", "b"))
    with pytest.raises(NoSuchBucket):
        await index.rename_object(bucket.id + 1, Rename("a", "b"))
    held = Rename("a", "b", Wanted("one", "two", at - 1, at), Wanted(if_none_match="*", unmodified_since=0))
    assert await index.rename_object(bucket.id, held) is not None
    await index.put_version(bucket.id, "a", new("blob2", etag="three"))
    with pytest.raises(PreconditionFailed):
        await index.rename_object(bucket.id, Rename("a", "b", of_target=Wanted(if_none_match="*")))
    assert await index.rename_object(bucket.id, Rename("a", "b", of_target=Wanted(if_match="one"))) is not None


async def test_of_those_that_race_one_wins(index: SqliteIndex, bucket: Bucket) -> None:
    for number in range(8):
        await index.put_version(bucket.id, f"a{number}", new(f"blob{number}"))
    new_only = Wanted(if_none_match="*")
    renames = [Rename(f"a{number}", "b", of_target=new_only) for number in range(8)]
    renames += [Rename(f"a{number}", "c") for number in range(8)]
    done = await asyncio.gather(*(index.rename_object(bucket.id, one) for one in renames), return_exceptions=True)
    assert sum(isinstance(one, CommitResult) for one in done[:8]) == 1
    page = await index.list_current(bucket.id, "", "", "", 100)
    assert [entry.key for entry in page.entries if not entry.key.startswith("a")] == ["b", "c"]
    kept = {(await current(index, bucket, entry.key)).body for entry in page.entries}
    gone = set(await discarded(index))
    assert kept | gone == {f"blob{number}" for number in range(8)}
    assert not kept & gone


async def test_a_token_is_known_again(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "a", new("blob"))
    rename = Rename("a", "b", token="t")
    assert await index.rename_object(bucket.id, rename) is not None
    assert await index.rename_object(bucket.id, rename) is None
    with pytest.raises(TokenReused):
        await index.rename_object(bucket.id, Rename("b", "c", token="t"))
    await index.forget_renames(0)
    assert await index.rename_object(bucket.id, rename) is None
    await index.forget_renames(9_999_999_999_999)
    with pytest.raises(NoSuchKey):
        await index.rename_object(bucket.id, rename)
    assert await index.identities() == {}


async def test_where_versions_are_kept_there_is_none(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "a", new("blob"))
    await index.set_versioning(bucket.id, ENABLED)
    with pytest.raises(InvalidBucketState):
        await index.rename_object(bucket.id, Rename("a", "b"))
    with pytest.raises(InvalidBucketState):
        await append(index, bucket, "a", "more")


# appends


async def test_appends_become_pieces(index: SqliteIndex, bucket: Bucket) -> None:
    first = await index.put_version(bucket.id, "a", new("blob"))
    made = await append(index, bucket, "a", "more")
    number = (await current(index, bucket, "a")).body
    assert await pieces(index, bucket, "a") == [(0, 4, 1, "blob"), (4, 3, 2, "more")]
    last = await append(index, bucket, "a", "most")
    found = await current(index, bucket, "a")
    assert (found.body, found.size, found.parts, found.etag) == (number, 10, 3, "appended-3")
    assert first.modified < made.modified < last.modified
    assert await pieces(index, bucket, "a") == [(0, 4, 1, "blob"), (4, 3, 2, "more"), (7, 3, 3, "most")]
    assert await index.find_referenced(["blob", "more", "most"], made.seq) == {"blob", "more", "most"}
    assert await index.miscounted() == []
    assert (await index.changes(last.seq - 1)).uploads == [int(number.removeprefix("pieces:"))]
    await index.delete_version(bucket.id, "a")
    (entry,) = await index.discards(0, 10)
    while not await index.expand_discard(entry, 2):
        pass
    assert await discarded(index) == ["blob", "more", "most"]


async def test_copies_stay_as_they_were(index: SqliteIndex, bucket: Bucket) -> None:
    """Of a blob that two hold, and of pieces that two hold."""
    made = await index.put_version(bucket.id, "a", new("blob"))
    await index.copy_version(made.seq, bucket.id, "copy", new())
    await append(index, bucket, "a", "more")
    found = await current(index, bucket, "a")
    await index.copy_version(found.seq, bucket.id, "twin", new(size=7, parts=2))
    await append(index, bucket, "a", "most")
    await append(index, bucket, "twin", "else")
    assert await pieces(index, bucket, "a") == [(0, 4, 1, "blob"), (4, 3, 2, "more"), (7, 3, 3, "most")]
    assert await pieces(index, bucket, "twin") == [(0, 4, 1, "blob"), (4, 3, 2, "more"), (7, 3, 3, "else")]
    assert (await current(index, bucket, "copy")).body == "blob"
    assert await index.miscounted() == []
    for key in ("a", "twin", "copy"):
        await index.delete_version(bucket.id, key)
    for entry in await index.discards(0, 10):
        if entry.body.startswith("pieces:"):
            assert await index.expand_discard(entry, 100)
    assert sorted(await discarded(index)) == ["blob", "else", "more", "most"]


async def test_to_parts_and_to_nothing(index: SqliteIndex, bucket: Bucket) -> None:
    upload = await index.create_upload(bucket.id, "m", "{}", "STANDARD", "", "", "owner")
    await index.put_part(upload, part(1, "p1", "p2"))
    await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=10, parts=1))
    await append(index, bucket, "m", "more")
    assert await pieces(index, bucket, "m") == [(0, 5, 1, "p1"), (5, 5, 1, "p2"), (10, 3, 2, "more")]
    assert [part.number for part in await index.object_parts((await current(index, bucket, "m")).body, 0, 9)] == [1, 2]
    await index.put_version(bucket.id, "empty", new("", size=0))
    await append(index, bucket, "empty", "first")
    assert await pieces(index, bucket, "empty") == [(0, 3, 2, "first")]
    assert await index.miscounted() == []


async def test_only_to_what_was_found(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "a", new("blob"))
    found = await current(index, bucket, "a")
    await append(index, bucket, "a", "more")
    with pytest.raises(SourceGone):
        await append(index, bucket, "a", "late", found)
    with pytest.raises(PreconditionFailed):
        await index.append(bucket.id, "a", found, new(), Appended("x", 1, "", 2), Conditions(if_match="other"))
    old = await current(index, bucket, "a")
    await index.set_headers(bucket.id, "a", old.seq, '{"tags":{}}')
    with pytest.raises(SourceGone):
        await append(index, bucket, "a", "late", old)
    assert len(await pieces(index, bucket, "a")) == 2


async def test_of_appends_that_race_one_wins(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "a", new("blob"))
    for round_ in range(3):
        found = await current(index, bucket, "a")
        tries = (append(index, bucket, "a", f"b{round_}.{number}", found) for number in range(6))
        done = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(one, CommitResult) for one in done) == 1
    assert [piece[0] for piece in await pieces(index, bucket, "a")] == [0, 4, 7, 10]
