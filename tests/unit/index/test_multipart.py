"""Multipart uploads from opening to the expansion of what they left."""

import asyncio

import pytest

from sluice_s3.app.errors import InvalidPart, NoSuchUpload, PreconditionFailed, SourceGone
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES, Extent, ObjectPart, Part, Piece, Upload
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER, new, part


async def open_upload(index: SqliteIndex, bucket: Bucket, key: str = "key") -> Upload:
    """An open upload."""
    return await index.create_upload(bucket.id, key, '{"a":"b"}', "STANDARD", "CRC32", "COMPOSITE", OWNER)


async def bodies(index: SqliteIndex) -> list[str]:
    """The discard queue."""
    return [entry.body for entry in await index.discards(0, 100)]


async def expand_all(index: SqliteIndex, limit: int = 100) -> None:
    """Expand every queued body of pieces."""
    for entry in await index.discards(0, 100):
        if entry.body.startswith(PIECES):
            while not await index.expand_discard(entry, limit):
                pass


@pytest.fixture
async def upload(index: SqliteIndex, bucket: Bucket) -> Upload:
    return await open_upload(index, bucket)


async def test_an_upload_is_found_by_its_id_for_its_key(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    assert (upload.key, upload.headers, upload.completed_seq) == ("key", '{"a":"b"}', 0)
    assert await index.upload(bucket.id, "key", upload.upload_id) == upload
    assert await index.upload(bucket.id, "other", upload.upload_id) is None
    assert await index.upload(bucket.id + 1, "key", upload.upload_id) is None


@pytest.mark.parametrize("guess", ["", "1", "0" * 48, "z" * 48, "f" * 48, "²" * 48])
async def test_what_is_no_upload_id_finds_nothing(
    index: SqliteIndex, bucket: Bucket, upload: Upload, guess: str
) -> None:
    assert await index.upload(bucket.id, "key", guess) is None


async def test_the_number_alone_does_not_name_an_upload(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    guess = upload.upload_id[:16] + "0" * 32
    assert guess != upload.upload_id
    assert await index.upload(bucket.id, "key", guess) is None


async def test_parts_come_back_in_order_and_by_page(index: SqliteIndex, upload: Upload) -> None:
    for number in (3, 1, 2):
        await index.put_part(upload, part(number, f"blob{number}"))
    parts = await index.parts(upload, 0, 10)
    assert [found._replace(modified=0) for found in parts] == [part(number, f"blob{number}") for number in (1, 2, 3)]
    assert all(found.modified > 0 for found in parts)
    assert [found.number for found in await index.parts(upload, 1, 1)] == [2]
    assert await index.parts(upload, 3, 10) == []


async def test_a_part_put_again_replaces_it_and_queues_its_blobs(index: SqliteIndex, upload: Upload) -> None:
    first = await index.put_part(upload, part(1, "blob1", "blob2"))
    second = await index.put_part(upload, part(1, "blob3"))
    assert second.modified > first.modified
    assert [found.extents for found in await index.parts(upload, 0, 10)] == [(Extent("blob3", 0, 5),)]
    assert await bodies(index) == ["blob1", "blob2"]


async def test_complete_makes_the_object_of_the_chosen_parts(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    for number in (1, 2, 5, 7):
        await index.put_part(upload, part(number, f"blob{number}"))
    chosen = [found for found in await index.parts(upload, 0, 10) if found.number != 2]
    committed = await index.complete_upload(upload, chosen, new(size=15, parts=3))
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert (found.seq, found.body, found.parts) == (committed.seq, f"{PIECES}{upload.id}", 3)
    assert await index.pieces(found.body, 0, 10) == [
        Piece(0, 5, 1, "blob1", 0),
        Piece(5, 5, 5, "blob5", 0),
        Piece(10, 5, 7, "blob7", 0),
    ]
    assert await bodies(index) == ["blob2"]
    assert await index.parts(upload, 0, 10) == []
    assert (await index.uploads(bucket.id, "", "", "", "", 10))[0] == []
    assert await index.miscounted() == []


async def test_pieces_begin_with_the_one_that_holds_the_byte(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    await index.put_part(upload, Part(1, 7, "e", 0, "", "sum1", (Extent("a", 100, 4), Extent("b", 0, 3))))
    await index.put_part(upload, Part(2, 5, "e", 0, "", "sum2", (Extent("c", 9, 5),)))
    await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=12, parts=2))
    body = f"{PIECES}{upload.id}"
    a, b, c = Piece(0, 4, 1, "a", 100), Piece(4, 3, 1, "b", 0), Piece(7, 5, 2, "c", 9)
    expected = {0: [a, b, c], 3: [a, b, c], 4: [b, c], 6: [b, c], 7: [c], 11: [c]}
    for offset, pieces in expected.items():
        assert await index.pieces(body, offset, 10) == pieces
    assert await index.pieces(body, 0, 2) == [a, b]
    assert await index.object_parts(body, 0, 10) == [ObjectPart(1, 0, 7, "sum1"), ObjectPart(2, 7, 5, "sum2")]
    assert await index.object_parts(body, 1, 10) == [ObjectPart(2, 7, 5, "sum2")]
    assert await index.object_parts(body, 0, 1) == [ObjectPart(1, 0, 7, "sum1")]
    assert await index.object_part(body, 2) == ObjectPart(2, 7, 5, "sum2")
    assert await index.object_part(body, 3) is None


async def test_an_empty_part_is_a_part_without_pieces_to_read(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    await index.put_part(upload, part(1, "blob1"))
    await index.put_part(upload, part(2))
    await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=5, parts=2))
    body = f"{PIECES}{upload.id}"
    assert await index.pieces(body, 0, 10) == [Piece(0, 5, 1, "blob1", 0)]
    assert await index.object_part(body, 2) == ObjectPart(2, 5, 0, "sum2")
    await index.delete_version(bucket.id, "key")
    await expand_all(index)
    assert await bodies(index) == ["blob1"]


async def test_complete_again_gives_the_first_answer(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    await index.put_part(upload, part(1, "blob1"))
    chosen = await index.parts(upload, 0, 10)
    first = await index.complete_upload(upload, chosen, new(size=5, parts=1))
    conditions = Conditions(if_none_match=True)
    assert await index.complete_upload(upload, chosen, new(size=5, parts=1), conditions) == first
    ended = await index.upload(bucket.id, "key", upload.upload_id)
    assert ended is not None
    assert ended.completed_seq == first.seq
    await index.put_version(bucket.id, "key", new())
    assert await index.complete_upload(upload, chosen, new(size=5, parts=1)) == first


async def test_an_expanded_upload_is_forgotten(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    await index.put_part(upload, part(1, "blob1"))
    chosen = await index.parts(upload, 0, 10)
    await index.complete_upload(upload, chosen, new(size=5, parts=1))
    await index.put_version(bucket.id, "key", new())
    await expand_all(index)
    assert await index.upload(bucket.id, "key", upload.upload_id) is None
    with pytest.raises(NoSuchUpload):
        await index.complete_upload(upload, chosen, new(size=5, parts=1))


async def test_complete_refuses_a_part_that_was_replaced_or_never_was(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    await index.put_part(upload, part(1, "blob1"))
    chosen = await index.parts(upload, 0, 10)
    await index.put_part(upload, part(1, "blob2"))
    for wrong in (chosen, [part(2, "blob3")]):
        with pytest.raises(InvalidPart):
            await index.complete_upload(upload, wrong, new(size=5, parts=1))
    assert await index.version(bucket.id, "key") is None
    assert await index.upload(bucket.id, "key", upload.upload_id) == upload


async def test_complete_under_a_failed_condition_leaves_the_upload_open(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    await index.put_version(bucket.id, "key", new("blob"))
    await index.put_part(upload, part(1, "blob1"))
    chosen = await index.parts(upload, 0, 10)
    with pytest.raises(PreconditionFailed):
        await index.complete_upload(upload, chosen, new(parts=1), Conditions(if_none_match=True))
    assert await index.parts(upload, 0, 10) == chosen
    await index.complete_upload(upload, chosen, new(parts=1), Conditions(if_match="e1"))
    assert await bodies(index) == ["blob"]


async def test_an_ended_upload_takes_nothing_more(index: SqliteIndex, bucket: Bucket) -> None:
    source = await index.put_version(bucket.id, "source", new("blob"))
    aborted, completed = await open_upload(index, bucket), await open_upload(index, bucket)
    await index.abort_upload(aborted)
    await index.complete_upload(completed, [], new())
    for ended in (aborted, completed):
        with pytest.raises(NoSuchUpload):
            await index.put_part(ended, part(1, "blob1"))
        with pytest.raises(NoSuchUpload):
            await index.copy_part(source.seq, ended, part(1, "blob"))
        with pytest.raises(NoSuchUpload):
            await index.abort_upload(ended)
    with pytest.raises(NoSuchUpload):
        await index.complete_upload(aborted, [], new())
    assert await index.miscounted() == []


async def test_abort_hides_the_upload_at_once_and_gives_its_blobs_back_later(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    for number in range(1, 6):
        await index.put_part(upload, part(number, f"blob{number}"))
    await index.abort_upload(upload)
    assert await index.upload(bucket.id, "key", upload.upload_id) is None
    assert (await index.uploads(bucket.id, "", "", "", "", 10))[0] == []
    (queued,) = await index.discards(0, 10)
    answers = [await index.expand_discard(queued, 2) for _ in range(3)]
    assert answers == [False, False, True]
    assert await bodies(index) == [f"blob{number}" for number in range(1, 6)]
    assert await index.expand_discard(queued, 2)


async def test_a_copied_part_counts_the_blobs_of_its_source(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    source = await index.put_version(bucket.id, "source", new("blob", size=100))
    extents = (Extent("blob", 10, 20),)
    await index.copy_part(source.seq, upload, Part(1, 20, "e", 0, "", "", extents))
    await index.delete_version(bucket.id, "source")
    assert await bodies(index) == []
    assert [found.extents for found in await index.parts(upload, 0, 10)] == [extents]
    with pytest.raises(SourceGone):
        await index.copy_part(source.seq, upload, Part(2, 20, "e", 0, "", "", extents))
    await index.abort_upload(upload)
    await expand_all(index)
    assert await bodies(index) == ["blob"]
    assert await index.miscounted() == []


async def test_a_copy_of_a_multipart_object_shares_all_its_pieces(
    index: SqliteIndex, bucket: Bucket, upload: Upload
) -> None:
    await index.put_part(upload, part(1, "blob1"))
    source = await index.complete_upload(upload, await index.parts(upload, 0, 10), new(size=5, parts=1))
    await index.copy_version(source.seq, bucket.id, "copy", new(size=5, parts=1))
    await index.delete_version(bucket.id, "key")
    assert await bodies(index) == []
    copy = await index.version(bucket.id, "copy")
    assert copy is not None
    assert await index.pieces(copy.body, 0, 10) == [Piece(0, 5, 1, "blob1", 0)]
    await index.delete_version(bucket.id, "copy")
    await expand_all(index)
    assert await bodies(index) == ["blob1"]
    assert await index.miscounted() == []


async def test_ten_thousand_parts(index: SqliteIndex, bucket: Bucket, upload: Upload) -> None:
    many = 10_000 if isinstance(index, SqliteIndex) else 1000  # there each costs some round trips
    for first in range(1, many + 1, 1000):
        numbers = range(first, first + 1000)
        await asyncio.gather(*(index.put_part(upload, part(number, f"blob{number}")) for number in numbers))
    await index.put_part(upload, part(many, "last"))
    chosen = await index.parts(upload, 0, 10_000)
    await index.complete_upload(upload, chosen, new(size=5 * many, parts=many))
    body = f"{PIECES}{upload.id}"
    assert await index.object_part(body, many) == ObjectPart(many, 5 * (many - 1), 5, f"sum{many}")
    assert await index.pieces(body, 5 * many - 1, 10) == [Piece(5 * (many - 1), 5, many, "last", 0)]
    await index.delete_version(bucket.id, "key")
    await expand_all(index, 1000)
    assert len(await index.discards(0, 20_000)) == many + 1
