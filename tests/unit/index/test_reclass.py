"""Versions get another place only while their bucket is where it was found."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES, Part, extents_of
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.relocation.rows import OBJECT, Archive, TransitionEntry
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER, new


async def test_no_place_is_given_in_a_bucket_that_moves_or_moved(index: SqliteIndex, bucket: Bucket) -> None:
    made = await index.put_version(bucket.id, "key", new("blob"))
    entry = TransitionEntry("key", made.version_id, made.seq, OBJECT, "blob", "GLACIER", {"blob": "copy"})
    moved = await index.begin_move(bucket.name, "slow")
    assert moved != bucket
    for other in (bucket, moved._replace(source=""), moved._replace(moved=0), moved._replace(store="default")):
        assert await index.reclass(other, None, [entry]) is None
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert (found.seq, found.body, found.storage_class) == (made.seq, "blob", "STANDARD")
    assert await index.reclass(moved, "other settings", [entry]) is None
    assert await index.reclass(moved._replace(id=bucket.id + 1000), None, [entry]) is None
    (seq,) = await index.reclass(moved, "", [entry]) or []
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert (found.seq, found.body, found.storage_class) == (seq, "copy", "GLACIER")


async def multipart(index: SqliteIndex, bucket: Bucket) -> None:
    """An object of two parts."""
    upload = await index.create_upload(bucket.id, "key", "{}", "GLACIER", "", "", OWNER)
    parts = [Part(1, 10, "e", 1, "", "", extents_of("one", 10)), Part(2, 4, "e", 1, "", "", extents_of("two", 4))]
    for part in parts:
        await index.put_part(upload, part)
    await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=14, parts=2))


async def whole(index: SqliteIndex, bucket: Bucket) -> Version:
    found = await index.version(bucket.id, "key")
    assert found is not None
    return found


async def read(index: SqliteIndex, version: Version) -> list[str]:
    """Blobs that are read."""
    if not version.body.startswith(PIECES):
        return [version.body]
    return [piece.locator for piece in await index.pieces(version.body, 0, 100) if piece.start < version.size]


async def held(index: SqliteIndex, *blobs: str) -> set[str]:
    """Those that a row holds, when what nobody needs any more is gone; all counts are true."""
    while entries := await index.discards(0, 100):
        for entry in entries:
            if entry.body.startswith(PIECES):
                while not await index.expand_discard(entry, 1):
                    assert not await index.miscounted()
            else:
                await index.forget_discards([(entry.id, 0, 0)])
    assert not await index.miscounted()
    return await index.find_referenced(blobs)


async def made(index: SqliteIndex, bucket: Bucket, parts: bool) -> Version:
    """The version of `key`, of parts or of one blob."""
    if parts:
        await multipart(index, bucket)
    else:
        await index.put_version(bucket.id, "key", new("one", size=14))
    return await whole(index, bucket)


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("shared", [False, True])
async def test_what_an_archive_keeps(index: SqliteIndex, bucket: Bucket, parts: bool, shared: bool) -> None:
    before = await made(index, bucket, parts)
    old = await read(index, before)
    listed = await index.object_parts(before.body, 0, 10) if parts else []
    if shared:
        await index.copy_version(before.seq, bucket.id, "copy", new(size=14))
    places = {blob: f"copy-{blob}" for blob in old}
    every = (*places, *places.values())
    entry = TransitionEntry("key", before.version_id, before.seq, OBJECT, before.body, before.storage_class, places)
    (seq,) = await index.reclass(bucket, None, [entry._replace(archive=Archive.KEPT)]) or []
    back = await whole(index, bucket)
    assert back == before._replace(seq=seq, body=back.body)
    assert await read(index, back) == [*places.values()]
    assert (await index.object_parts(back.body, 0, 10) if parts else []) == listed
    assert await held(index, *every) == {*every}
    changed = back._replace(body="other")
    for wrong in (changed, back._replace(seq=before.seq)):
        again = entry._replace(seq=wrong.seq, body=wrong.body, locators={}, archive=Archive.LEFT)
        assert await index.reclass(bucket, None, [again]) == [0]
    again = entry._replace(seq=back.seq, body=back.body, locators={}, archive=Archive.LEFT)
    (seq,) = await index.reclass(bucket, None, [again]) or []
    after = await whole(index, bucket)
    assert after == before._replace(seq=seq, body=after.body)
    assert parts or after.body == "one"
    assert await read(index, after) == old
    assert (await index.object_parts(after.body, 0, 10) if parts else []) == listed
    assert await held(index, *every) == {*old}
    await index.delete_version(bucket.id, "key")
    assert await held(index, *every) == ({*old} if shared else set())


@pytest.mark.parametrize("parts", [False, True])
async def test_what_goes_while_it_is_back(index: SqliteIndex, bucket: Bucket, parts: bool) -> None:
    """To other places than where it was kept, or altogether."""
    before = await made(index, bucket, parts)
    old = await read(index, before)
    places = {blob: f"copy-{blob}" for blob in old}
    entry = TransitionEntry("key", before.version_id, before.seq, OBJECT, before.body, before.storage_class, places)
    await index.reclass(bucket, None, [entry._replace(archive=Archive.KEPT)])
    back = await whole(index, bucket)
    further = {blob: f"far-{blob}" for blob in places.values()}
    assert await index.reclass(bucket, None, [entry._replace(seq=back.seq, body=back.body)]) == [0]
    await index.reclass(bucket, None, [entry._replace(seq=back.seq, body=back.body, locators=further)])
    far = await whole(index, bucket)
    assert parts or far.body == "far-copy-one"
    every = (*places, *further, *further.values())
    assert await held(index, *every) == {*further.values()} == {*await read(index, far)}
    third = {blob: f"third-{blob}" for blob in further.values()}
    last = entry._replace(seq=far.seq, body=far.body, locators=third, archive=Archive.KEPT)
    assert await index.reclass(bucket, None, [last]) != [0]
    await index.put_version(bucket.id, "key", new("new"))
    assert await held(index, *every, *third.values(), "new") == {"new"}
